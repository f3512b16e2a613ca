"""Tries escapes that are written in Python, each in a child of its own, one after the other:
`trials.py FILE PROGRESS`. FILE has a row of JSON for each escape: its name, its environment, and
where its output goes. The interpreter starts once for all of them; nothing else is shared."""

import ctypes, errno, fcntl, mmap, resource, signal, socket, struct, subprocess  # noqa: what they import
import json
import os
import sys
import traceback

TOOLS = os.path.dirname(os.path.abspath(__file__))


def program(path):
    with open(path) as file:
        return compile(file.read(), path, "exec")


def attempt(code, name, environment, output, inherited):
    """Runs one escape in this process, which ends with it."""
    os.environ.update(environment)
    os.chdir(environment["OPEN"])
    for fd, path, flags in (
        (0, "/dev/null", os.O_RDONLY),
        (1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (9, inherited, os.O_RDONLY),
    ):
        if path:
            opened = os.open(path, flags, 0o644)
            os.dup2(opened, fd)
            os.close(opened)
    os.dup2(1, 2)
    sys.argv = [sys.argv[0], name]
    try:
        exec(code, {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main():
    programs = {}
    with open(sys.argv[1]) as file:
        rows = [json.loads(row) for row in file]
    for row in rows:
        path = f"{TOOLS}/{row['name'].split('-')[0]}.py"
        if path not in programs:
            programs[path] = program(path)
        child = os.fork()
        if child == 0:
            attempt(programs[path], **row)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with open(sys.argv[2], "w") as progress:
            progress.write(f"{row['name']} {code if code >= 0 else 128 - code}\n")


main()
