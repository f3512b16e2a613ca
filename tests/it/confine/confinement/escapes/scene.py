"""Makes what the escapes are after, and tells how it looks: `scene.py make|look FILE`, where FILE
has a row a line: name, secret, and the folders OPEN, MIXED, CLOSED, DOCS, OUTSIDE, VAULT."""

import fcntl
import json
import os
import shutil
import stat
import struct
import subprocess
import sys

LONG_AGO = 1_000_000_000


def put(path, text, mode=0o644):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def marked(path):
    put(path, "untouched\n")
    os.setxattr(path, "user.mark", b"old")
    os.utime(path, (LONG_AGO, LONG_AGO))


def make(name, secret, opened, mixed, closed, docs, outside, vault):
    for folder in (
        opened,
        mixed + "/denied",
        mixed + "/deep/core",
        closed + "/inner",
        closed + "/empty",
        docs,
        outside,
        vault,
    ):
        os.makedirs(folder)
    put(opened + "/own", "mine\n")
    put(mixed + "/fine", "mine\n")
    for path in (
        mixed + "/.env",
        mixed + "/denied/secret",
        mixed + "/deep/core/secret",
        closed + "/secret",
        closed + "/inner/secret",
        vault + "/secret",
    ):
        put(path, secret + "\n")
    for path in (closed + "/victim", docs + "/guide", vault + "/victim"):
        marked(path)
    put(closed + "/script", f"#!/bin/sh\necho {secret}\n", 0o755)
    tools = os.path.dirname(os.path.abspath(__file__))
    if "exec" in name:
        shutil.copy(tools + "/say", closed + "/binary")
        shutil.copy(tools + "/say.so", closed + "/library.so")
    if "draft" in name:
        # Allowed alone.
        put(closed + "/single.txt", "mine\n")
        put(closed + "/single.txt.lock", secret + "\n")
        marked(closed + "/single.txt.bak")
    if "hidden" in name:
        os.makedirs(outside + "/a/hidden")
        put(outside + "/a/hidden/secret", secret + "\n")
    if "odd-names" in name:
        for odd in (b"new\nline", b"\xff\xfe", b"n" * 255, b" ", b"-"):
            put(os.fsencode(closed) + b"/" + odd, secret + "\n")
    if "write-git" in name:
        # In the zone, where commits may be made.
        subprocess.run(["git", "init", "-q", opened], check=True)
    elif "git" in name:
        folder = closed + "/repository"
        git = lambda *args: subprocess.run(
            ["git", "-C", folder, "-c", "user.name=u", "-c", "user.email=e", *args], check=True
        )
        os.mkdir(folder)
        git("init", "-q")
        put(folder + "/secret", secret + "\n")
        git("add", ".")
        git("commit", "-q", "-m", "first")


def attributes(path):
    if not stat.S_ISREG(os.lstat(path).st_mode) and not os.path.isdir(path):
        return ""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        flags = struct.unpack("I", fcntl.ioctl(fd, 0x80086601, b"\0" * 4))[0]
        os.close(fd)
    except OSError:
        flags = "?"
    found = {name: repr(os.getxattr(path, name)) for name in os.listxattr(path)}
    return f"{flags} {found}"


def look_at(path):
    info = os.lstat(path)
    shown = f"{info.st_mode:o} {info.st_uid} {info.st_gid} {info.st_mtime_ns} {attributes(path)}"
    if not stat.S_ISDIR(info.st_mode):
        # Folders have links from what is in them, which is looked at by itself.
        shown += f" {info.st_nlink}"
    if stat.S_ISREG(info.st_mode):
        shown += " " + repr(open(path, "rb").read())
    if stat.S_ISLNK(info.st_mode):
        shown += " " + os.readlink(path)
    return shown


def look(name, secret, opened, mixed, closed, docs, outside, vault):
    seen = {}
    for top in (closed, docs, vault, mixed, opened):
        if not os.path.exists(top):
            seen[top] = "gone"
        for folder, folders, files in os.walk(top):
            within = os.path.relpath(folder, top)
            denied = top in (closed, docs, vault) or within.split("/")[0] in ("denied", "deep")
            for path in [folder] + [folder + "/" + file for file in files + folders]:
                if os.path.basename(path) == "single.txt":
                    continue
                if "draft" in name and path in (closed, closed + "/empty", closed + "/empty/later"):
                    # Drafts may come and go, and in the other folder somebody else is at work.
                    continue
                forbidden = os.path.basename(path) == ".env" or (
                    denied if path != top else top in (closed, docs, vault)
                )
                if forbidden:
                    # The folder around may be used.
                    if path == mixed + "/deep":
                        seen[path] = "there"
                    else:
                        seen[path] = look_at(path)
    return seen


def ascii_json(seen):
    # Names need not be text.
    plain = lambda looks: {ascii(path): look for path, look in looks.items()}
    return json.dumps({name: plain(looks) for name, looks in seen.items()})


def main():
    rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[2])]
    if sys.argv[1] == "make":
        for row in rows:
            make(*row)
    else:
        print(ascii_json({row[0]: look(*row) for row in rows}))


main()
