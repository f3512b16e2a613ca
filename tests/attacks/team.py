"""The team that is attacked: two agents and, if asked for, a lead, in a folder of their own, with a client of
its port."""

import atexit
import json
import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
MARK = "S3CR3T-" + secrets.token_hex(4)
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
MODES = ("root", "user", "strict", "userstrict")
NOBODY = pwd.getpwnam("nobody")

FILES = {
    "ws/ui/a.txt": "ok\n", "ws/ui/sub/x.txt": "x\n", "ws/ui/.env": f"KEY={MARK}\n",
    "ws/core/auth.rs": f"#!/bin/cat\n// {MARK}\n", "ws/core/db.py": f"x = 1  # {MARK}\n",
    "ws/core/run.sh": f"#!/bin/sh\necho {MARK}\n", "ws/core/nul/keep": "",
    "ws/Cargo.toml": "[package]\n", "ws/AGENTS.md": "The rules.\n", "ws/lead/a.txt": "ok\n", "prompt.txt": "hello\n",
}
CONFIGURATION = """[team]
name = "attacked"
workspace = "ws"
listen = "127.0.0.1:0"
stop_grace_s = 2
{orchestrator}
[zones]
denied = ["**/.env"]
git = "commit"
[journal]
path = "journal.db"
"""
AGENT = """
[[agents]]
id = "{id}"
command = ["{python}", "{here}/agent.py"]
{prompt}
[agents.zone]
allowed = {allowed}
enforce = "kernel"
sockets = ["{workspace}/ui/*.listed"]
{confine}
"""


# What an agent's code begins with that asks the port: the port, and the token as an expression.
ASK = """
import socket
s = socket.create_connection(("127.0.0.1", %d)); f = s.makefile("rw")
def ask(method, params):
    f.write(json.dumps({"type": "rpc", "id": method, "method": method, "params": params}) + "\\n"); f.flush()
    for line in f:
        m = json.loads(line)
        if m.get("id") == method: return m
f.write(json.dumps({"type": "auth", "token": %s}) + "\\n")
"""


def until(condition, seconds=15):
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.03)
    return found


class Port:
    """One connection to a team."""

    def __init__(self, number, token=None):
        self.socket = socket.create_connection(("127.0.0.1", number), 10)
        self.socket.settimeout(None)
        self.messages, self.count = [], 0
        threading.Thread(target=self.read, daemon=True).start()
        if token:
            self.send({"type": "auth", "token": token})

    def read(self):
        try:
            for line in self.socket.makefile("rb"):
                self.messages.append(json.loads(line))
        except (OSError, ValueError):
            pass
        self.messages.append({"type": "closed"})

    def send(self, message):
        try:
            self.socket.sendall((json.dumps(message) + "\n").encode())
        except OSError:
            pass

    def ask(self, method, params=None, seconds=60):
        self.count += 1
        ours = f"q{self.count}"
        self.send({"type": "rpc", "id": ours, "method": method, "params": params or {}})
        of = lambda m: m.get("id") == ours or m["type"] == "closed"
        return until(lambda: next((m for m in list(self.messages) if of(m)), None), seconds) or {}

    def close(self):
        self.socket.close()


