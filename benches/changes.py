#!/usr/bin/env python3
"""What exact changes cost in a large repository, against a small one; and what `blame` takes.

    python3 benches/changes.py target/release/eisen-core [--files 500000]

Starts two teams of one agent, whose workspaces have 1,000 and 500,000 files. In each turn a shell of
the agent overwrites 100 of them by 4 KB each. By turns with the other team, it measures the turn with its
diff, and the undo of it. Then an agent writes a file of 1,000 lines, in ten turns, and `blame` is
asked for it. Prints the figures; exits with 1 past the bounds: 1.2 of the small repository, and 16 ms.
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/reliability"))
import team as teams

ROUNDS, CHANGED, A_FOLDER = 15, 100, 500
SCRIPT = """
[agent]
name = "a0"
[[on]]
regex = 'lines (?P<turn>[0-9]+)'
steps = [{ run = "sh a0/lines.sh {turn}" }]
[[on]]
regex = 'work (?P<turn>[0-9]+)'
steps = [{ run = "sh a0/work.sh {turn}" }]
"""
WORK = """
text=$(head -c 4000 /dev/zero | tr '\\0' x)
for n in $(seq 0 {last}); do echo "$1 $text" > "a0/0/$n.txt"; done
"""
LINES = 'for n in $(seq 1 100); do echo "turn $1, line $n"; done >> a0/lines.txt\n'


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--files", type=int, default=500_000)
    given = parser.parse_args()
    program = teams.program(given.program)
    sizes = {"small": 1_000, "large": given.files}
    times = {name: {"turn": [], "undo": []} for name in sizes}
    running = {}
    try:
        for name, files in sizes.items():
            running[name] = begin(program, files)
        # The files just made are not to be written back meanwhile.
        os.sync()
        for number in range(ROUNDS):
            for name, (_, client) in running.items():
                turn, undo = one_round(client, number)
                times[name]["turn"].append(turn)
                times[name]["undo"].append(undo)
        blame = blaming(running["small"][1])
    finally:
        for team, _ in running.values():
            team.end()
            team.remove()
    within = blame <= 0.016
    for what in ("turn", "undo"):
        # The first turns keep what was there before anybody wrote.
        small, large = (statistics.median(times[name][what][2:]) for name in ("small", "large"))
        within &= large <= 1.2 * small
        print(f"{what}, {CHANGED} files: {small * 1e3:.1f} ms in 1,000 files, {large / small:.2f} of it in {given.files:,}")
    print(f"blame of 1,000 lines: {blame * 1e3:.1f} ms")
    return 0 if within else 1


def begin(program, files):
    """A team with so many files, all ready."""
    team = teams.Team(program, 1)
    work = team.folder / "work/a0"
    for number in range(files // A_FOLDER):
        folder = work / str(number)
        folder.mkdir()
        for name in range(A_FOLDER):
            (folder / f"{name}.txt").write_bytes(b"before\n")
    (work / "work.sh").write_text(WORK.format(last=CHANGED - 1))
    (work / "lines.sh").write_text(LINES)
    (team.folder / "a0.toml").write_text(SCRIPT)
    team.start()
    client = team.client()
    client.until_ready(team.agents)
    return team, client


def one_round(client, number):
    begun = time.monotonic()
    answered(client.call("prompt", agent_id="a0", text=f"work {number}"))
    diff = answered(client.call("get_diff", agent_id="a0", turn=number))
    middle = time.monotonic()
    changed = diff["diff"].count("\n+++ ")
    assert changed == CHANGED, f"{changed} files in the diff"
    ended = time.monotonic()
    answered(client.call("undo", agent_id="a0", turn=number))
    return middle - begun, time.monotonic() - ended


def blaming(client):
    for number in range(10):
        answered(client.call("prompt", agent_id="a0", text=f"lines {number}"))
    times = []
    for _ in range(20):
        begun = time.monotonic()
        lines = answered(client.call("blame", path="a0/lines.txt"))["lines"]
        times.append(time.monotonic() - begun)
        assert len(lines) == 1_000, f"{len(lines)} lines"
    return statistics.median(times)


def answered(line):
    if "error" in line:
        raise SystemExit(f"the port answered: {line}")
    return line["result"]


if __name__ == "__main__":
    sys.exit(main())
