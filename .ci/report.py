#!/usr/bin/env python3
"""Prints what the steps of a gate took and its slowest tests, and writes both as JSON.

    .ci/report.py STEPS TESTS JSON

STEPS has a line for each step: its name, its budget in seconds, then uptime and idle time of all cores before
and after it, in hundredths of a second. TESTS is the output of the tests."""

import json
import os
import re
import sys

steps_file, tests_file, json_file = sys.argv[1:]
cores = os.cpu_count() or 1


def step(line):
    name, budget, *clock = line.split()
    begun, idle_before, ended, idle_after = map(int, clock)
    took = ended - begun
    idle = (idle_after - idle_before) / (took * cores) if took else 0
    return {"step": name, "seconds": took / 100, "budget": int(budget), "idle": round(min(idle, 1), 2)}


with open(steps_file) as lines:
    steps = [step(line) for line in lines]
with open(tests_file, errors="replace") as text:
    output = text.read()
times = [(float(took), name) for name, took in re.findall(r"^test (\S+) .*<([0-9.]+)s>$", output, re.M)]
slowest = [{"test": name, "seconds": took} for took, name in sorted(times, reverse=True)[:10]]
results = re.findall(r"^test result:.* (\d+) passed; (\d+) failed; (\d+) ignored", output, re.M)
passed, failed, left_out = (sum(map(int, column)) for column in zip(*results)) if results else (0, 0, 0)
tests = {"passed": passed, "failed": failed, "left_out": left_out}
whole = sum(step["seconds"] for step in steps)
with open(json_file, "w") as out:
    json.dump({"seconds": whole, "steps": steps, "tests": tests, "slowest": slowest}, out, indent=2)
    out.write("\n")

print("\n  seconds  budget  idle  step")
for s in steps:
    over = "  over its budget" if s["seconds"] > s["budget"] else ""
    print(f"{s['seconds']:9.1f} {s['budget']:7} {s['idle']:5.0%}  {s['step']}{over}")
print(f"{whole:9.1f}  all\n\nThe slowest tests, in seconds:")
for test in slowest:
    print(f"{test['seconds']:9.1f}  {test['test']}")
if results:
    print(f"\n{passed} tests passed, {failed} failed, {left_out} left out")
