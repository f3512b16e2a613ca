#!/usr/bin/env python3
"""What Lighthouse says of the page: `lighthouse.py PROGRAM LIGHTHOUSE`.

The demo team is started with its page, a real Chromium opens a link to it, and each view is loaded in that browser. A
category below LEAST fails. The page is for people at a desk and on a phone, so both are tried.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

LEAST = 95
CATEGORIES = ["performance", "accessibility", "best-practices"]
VIEWS = ["team", "team/ui", "review/changes/ui", "map", "history"]
# The throttling of the preset for phones stands for a slow mobile network. The page comes from a machine of one's own.
FORMS = {"desk": ["--preset=desktop"], "phone": ["--form-factor=mobile", "--throttling-method=provided"]}
# Seconds for what starts.
PATIENCE = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("lighthouse")
    options = parser.parse_args()
    repository = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    demo = os.path.join(repository, "config", "demo.toml")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.abspath(options.program)
        environment = {**os.environ, "EISEN_DIR": os.path.join(folder, "eisen")}
        command = [program, "up", "-c", demo, "--port", "0", "--web=127.0.0.1:0"]
        team = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        browser = None
        try:
            link = comes("a link", lambda: link_of(program, folder, environment))
            browser = open_browser(folder, link)
            # A turn that begins moves those below it: that is news, and no fault of the layout.
            comes("the end of the demo", lambda: has_ended(program, folder, environment))
            return 0 if all([look(options.lighthouse, folder, link, form) for form in FORMS]) else 1
        finally:
            for it in filter(None, [browser, team]):
                it.terminate()
                it.wait()


def comes(what, ask):
    """Asks until there is an answer."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.1)
    sys.exit(f"there was never {what}")


def link_of(program, folder, environment):
    ended = subprocess.run([program, "web", "--team", "demo"], cwd=folder, env=environment, capture_output=True, text=True)
    return ended.stdout.strip() if ended.returncode == 0 else None


def has_ended(program, folder, environment):
    ended = subprocess.run([program, "ps", "--team", "demo", "--json"], cwd=folder, env=environment, capture_output=True)
    agents = json.loads(ended.stdout) if ended.returncode == 0 else []
    sessions = [it for agent in agents for it in agent["sessions"]]
    return bool(sessions) and not any(it["running"] or it["queued"] for it in sessions)


def open_browser(folder, link):
    """Starts Chromium, and opens the link in it: from then on it has the credential."""
    profile = os.path.join(folder, "chromium")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command = ["chromium", *flags, "--remote-debugging-port=0", f"--user-data-dir={profile}", link]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    port = comes("a browser", lambda: port_of(folder))
    # The title is that of the team once the page has its credential.
    comes("the page", lambda: any(it["url"].count("/enter") == 0 and "demo" in it["title"] for it in tabs(port)))
    return browser


def port_of(folder):
    try:
        with open(os.path.join(folder, "chromium", "DevToolsActivePort")) as file:
            return file.readline().strip()
    except FileNotFoundError:
        return None


def tabs(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
        return json.load(answer)


def look(lighthouse, folder, link, form):
    """Looks at each view; whether all is well."""
    origin = re.match(r"https?://[^/]+", link).group(0)
    is_well = True
    for view in VIEWS:
        out = os.path.join(folder, "report.json")
        command = [lighthouse, f"{origin}/#{view}", f"--port={port_of(folder)}", "--disable-storage-reset", "--quiet"]
        command += ["--output=json", f"--output-path={out}", f"--only-categories={','.join(CATEGORIES)}", *FORMS[form]]
        subprocess.run(command, check=True)
        with open(out) as file:
            report = json.load(file)
        is_well = judge(report, form, view) and is_well
        if "EISEN_LIGHTHOUSE" in os.environ:
            shutil.copy(out, os.path.join(os.environ["EISEN_LIGHTHOUSE"], f"{form}-{view.replace('/', '-')}.json"))
    return is_well


def judge(report, form, view):
    """Prints the figures of a report, and what is below the bound; whether nothing is."""
    if report.get("runtimeError"):
        print(f"{form:6} {view:18} {report['runtimeError']['message']}")
        return False
    scores = {name: round((report["categories"][name]["score"] or 0) * 100) for name in CATEGORIES}
    figures = [f"{name} {score}" for name, score in scores.items()]
    for audit in ["first-contentful-paint", "total-blocking-time", "cumulative-layout-shift"]:
        figures.append(f"{audit} {report['audits'][audit].get('displayValue', 'not known')}")
    print(f"{form:6} {view:18} {', '.join(figures)} (at least {LEAST} each)")
    for name, score in scores.items():
        if score < LEAST:
            for it in report["categories"][name]["auditRefs"]:
                audit = report["audits"][it["id"]]
                if it["weight"] and (audit["score"] or 0) < 0.9:
                    print(f"  {name}: {audit['title']}: {audit.get('displayValue') or audit.get('errorMessage', '')}")
    return min(scores.values()) >= LEAST


if __name__ == "__main__":
    sys.exit(main())
