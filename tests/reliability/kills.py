#!/usr/bin/env python3
"""SIGKILLs of a team at random moments: who survives, and what is lost.

    tests/reliability/kills.py --kills 20

Each round starts the same team, has its agents work, and kills the supervisor after a random time,
also while it still starts; in some rounds all of its wardens and its sweeper with it, which the next
start has to clean up after. Looked at then:

- survivors: processes that have the trial's mark in their environment 10 seconds later (by default),
  or, where the wardens were killed too, once the next start is up;
- files: what agents wrote is whole, never a part;
- the registry of sessions is whole, and has the sessions of which it was said so before;
- the journal is sound, its sequences have no holes, and of what a client saw it lacks nothing that is
  older than 250 ms;
- the next start succeeds, with nothing done by hand.

Prints a JSON object; exits with 1 if something survived or was lost."""

import argparse
import json
import os
import random
import signal
import sys
import time

import journal
from team import Team, program

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--program", help="default: target/release/eisen-core")
parser.add_argument("--kills", type=int, default=20)
parser.add_argument("--agents", type=int, default=3)
parser.add_argument("--seed", type=int, default=None)
parser.add_argument("--patience", type=float, default=10, help="seconds until who is there survives")
args = parser.parse_args()
seed = args.seed if args.seed is not None else random.randrange(10**9)
chance = random.Random(seed)

team = Team(program(args.program), args.agents)
problems, ends, while_starting, all_killed, writes = [], [], 0, 0, 0
unwritten, lost = [], 0.25
kept = team.folder / "eisen/teams/trial/journal.db"
registry = team.folder / "eisen/core_sessions.json"


def report(number, what):
    problems.append(f"round {number}: {what}")
    print(problems[-1], flush=True)


def work(until):
    """Has agents write and run programs until it is time. Returns how many prompts were sent."""
    client, sent = team.client(), 0
    client.until_ready(team.agents)
    while time.monotonic() < until:
        agent = chance.choice(team.agents)
        text = chance.choice(["write", "run", "read", "denied"])
        client.ask("prompt", agent_id=agent, text=text)
        sent += 1
        time.sleep(chance.uniform(0, 0.05))
    return sent


try:
    for number in range(args.kills):
        witness, since_ms = None, int(time.time() * 1000)
        wait = chance.choice([chance.uniform(0, 0.3), chance.uniform(0.3, 2.0)])
        begin = time.monotonic()
        try:
            team.start()
        except SystemExit as error:
            report(number, str(error))
            break
        # What a registry has does not get lost by a kill.
        known = set()
        if registry.exists():
            known = set(registry.read_text().split('"')) & {f"{a}-s1" for a in team.agents}
        until = begin + wait
        if wait < 0.3:
            while_starting += 1
            time.sleep(max(0, until - time.monotonic()))
        else:
            witness = journal.Witness(team.client())
            writes += work(until)
        everybody = chance.random() < 0.2
        if everybody:
            all_killed += 1
            helpers = [pid for pid, command in team.marked() if " warden" in command or " sweeper" in command]
            at = time.monotonic()
            os.kill(team.child.pid, signal.SIGKILL)
            for pid in helpers:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        else:
            at = time.monotonic()
            os.kill(team.child.pid, signal.SIGKILL)
        team.child.wait()
        if not everybody:
            killed = time.monotonic()
            left = team.left_after(args.patience)
            ends.append(time.monotonic() - killed)
            if left:
                report(number, f"survived: {left}")
        if kept.exists():
            for fault in journal.faults(kept)[:5]:
                report(number, f"the journal: {fault}")
            if witness:
                unwritten.append(witness.missing(kept, at, since_ms))
                if unwritten[-1] > lost:
                    report(number, f"the journal lacks a turn that ended {unwritten[-1]:.3f} s before")
        for agent in team.agents:
            text = (team.folder / "work" / agent / "a.txt").read_text()
            if text != agent:
                report(number, f"{agent}/a.txt has {text!r}")
        if registry.exists():
            try:
                json.loads(registry.read_text())
            except ValueError as error:
                report(number, f"the registry is torn: {error}")
            now = set(registry.read_text().split('"'))
            if missing := known - now:
                report(number, f"the registry lost {missing}")
    # A last start cleans up after all that was left, and ends in order.
    team.start()
    team.client().until_ready(team.agents)
    code = team.end()
    left = team.left_after(args.patience)
    if code != 0 or left:
        report("last", f"ended with {code}, left {left}")
    runs = list((team.folder / "eisen/run").glob("*.json"))
    folders = [path.name for path in (team.folder / "tmp").iterdir()]
    if runs or folders:
        report("last", f"files are left: {runs} {folders}")
    print(json.dumps({
        "kills": args.kills, "seed": seed, "agents": args.agents,
        "while_starting": while_starting, "with_all_wardens": all_killed, "prompts": writes,
        "until_all_had_ended_ms": {
            "median": round(1000 * sorted(ends)[len(ends) // 2]) if ends else None,
            "longest": round(1000 * max(ends, default=0)),
        },
        "journal_lacks_ms": {
            "median": round(1000 * sorted(unwritten)[len(unwritten) // 2]) if unwritten else None,
            "longest": round(1000 * max(unwritten, default=0)),
        },
        "problems": problems,
    }, indent=1))
finally:
    if team.child and team.child.poll() is None:
        team.child.kill()
        team.child.wait()
    team.left_after(args.patience)
    team.remove()
sys.exit(1 if problems else 0)
