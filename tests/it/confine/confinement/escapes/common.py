"""What the escapes share: where things are, and system calls that Python has no name for."""

import ctypes
import errno
import os
import sys

OPEN = os.environ["OPEN"]  # inside the zone; the current folder, too
MIXED = os.environ["MIXED"]  # inside the zone, but for some names
CLOSED = os.environ["CLOSED"]  # in the workspace, outside the zone
DOCS = os.environ["DOCS"]  # in the workspace, may be read and not written
OUTSIDE = os.environ["OUTSIDE"]  # outside the workspace
VAULT = os.environ["VAULT"]  # in $EISEN_DIR

SECRET = CLOSED + "/secret"
VICTIM_FILE = CLOSED + "/victim"
GUIDE = DOCS + "/guide"

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_SYMLINK_FOLLOW = 0x400
AT_SYMLINK_NOFOLLOW = 0x100

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *args):
    """Makes a system call; raises OSError as Python's own do."""
    plain = []
    for arg in args:
        if isinstance(arg, str):
            arg = os.fsencode(arg)
        plain.append(ctypes.c_long(arg) if isinstance(arg, int) else arg)
    result = libc.syscall(ctypes.c_long(number), *plain)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def show(path, flags=os.O_RDONLY, dir_fd=None):
    """Prints what is in a file."""
    show_fd(os.open(path, flags, dir_fd=dir_fd))


def show_fd(fd):
    os.write(1, os.read(fd, 4096) + b"\n")


def link_followed(path, new):
    """Makes a link to what a link in `/proc` leads to."""
    syscall(265, AT_FDCWD, path, AT_FDCWD, new, AT_SYMLINK_FOLLOW)


def through():
    """What this escape was to do has been done, as far as it can tell."""
    print("through", flush=True)


def missing(why):
    """This cannot be tried here, with or without a wall."""
    print("missing:", why, flush=True)
    sys.exit(77)


def victim():
    """A process outside: its number, where in its memory the secret is, and its descriptor."""
    return int(os.environ["VICTIM"]), int(os.environ["ADDRESS"], 16), int(os.environ["DESCRIPTOR"])


def run(rows):
    """Runs the escape that the first argument names."""
    print("tried", flush=True)
    _, name = sys.argv[1].split("-", 1)
    try:
        rows[name.replace("-", "_")]()
    except OSError as error:
        if error.errno == errno.ENOSYS:
            missing(error)
        raise
