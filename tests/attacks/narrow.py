"""Further tries from inside, by names of `inside.py`: from a right that an agent has to one that it has not. It may
list any folder, read files that nobody of the team may write, and open paths by the kernel's newer ways."""

import fcntl
import os
import socket
import struct
import subprocess

from inside import CORE, EMPTY, HERE, SECRET, UI, WS
from inside import call, fd_path, opened, read

# It may be read by each agent, and written by none.
RULES = WS + "/AGENTS.md"
TRIES = {}
IN_ROOT, BENEATH, NO_LINKS, CACHED = 0x10, 0x08, 0x04, 0x20


def handle(path, flags=os.O_RDONLY):
    return os.open(path, flags | os.O_NONBLOCK)


def listing(path=CORE):
    return handle(path, os.O_RDONLY | os.O_DIRECTORY)


def by_how(folder, path, resolve, flags=os.O_RDONLY):
    fd = call(437, handle(folder, os.O_PATH), path, struct.pack("3Q", flags, 0, resolve), 24)
    return os.read(fd, 4096).decode()


def linked(make):
    """A second name in the zone, and whether it opens for writing."""
    make()
    return opened(UI + "/rules", os.O_WRONLY)


for name, way in {
    "mode": lambda fd: os.fchmod(fd, 0o777) is None, "owner": lambda fd: os.fchown(fd, os.getuid(), os.getgid()) is None,
    "times": lambda fd: os.utime(fd) is None, "attribute": lambda fd: os.setxattr(fd, "user.x", b"1") is None,
    "attribute-removed": lambda fd: os.removexattr(fd, "user.x") is None,
    "flags": lambda fd: fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x40)) is not None,
    "project": lambda fd: fcntl.ioctl(fd, 0x401c5820, bytes(28)) is not None,
    "lease": lambda fd: fcntl.fcntl(fd, 1024, fcntl.F_WRLCK) == 0,
    "encrypted": lambda fd: fcntl.ioctl(fd, 0x800c6613, bytes(12)) is not None,
    "immutable-by-verity": lambda fd: fcntl.ioctl(fd, 0x40806685, bytes(128)) is not None,
}.items():
    TRIES["listed-folder-" + name] = lambda way=way: way(listing())
    TRIES["readable-file-" + name] = lambda way=way: way(handle(RULES))
    TRIES["handle-" + name] = lambda way=way: way(handle(SECRET, os.O_PATH))

TRIES.update({
    "readable-file-emptied": lambda: os.close(os.open(RULES, os.O_RDONLY | os.O_TRUNC)) or not os.path.getsize(RULES),
    "readable-file-written": lambda: opened(RULES, os.O_WRONLY),
    "readable-file-appended": lambda: opened(RULES, os.O_RDWR | os.O_APPEND),
    "readable-file-reopened": lambda: opened(fd_path(handle(RULES)), os.O_RDWR),
    "readable-file-reopened-emptied": lambda: opened(fd_path(handle(RULES)), os.O_TRUNC) and not os.path.getsize(RULES),
    "readable-file-linked": lambda: linked(lambda: os.link(RULES, UI + "/rules")),
    "readable-file-linked-by-handle": lambda: linked(lambda: call("linkat", handle(RULES), "", HERE, UI + "/rules", EMPTY)),
    "readable-file-moved": lambda: linked(lambda: os.rename(RULES, UI + "/rules")),
    "readable-file-exchanged": lambda: call("renameat2", HERE, RULES, HERE, UI + "/a.txt", 2) == 0,
    "readable-file-replaced": lambda: os.rename(UI + "/sub/x.txt", RULES) is None,
    "readable-file-removed": lambda: os.unlink(RULES) is None,
    "readable-file-truncated": lambda: os.truncate(RULES, 0) is None,
    "readable-file-allocated": lambda: os.posix_fallocate(handle(RULES), 0, 100) is None,
    "readable-file-copied-over": lambda: os.copy_file_range(handle(UI + "/a.txt"), handle(RULES), 10) > 0,
    "rooted-at-closed-folder": lambda: by_how(CORE, "/auth.rs", IN_ROOT),
    "rooted-at-zone": lambda: by_how(UI, "/.env", IN_ROOT),
    "rooted-at-workspace": lambda: by_how(WS, "/core/auth.rs", IN_ROOT | NO_LINKS),
    "rooted-by-dots": lambda: by_how(UI, "../../core/auth.rs", IN_ROOT) + by_how(UI, "/..//core/auth.rs", 0),
    "beneath-zone": lambda: by_how(UI, "sub/../.env", BENEATH),
    "beneath-closed-folder": lambda: by_how(CORE, "nul/../auth.rs", BENEATH),
    "from-cache": lambda: by_how(CORE, "auth.rs", CACHED),
    "from-cache-denied": lambda: os.path.exists(UI + "/.env") and by_how(UI, ".env", CACHED),
    "longer-how": lambda: os.read(call(437, HERE, SECRET, struct.pack("4Q", 0, 0, 0, 0), 32), 4096).decode(),
    "by-descriptor-folder": lambda: read(f"/proc/self/fd/{handle(CORE, os.O_PATH)}/auth.rs"),
    "by-working-folder": lambda: os.chdir(CORE) or read("/proc/self/cwd/auth.rs"),
    "by-parent-of-descriptor": lambda: read(f"/proc/self/fd/{listing(UI)}/../core/auth.rs"),
    "by-task-of-child": lambda: read(f"/proc/{os.getpid()}/task/{os.getpid()}/root{SECRET}"),
    "datagram-by-pair": lambda: bool(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
    "raw-by-pair": lambda: bool(socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)),
    "shell-descriptor": lambda: subprocess.run(
        ["sh", "-c", f"exec 9<{CORE}; cat /dev/fd/9/auth.rs"], capture_output=True).stdout.decode(),
})
