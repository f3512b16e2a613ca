#!/usr/bin/env python3
"""What one agent's flood of denied accesses costs another, and the supervisor.

    python3 benches/floods.py target/release/eisen-core [--hold]

Starts a team of two, where the kernel holds the zones. `other` measures how long a denied `cat`
takes, first alone, then while `flood` is denied 12,000 accesses with paths of 3 KB: half by
`fs/read_text_file`, half by programs whose arguments name the path. Prints the figures; exits with 1 past the
bounds: twice the time plus 50 ms for the median, plus 250 ms for the longest, and 64 MB.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ACCESSES, ARGUMENTS = 12_000, 300
LONG = "core/" + "/".join(["x" * 200] * 14)


def main() -> int:
    program, hold = Path(sys.argv[1]).resolve(), "--hold" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name in ("work/other", "work/flood", "work/shared", "work/core"):
            (root / name).mkdir(parents=True)
        (root / "work/core/file").write_text("secret\n")
        (root / "eisen.toml").write_text(configuration(root, hold))
        environment = {**os.environ, "EISEN_DIR": str(root / "eisen")}
        with open(root / "log", "w") as log:
            command = [program, "up", "-c", root / "eisen.toml"]
            team = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            return judge(root, team)
        finally:
            team.terminate()
            team.wait(30)


def configuration(root: Path, hold: bool) -> str:
    agents = "".join(
        f'[[agents]]\nid = "{role}"\ncommand = ["python3", "{Path(__file__).resolve()}", "{role}"]\n'
        f'prompt = "go"\non_block = "{"hold" if hold and role == "flood" else "deny"}"\n'
        f'[agents.zone]\nallowed = ["{role}/**", "shared/**"]\nenforce = "kernel"\n'
        for role in ("other", "flood")
    )
    return (
        f'[team]\nname = "floods"\nworkspace = "{root}/work"\nlisten = "127.0.0.1:0"\n'
        f"[orchestrator]\nhold_timeout_s = 5\n{agents}"
    )


def judge(root: Path, team: subprocess.Popen) -> int:
    result, most, before = root / "work/shared/result", 0, 0
    while not result.exists():
        if team.poll() is not None:
            sys.exit("the team ended:\n" + (root / "log").read_text()[-2000:])
        most = max(most, resident(team.pid))
        if not (root / "work/shared/go").exists():
            before = most
        time.sleep(0.02)
    quiet, loud, flooded = json.loads(result.read_text())
    failed = False
    for name, of, slack in (("median", statistics.median, 50), ("longest", max, 250)):
        was, now = of(quiet) * 1000, of(loud) * 1000
        good = now <= 2 * was + slack
        failed |= not good
        print(f"{name:<8} {was:7.1f} ms alone, {now:7.1f} ms in the flood {'' if good else 'FAILED'}")
    grown = (most - before) / 1e6
    failed |= grown > 64
    print(f"memory   {before / 1e6:7.1f} MB, {grown:.1f} MB more at most {'FAILED' if grown > 64 else ''}")
    print(f"flood    {ACCESSES} accesses in {flooded:.1f} s, {len(loud)} of the other's measured")
    return int(failed)


def resident(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def say(**message) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def play(act) -> None:
    """An ACP agent with one session."""
    for line in sys.stdin:
        message = json.loads(line)
        id, method = message.get("id"), message.get("method")
        if method == "initialize":
            say(id=id, result={"protocolVersion": 1, "agentCapabilities": {}})
        elif method == "session/new":
            say(id=id, result={"sessionId": "s"})
        elif method == "session/prompt":
            # Beside this thread, which goes on to read: else neither side would get on.
            threading.Thread(target=turn, args=(act, id)).start()


def turn(act, id) -> None:
    act()
    say(id=id, result={"stopReason": "end_turn"})


def cat() -> float:
    began = time.monotonic()
    subprocess.run(["cat", "core/file"], stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def other() -> None:
    quiet = [cat() for _ in range(100)]
    Path("shared/go").touch()
    loud, began = [], time.monotonic()
    while not Path("shared/done").exists():
        loud.append(cat())
        time.sleep(0.01)
    Path("shared/new").write_text(json.dumps([quiet, loud, time.monotonic() - began]))
    os.rename("shared/new", "shared/result")


def flood() -> None:
    while not Path("shared/go").exists():
        time.sleep(0.01)
    paths = [f"{LONG}/{number:06}" for number in range(ACCESSES // 2)]
    for number, path in enumerate(paths):
        params = {"sessionId": "s", "path": f"{os.getcwd()}/{path}"}
        say(id=number, method="fs/read_text_file", params=params)
    open_all = "import sys\nfor path in sys.argv[1:]:\n try: open(path)\n except OSError: pass"
    for first in range(0, len(paths), ARGUMENTS):
        named = [path + "k" for path in paths[first : first + ARGUMENTS]]
        subprocess.run([sys.executable, "-c", open_all, *named])
    Path("shared/done").touch()


if __name__ == "__main__":
    if sys.argv[1:] in (["other"], ["flood"]):
        play({"other": other, "flood": flood}[sys.argv[1]])
    else:
        sys.exit(main())
