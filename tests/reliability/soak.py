#!/usr/bin/env python3
"""Many agents and many clients for a while: memory over time, events lost or doubled, latency.

    tests/reliability/soak.py --seconds 60

Each agent is prompted again and again at a common rate; its turns read a file, write one, are denied
one of another's, and run a program in a terminal, in turns. Some clients check what they get: the
numbers of each session's deltas and turns have no gap and none twice. The others read, and some read
nothing for a while. Prints a line of figures each tenth of the time, and a JSON object at the end;
exits with 1 if something was lost, doubled, refused, or left behind."""

import argparse
import json
import random
import select
import sys
import threading
import time

from team import Client, Team, program

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--program", help="default: target/release/eisen-core")
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--agents", type=int, default=50)
parser.add_argument("--clients", type=int, default=100)
parser.add_argument("--checking", type=int, default=4, help="clients that check what they get")
parser.add_argument("--rate", type=float, default=50, help="turns a second, of all agents together")
parser.add_argument("--mix", default="read,write,denied,run", help="what turns do")
parser.add_argument("--keys", default="", help="more lines of the configuration")
args = parser.parse_args()

over = threading.Event()
problems = []


class Checker(threading.Thread):
    """Reads all that the port says, and finds what is missing or there twice."""

    def __init__(self, team):
        super().__init__(daemon=True)
        self.client, self.events, self.lagged = team.client(), 0, 0
        self.deltas, self.turns = {}, {}
        self.done = set()

    def run(self):
        try:
            for line in self.client:
                self.events += 1
                self.take(line)
        except (OSError, ValueError) as error:
            if not over.is_set():
                problems.append(f"a client lost its connection: {error}")

    def take(self, line):
        kind, key = line["type"], (line.get("agent_id"), line.get("session_id"))
        if kind == "lagged":
            # All snapshots follow; turns that were missed are none that were lost.
            self.lagged += 1
            self.turns.clear()
        elif kind == "snapshot":
            self.deltas[key] = line["seq"]
        elif kind == "delta":
            if key in self.deltas and line["seq"] != self.deltas[key] + 1:
                problems.append(f"delta {line['seq']} of {key} came after {self.deltas[key]}")
            self.deltas[key] = line["seq"]
        elif kind == "turn":
            last = self.turns.get(key)
            if last is not None and line["turn"] != last + 1:
                problems.append(f"turn {line['turn']} of {key} came after {last}")
            self.turns[key] = line["turn"]


class Readers(threading.Thread):
    """Clients that read, now and then one of them nothing for some seconds."""

    def __init__(self, team, count):
        super().__init__(daemon=True)
        self.clients = [Client(team.port) for _ in range(count)]
        self.bytes = 0

    def run(self):
        paused, until = None, 0
        while not over.is_set():
            if self.clients and time.monotonic() > until:
                paused, until = random.choice(self.clients), time.monotonic() + random.uniform(1, 10)
            readable = [client.socket for client in self.clients if client is not paused]
            for one in select.select(readable, [], [], 0.2)[0]:
                read = one.recv(1 << 18)
                self.bytes += len(read)
                if not read and not over.is_set():
                    problems.append("the port closed a reader's connection")
                    self.clients = [client for client in self.clients if client.socket is not one]
            time.sleep(0.02)


class Prompter(threading.Thread):
    """Prompts the agents in turn at the common rate, and times the answers."""

    def __init__(self, team):
        super().__init__(daemon=True)
        self.team, self.client = team, team.client()
        self.asked, self.took, self.sent, self.late = {}, [], 0, 0
        self.lock = threading.Lock()

    def answers(self):
        try:
            for line in self.client:
                if line["type"] not in ("rpc_result", "rpc_error") or line["id"] is None:
                    continue
                with self.lock:
                    began = self.asked.pop(line["id"], None)
                if began is None:
                    problems.append(f"an answer to nothing: {line}")
                    continue
                self.took.append(time.monotonic() - began)
                if line["type"] == "rpc_error":
                    problems.append(f"refused: {line}")
        except (OSError, ValueError) as error:
            if not over.is_set():
                problems.append(f"the prompting client lost its connection: {error}")

    def run(self):
        threading.Thread(target=self.answers, daemon=True).start()
        mix, begin = args.mix.split(","), time.monotonic()
        while not over.is_set():
            due = int((time.monotonic() - begin) * args.rate)
            if due <= self.sent:
                time.sleep(min(0.01, 1 / args.rate))
                continue
            with self.lock:
                waiting = len(self.asked)
            if waiting > 2 * len(self.team.agents):
                # The machine is slower than the rate: what is late is not made up for.
                self.late += 1
                begin = time.monotonic() - self.sent / args.rate
                time.sleep(0.05)
                continue
            agent = self.team.agents[self.sent % len(self.team.agents)]
            text = mix[(self.sent // len(self.team.agents)) % len(mix)]
            with self.lock:
                id = self.client.last + 1
                self.asked[id] = time.monotonic()
                self.client.ask("prompt", agent_id=agent, text=text)
            self.sent += 1


def percentile(values, part):
    values = sorted(values)
    return round(1000 * values[int(part * (len(values) - 1))], 1) if values else None


team = Team(program(args.program), args.agents, args.keys)
try:
    team.start()
    team.client().until_ready(team.agents)
    checkers = [Checker(team) for _ in range(args.checking)]
    readers = Readers(team, max(0, args.clients - args.checking - 1))
    prompter = Prompter(team)
    for thread in [*checkers, readers, prompter]:
        thread.start()
    begin, step, memory = time.monotonic(), args.seconds / 10, []
    print("seconds   turns  resident  p50 ms  p99 ms", flush=True)
    for number in range(1, 11):
        time.sleep(max(0, begin + number * step - time.monotonic()))
        took, prompter.took = prompter.took, []
        now = time.monotonic() - begin
        memory.append((round(now), len(took), team.memory(), percentile(took, 0.5), percentile(took, 0.99), max(took, default=0)))
        row = memory[-1]
        print(f"{row[0]:7} {sum(m[1] for m in memory):7} {row[2] / 2**20:6.1f} MB {row[3]!s:>7} {row[4]!s:>7}", flush=True)
    over.set()
    time.sleep(1)
    answered = sum(row[1] for row in memory)
    code = team.end()
    left = team.left_after(10)
    if code != 0:
        problems.append(f"the team ended with {code}")
    problems += [f"left behind: {process}" for process in left]
    turns = [row[1] for row in memory]
    grown = memory[-1][2] - memory[4][2]
    result = {
        "seconds": round(args.seconds), "agents": args.agents, "clients": args.clients,
        "turns": answered, "turns_a_second": round(answered / args.seconds, 1),
        "late": prompter.late,
        "resident_mb": [round(row[2] / 2**20, 1) for row in memory],
        "bytes_a_turn_in_the_second_half": round(grown / max(1, sum(turns[5:]))),
        "answer_ms": {"p50": [row[3] for row in memory], "p99": [row[4] for row in memory],
                      "longest": round(1000 * max(row[5] for row in memory))},
        "events_checked": sum(checker.events for checker in checkers),
        "lagged": sum(checker.lagged for checker in checkers),
        "problems": len(problems), "first_problems": problems[:10],
    }
    print(json.dumps(result, indent=1))
finally:
    over.set()
    if team.child and team.child.poll() is None:
        team.child.kill()
        team.child.wait()
    team.remove()
sys.exit(1 if problems else 0)