class Team:
    """A team that runs in a folder of its own."""

    def __init__(self, program, mode, lead=False):
        self.mode, self.program = mode, program
        self.user = NOBODY if "user" in mode and os.geteuid() == 0 else None
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="attacked-"))
        os.chmod(self.folder, 0o755)
        self.workspace, self.home = self.folder + "/ws", self.folder + "/home"
        self.config = self.folder + "/team/eisen.toml"
        self.make(lead)
        self.environment = {**ENVIRONMENT, "EISEN_DIR": self.home, "HOME": self.folder + "/user"}
        self.process = self.accomplice = None
        atexit.register(self.stop)
        self.start()

    def make(self, lead):
        for name, text in FILES.items():
            path = os.path.join(self.folder, name if name.startswith("ws") else "team/" + name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        for name in ("auth.rs", "run.sh"):
            os.chmod(f"{self.workspace}/core/{name}", 0o755)
        for folder in ("home", "user", "accomplice"):
            os.makedirs(f"{self.folder}/{folder}")
        # What agents run must be readable for the team's user, wherever this lies.
        self.tools = self.folder + "/tools"
        shutil.copytree(HERE, self.tools)
        strict = f'confine = "strict"\nreadable = ["{self.tools}/**"]' if "strict" in self.mode else ""
        agents = {"ui": '["ui/**", "Cargo.toml"]', "core": '["core/**"]'}
        orchestrator = ""
        if lead:
            agents["lead"] = '["lead/**"]'
            orchestrator = '[orchestrator]\nagent = "lead"\non_block = "hold"\nhold_timeout_s = 5'
        text = CONFIGURATION.format(orchestrator=orchestrator).replace('"ws"', '"../ws"')
        for agent, allowed in agents.items():
            prompt = 'prompt_file = "prompt.txt"' if agent == "core" else ""
            text += AGENT.format(id=agent, python=PYTHON, here=self.tools, allowed=allowed,
                                 confine=strict, prompt=prompt, workspace=self.workspace)
        with open(self.config, "w") as file:
            file.write(text)
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", self.workspace]
        for args in (["init", "-q"], ["add", "ui", "Cargo.toml"], ["commit", "-qm", "one"]):
            subprocess.run(git + args, check=True, capture_output=True,
                           env={**ENVIRONMENT, "HOME": self.folder})
        if self.user:
            for above, folders, files in os.walk(self.folder):
                for name in [above, *(os.path.join(above, one) for one in folders + files)]:
                    os.chown(name, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)

    def rights(self):
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}

    def start(self, seconds=30):
        self.log = open(self.folder + "/log", "w+")
        self.process = subprocess.Popen(
            [self.program, "up", "-c", self.config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.log, env=self.environment, cwd=self.folder, **self.rights())
        port = lambda: re.search(r"^eisen-core tcp port: (\d+)", self.said(), re.M)
        until(lambda: port() or self.process.poll() is not None)
        if not port():
            raise SystemExit("no team: " + self.said()[-2000:])
        self.port = int(port().group(1))
        self.token = until(lambda: self.run_file().get("token"))
        self.steer = Port(self.port, self.token)
        self.steer.send({"type": "subscribe", "topics": ["session_update"]})
        ready = lambda: (agents := self.steer.ask("list_agents").get("result")) and all(
            agent["state"] == "ready" and agent["sessions"] for agent in agents if agent["agent_id"])
        if not until(ready, seconds):
            raise SystemExit("the agents are not ready: " + self.said()[-2000:])

    def session(self, agent):
        """The agent's session."""
        listed = self.steer.ask("list_agents")["result"]
        return next(one["sessions"][0]["session_id"] for one in listed if one["agent_id"] == agent)

    def run_file(self):
        try:
            return json.load(open(self.home + "/run/attacked.json"))
        except (OSError, ValueError):
            return {}

    def said(self):
        return open(self.folder + "/log", errors="replace").read()

    def let(self, agent, task, seconds=300, session=None):
        """Has an agent do something; returns what it said."""
        start = len(self.steer.messages)
        ended = self.steer.ask("prompt", {"agent_id": agent, "session_id": session, "text": json.dumps(task)}, seconds)
        text = "".join(
            m["update"]["content"]["text"] for m in self.steer.messages[start:]
            if m.get("type") == "session_update" and m.get("agent_id") == agent
            and m["update"].get("sessionUpdate") == "agent_message_chunk")
        try:
            return json.loads(text)
        except ValueError:
            return f"no answer: {text[-300:]} {ended}"

    def cli(self, *args, seconds=20):
        return subprocess.run([self.program, *args], env=self.environment, cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, **self.rights())

    def typed(self, *args):
        """What a command writes to a terminal."""
        ours, theirs = os.openpty()
        done = subprocess.Popen([self.program, *args], env=self.environment, cwd=self.folder, stdout=theirs,
                                stderr=theirs, stdin=subprocess.DEVNULL, **self.rights())
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:
            pass
        os.close(ours)
        done.wait(20)
        return shown

    def attack_environment(self):
        """What tries inside need to know, with an accomplice outside."""
        self.accomplice = subprocess.Popen(
            [PYTHON, self.tools + "/outside.py", self.workspace, self.folder + "/accomplice"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, **self.rights())
        facts = self.accomplice.stdout.readline().split()
        private = self.let("core", {"code": "result = os.environ.get('TMPDIR')\n"
                                            "open(result + '/private.txt', 'w').write('%s')" % MARK})
        peer = self.let("core", {"code": f"""
import ctypes, subprocess
os.secret = open({self.workspace + "/core/auth.rs"!r}, "rb")
os.held = ctypes.create_string_buffer(os.secret.read())
sleeper = subprocess.Popen(["sleep", "1000"])
result = [os.getpid(), os.secret.fileno(), ctypes.addressof(os.held), len(os.held), sleeper.pid]
"""})
        return {"ATTACK_WS": self.workspace, "ATTACK_PEER": " ".join(map(str, peer)), "ATTACK_HOME": self.home, "ATTACK_CONFIG": self.config,
                "ATTACK_OTHER": private, "ATTACK_OWN": self.folder + "/accomplice",
                "ATTACK_PIDS": " ".join([str(self.process.pid), *facts])}

    def changed(self):
        """What is not as it was, and no agent of a zone may change."""
        found = {}
        for folder in ("core", "lead", ".git/hooks"):
            for above, _, files in os.walk(f"{self.workspace}/{folder}"):
                for name in files:
                    path = os.path.join(above, name)
                    status = os.lstat(path)
                    found[path] = (status.st_mode, status.st_size, status.st_mtime_ns)
        for path in (self.config, self.workspace + "/.git/config", self.workspace + "/.git/HEAD"):
            found[path] = os.path.exists(path) and open(path).read()
        return found

    def stop(self):
        for process in (self.accomplice, self.process):
            if process and process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
