#!/usr/bin/env python3
"""Plays the demo once, and writes what the console and the port showed into docs/demo.

    tests/record-demo.py target/release/eisen-core

Deltas in which files only cool are left out of docs/demo/wire.ndjson: there are ten a second."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def follow(port, lines):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        lines.extend(connection.makefile())


def news(lines):
    """The lines that say more than that files cool."""
    known = {}
    for line in lines:
        message = json.loads(line)
        if message["type"] == "delta":
            session = known.setdefault((message["agent_id"], message["session_id"]), {})
            told = {node["path"]: {**node, "heat": None} for node in message["updates"]}
            if not message["removed"] and all(session.get(path) == node for path, node in told.items()):
                continue
            session.update(told)
        yield line


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as home:
        # The agents of the demo, and what the console says to type, are the program by its name.
        os.symlink(program, home + "/eisen-core")
        environment = {**os.environ, "EISEN_DIR": home + "/dir", "PATH": home + ":" + os.environ["PATH"]}
        team = subprocess.Popen(["eisen-core", "up", "-c", "config/demo.toml"], cwd=ROOT, env=environment,
                                stdout=subprocess.PIPE, text=True)
        console, wire = [], []
        reader = threading.Thread(target=follow, args=(17320, wire))
        for line in team.stdout:
            console.append(line)
            if " listens on " in line:
                reader.start()
            if "  next: " in line:
                team.send_signal(signal.SIGINT)
        reader.join()
        assert team.wait() == 0
    for name, lines in (("console.txt", console), ("wire.ndjson", news(wire))):
        with open(f"{ROOT}/docs/demo/{name}", "w") as file:
            file.writelines(lines)


main()
