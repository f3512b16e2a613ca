"""Further tries from inside, by names of `inside.py`: against the other agents of the team and the wardens, the
team's files in `$EISEN_DIR`, by races between check and use, and by programs."""

import ctypes
import fcntl
import mmap
import os
import platform
import resource
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time

from inside import ACCOMPLICE, CONFIG, CORE, EMPTY, FOLLOW, HERE, HOME, MARK, OTHER, OWN, SECRET, SUPERVISOR, UI, WS
from inside import call, fd_path, libc, opened, passed, read

# A process of another agent with the secret open and in memory, a child of it that sleeps, its warden.
PEER, PEER_FD, PEER_ADDRESS, PEER_LENGTH, SLEEPER = map(int, os.environ["ATTACK_PEER"].split())
TRIES = {}
PTRACE, READ_MEMORY, WRITE_MEMORY = (101, 117), (310, 270), (311, 271)
X86 = platform.machine() == "x86_64"


def attempt(function):
    TRIES[function.__name__.replace("_", "-")] = function
    return function


def by_number(numbers, *args):
    return call(numbers[not X86], *args)


def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])


def warden():
    """The process outside the wall that started this agent."""
    pid = os.getpid()
    while (above := parent(pid)) > 1:
        if open(f"/proc/{above}/comm").read().startswith("eisen") or above == SUPERVISOR:
            return above
        pid = above
    raise OSError("no warden")


def first(attempts):
    """What the first of many attempts gets that is not refused."""
    error = None
    for function in attempts:
        try:
            if got := function():
                return got
        except OSError as refused:
            error = refused
    if error:
        raise error


# --- other agents, and the wardens

for name, path in {
    "peer-root": f"/proc/{PEER}/root{SECRET}", "peer-folder": f"/proc/{PEER}/cwd/core/auth.rs",
    "peer-descriptor": f"/proc/{PEER}/fd/{PEER_FD}",
    "peer-descriptor-of-thread": f"/proc/{PEER}/task/{PEER}/fd/{PEER_FD}",
    "peer-root-of-child": f"/proc/{SLEEPER}/root{SECRET}",
}.items():
    TRIES[name] = lambda path=path: read(path)
for name in ("environ", "maps", "smaps", "stack", "syscall", "auxv", "io", "pagemap", "personality", "mountinfo"):
    if name != "mountinfo":
        TRIES[f"peer-{name}"] = lambda name=name: len(open(f"/proc/{PEER}/{name}", "rb").read(4096)) > 0
for name in ("clear_refs", "coredump_filter", "oom_score_adj", "comm", "autogroup", "timerslack_ns", "setgroups"):
    if os.path.exists(f"/proc/{PEER}/{name}"):
        TRIES[f"peer-{name}-written"] = lambda name=name: opened(f"/proc/{PEER}/{name}", os.O_WRONLY)


@attempt
def peer_mapped_files():
    folder = f"/proc/{PEER}/map_files"
    return first(lambda name=name: opened(f"{folder}/{name}") for name in os.listdir(folder))


@attempt
def peer_memory():
    fd = os.open(f"/proc/{PEER}/mem", os.O_RDONLY)
    return os.pread(fd, PEER_LENGTH, PEER_ADDRESS).decode()


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def moved(numbers, text):
    buffer = ctypes.create_string_buffer(text, PEER_LENGTH)
    ours, theirs = Piece(ctypes.addressof(buffer), PEER_LENGTH), Piece(PEER_ADDRESS, PEER_LENGTH)
    by_number(numbers, PEER, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    return buffer.value.decode()


TRIES["peer-memory-read-by-call"] = lambda: moved(READ_MEMORY, b"")
TRIES["peer-memory-written-by-call"] = lambda: bool(moved(WRITE_MEMORY, b"x"))
TRIES["peer-attached"] = lambda: by_number(PTRACE, 16, PEER, 0, 0) == 0
TRIES["peer-seized"] = lambda: by_number(PTRACE, 0x4206, PEER, 0, 0) == 0
TRIES["peer-descriptor-taken"] = lambda: os.pread(call(438, os.pidfd_open(PEER), PEER_FD, 0), 4096, 0).decode()
TRIES["peer-signalled"] = lambda: os.kill(PEER, signal.SIGCONT) is None
TRIES["peer-signalled-by-pidfd"] = lambda: signal.pidfd_send_signal(os.pidfd_open(PEER), signal.SIGCONT) is None
TRIES["peer-thread-signalled"] = lambda: by_number((234, 131), PEER, PEER, signal.SIGCONT) == 0
TRIES["peer-group-signalled"] = lambda: os.killpg(os.getpgid(PEER), signal.SIGCONT) is None
TRIES["peer-pages-moved"] = lambda: by_number((279, 239), PEER, 1, ctypes.byref(ctypes.c_void_p(PEER_ADDRESS)), 0,
                                              ctypes.byref(ctypes.c_int()), 0) == 0
TRIES["peer-advised"] = lambda: call(440, os.pidfd_open(PEER), ctypes.byref(
    Piece(PEER_ADDRESS & ~4095, 4096)), 1, 20, 0) >= 0
TRIES["peer-watched"] = lambda: by_number(
    (298, 241), struct.pack("2I", 1, 112).ljust(112, b"\0"), PEER, -1, -1, 0) >= 0
TRIES["peer-limited"] = lambda: bool(resource.prlimit(PEER, resource.RLIMIT_CPU, (1, 1)))


@attempt
def peer_signalled_by_descriptor():
    """A pipe whose readiness signals somebody else."""
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, SLEEPER)
    fcntl.fcntl(ours, 10, signal.SIGTERM)
    fcntl.fcntl(ours, fcntl.F_SETFL, fcntl.fcntl(ours, fcntl.F_GETFL) | os.O_ASYNC)
    os.write(theirs, b"x")
    time.sleep(0.3)
    status = open(f"/proc/{SLEEPER}/stat").read().rsplit(")", 1)[1].split()[0]
    return status in "ZX"


TRIES["warden-descriptors-taken"] = lambda: first(
    lambda number=number: call(438, os.pidfd_open(warden()), number, 0) for number in range(32))
TRIES["warden-descriptors-opened"] = lambda: first(
    lambda number=number: opened(f"/proc/{warden()}/fd/{number}") for number in range(32))
TRIES["warden-root"] = lambda: read(f"/proc/{warden()}/root{SECRET}")
TRIES["warden-environment"] = lambda: len(open(f"/proc/{warden()}/environ", "rb").read()) > 0
TRIES["warden-signalled"] = lambda: os.kill(warden(), signal.SIGCONT) is None
TRIES["warden-seized"] = lambda: by_number(PTRACE, 0x4206, warden(), 0, 0) == 0
TRIES["supervisor-descriptors-taken"] = lambda: first(
    lambda number=number: call(438, os.pidfd_open(SUPERVISOR), number, 0) for number in range(64))
TRIES["supervisor-descriptors-opened"] = lambda: first(
    lambda number=number: opened(f"/proc/{SUPERVISOR}/fd/{number}") for number in range(64))


@attempt
def descriptors_inherited():
    """What an agent was born with that leads to a file outside its zone. Its own: not those that Python opened."""
    agent = parent(os.getpid())
    for name in os.listdir(f"/proc/{agent}/fd"):
        leads = os.readlink(f"/proc/{agent}/fd/{name}")
        if leads.startswith((HOME, CORE)) or "seccomp" in leads or "landlock" in leads or "pidfd" in leads:
            return f"not refused: {leads}"


@attempt
def folder_of_another_by_its_link():
    os.symlink(OTHER, os.environ["TMPDIR"] + "/other")
    return read(os.environ["TMPDIR"] + "/other/private.txt")


# --- the team's own files

# Where the configuration puts it: outside `$EISEN_DIR`, which no agent reaches into at all.
JOURNAL = os.path.dirname(CONFIG) + "/journal.db"
for name, path in {"journal": JOURNAL, "journal-wal": JOURNAL + "-wal", "journal-shm": JOURNAL + "-shm",
                   "journal-lock": JOURNAL + ".lock", "sessions": HOME + "/core_sessions.json",
                   "sessions-lock": HOME + "/core_sessions.lock"}.items():
    TRIES[f"{name}-read"] = lambda path=path: opened(path)
    TRIES[f"{name}-written"] = lambda path=path: opened(path, os.O_WRONLY)
    TRIES[f"{name}-opened-for-both"] = lambda path=path: opened(path, os.O_RDWR | os.O_CREAT)
    TRIES[f"{name}-removed"] = lambda path=path: os.unlink(path) is None
    TRIES[f"{name}-linked"] = lambda path=path: os.link(path, UI + "/team-file") or opened(UI + "/team-file")
    TRIES[f"{name}-emptied"] = lambda path=path: os.truncate(path, 0) is None
    TRIES[f"{name}-mode"] = lambda path=path: os.chmod(path, 0o777) is None
    TRIES[f"{name}-time"] = lambda path=path: os.utime(path) is None
    TRIES[f"{name}-replaced"] = lambda path=path: os.rename(UI + "/sub/x.txt", path) is None
TRIES["journal-hot"] = lambda: opened(JOURNAL + "-journal", os.O_CREAT | os.O_WRONLY)
TRIES["journal-corrupt"] = lambda: opened(JOURNAL + ".corrupt-1", os.O_CREAT | os.O_WRONLY)
TRIES["journal-moved"] = lambda: os.rename(os.path.dirname(JOURNAL), UI + "/gone") is None
TRIES["journal-folder-made"] = lambda: os.mkdir(HOME + "/teams/mine") is None
TRIES["journal-by-sqlite"] = lambda: sqlite3.connect(f"file:{JOURNAL}?mode=ro", uri=True).execute(
    "SELECT count(*) FROM events").fetchone()[0]
TRIES["journal-by-command"] = lambda: "not refused" if subprocess.run(
    ["sqlite3", JOURNAL, "SELECT 1"], capture_output=True).stdout else None
TRIES["journal-by-link"] = lambda: os.symlink(JOURNAL, UI + "/journal") or opened(UI + "/journal")
TRIES["eisen-folder-mode"] = lambda: os.chmod(HOME, 0o777) is None
TRIES["eisen-folder-moved"] = lambda: os.rename(HOME, UI + "/home") is None
TRIES["eisen-folder-handle"] = lambda: read("run/attacked.json", os.open(HOME, os.O_PATH))


@attempt
def journal_by_own_handle():
    return opened(fd_path(os.open(JOURNAL, os.O_PATH)))


@attempt
def journal_locked():
    """A lock on the folder or a file of it would stop the team."""
    folder = os.open(os.path.dirname(JOURNAL), os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(os.open(JOURNAL + ".lock", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder > 0


# --- ways to a descriptor

def child_with(act):
    """A child that holds something open; its pid. Its standard input keeps it alive."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        act()
        os.write(theirs, b"x")
        time.sleep(20)
        os._exit(0)
    os.read(ours, 1)
    return child


for name, way in {
    "own-handle-of-folder": lambda: read("auth.rs", os.open(CORE, os.O_PATH)),
    "own-handle-reopened": lambda: read(fd_path(os.open(SECRET, os.O_PATH))),
    "own-handle-by-thread": lambda: read(f"/proc/thread-self/fd/{os.open(SECRET, os.O_PATH)}"),
    "own-handle-by-dev": lambda: read(f"/dev/fd/{os.open(SECRET, os.O_PATH)}"),
    "own-handle-linked": lambda: call("linkat", os.open(SECRET, os.O_PATH), "", HERE, UI + "/own", EMPTY) == 0,
    "folder-entered": lambda: os.chdir(CORE) or read("auth.rs"),
    "folder-of-child": lambda: read(f"/proc/{child_with(lambda: os.chdir(CORE))}/cwd/auth.rs"),
    "handle-of-child": lambda: read(f"/proc/{child_with(lambda: os.dup2(os.open(SECRET, os.O_PATH), 99))}/fd/99"),
    "listing-of-folder": lambda: read("auth.rs", os.open(CORE, os.O_RDONLY | os.O_DIRECTORY)),
    "unnamed-file-in-folder": lambda: opened(CORE, os.O_TMPFILE | os.O_RDWR),
    "unnamed-file-linked-by-handle": lambda: call(
        "linkat", os.open(UI, os.O_TMPFILE | os.O_RDWR), "", HERE, CORE + "/nameless2", EMPTY) == 0,
    "faults-by-device": lambda: fcntl.ioctl(os.open("/dev/userfaultfd", os.O_RDWR), 0xaa00, 0) >= 0,
    "events-by-fanotify": lambda: call("fanotify_init", 0x200, 0) >= 0,
    "mounts-by-pidfd": lambda: call("setns", fcntl.ioctl(os.pidfd_open(ACCOMPLICE), 0xff03, 0), 0) == 0,
    "root-changed": lambda: os.fchdir(passed("plain")[2]) or read(SECRET[1:]),
    "sent-from-descriptor": lambda: os.sendfile(os.open(UI + "/sent", os.O_CREAT | os.O_RDWR), os.open(
        SECRET, os.O_PATH), 0, 100) > 0,
    "attribute-by-newer-call": lambda: call(463, HERE, SECRET, 0, "user.x", struct.pack("QII", 0, 0, 0), 16) == 0,
    "flags-by-newer-call": lambda: call(469, HERE, SECRET, struct.pack("3Q", 0, 0, 0), 24, 0) == 0,
    "tree-by-newer-call": lambda: call(467, HERE, CORE, 1, 0, 0) >= 0,
    "socket-by-handle": lambda: received(fd_path(os.open(OWN + "/outside.sock", os.O_PATH))),
}.items():
    TRIES[name] = way


def received(address):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(3)
        client.connect(address)
        return os.pread(socket.recv_fds(client, 16, 1)[1][0], 4096, 0).decode()


@attempt
def call_of_another_architecture():
    """`open` by the calls of 32 bits, with its path below 4 GiB."""
    if not X86:
        raise OSError("x86_64 only")
    low = libc.mmap
    low.restype, low.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    at = low(None, 4096, 7, 0x22 | 0x40, -1, 0)
    code = b"\x53\xb8\x05\x00\x00\x00\xbb" + struct.pack("I", at + 256) + b"\x31\xc9\x31\xd2\xcd\x80\x5b\xc3"
    ctypes.memmove(at, code, len(code))
    ctypes.memmove(at + 256, SECRET.encode() + b"\0", len(SECRET) + 1)
    fd = ctypes.CFUNCTYPE(ctypes.c_int)(at)()
    return fd >= 0 and os.read(fd, 4096).decode()


TRIES["call-of-x32"] = lambda: os.read(call(0x40000000 | 2, SECRET, 0, 0), 4096).decode()


# --- programs

def said(*argv, **options):
    done = subprocess.run(argv, capture_output=True, timeout=20, stdin=subprocess.DEVNULL, **options)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def from_memory(*argv, content=None):
    """Executes a program that lies in memory."""
    memory = os.memfd_create("program", 0)
    os.write(memory, content or open("/bin/cat", "rb").read())
    script = f"import os; os.execve({memory}, {list(argv)!r}, {{}})"
    return said("python3", "-c", script, pass_fds=(memory,))


loader = next((path for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(path)), None)
for name, way in {
    "program-from-memory": lambda: from_memory("cat", SECRET),
    "script-from-memory": lambda: from_memory("x", content=f"#!/bin/cat {SECRET}\n".encode()),
    "copied-program": lambda: said("sh", "-c", f"cp /bin/cat $TMPDIR/c; $TMPDIR/c {SECRET}"),
    "program-by-loader": lambda: said(loader, "/bin/cat", SECRET),
    "library-loaded": lambda: said("true", env={"LD_PRELOAD": SECRET, "PATH": "/bin:/usr/bin"}).replace("ERROR", ""),
    "git-hashes": lambda: said("git", "hash-object", "-w", SECRET) and said(
        "git", "cat-file", "-p", said("git", "hash-object", "-w", SECRET).strip()),
    "git-difference": lambda: said("git", "diff", "--no-index", "/dev/null", SECRET),
    "git-worktree": lambda: said("git", "worktree", "add", UI + "/tree") and None,
    "git-clone": lambda: said("git", "clone", WS, UI + "/clone") and read(UI + "/clone/core/auth.rs"),
    "git-alternates": lambda: opened(WS + "/.git/objects/info/alternates", os.O_CREAT | os.O_WRONLY),
    "git-commondir": lambda: opened(WS + "/.git/commondir", os.O_CREAT | os.O_WRONLY),
    "git-index-fsmonitor": lambda: opened(WS + "/.git/hooks/fsmonitor", os.O_CREAT | os.O_WRONLY),
    "tar": lambda: said("tar", "-cOf", "-", CORE),
    "new-privileges": lambda: said("sudo", "-n", "cat", SECRET) + said("su", "-c", f"cat {SECRET}"),
    "ping": lambda: "1 received" in said("ping", "-c1", "-W1", "-S", "1", "127.0.0.1") and None,
    "unshare-command": lambda: said("unshare", "-r", "cat", SECRET),
    "command-of-the-team": lambda: said("eisen-core", "history"),
}.items():
    TRIES[name] = way


# --- between check and use

class Flip:
    """A string in memory that another thread changes all the time."""

    def __init__(self, *texts):
        self.buffer = ctypes.create_string_buffer(max(map(len, texts)) + 1)
        self.stop = threading.Event()
        self.texts = [text.encode() + b"\0" for text in texts]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        at = ctypes.addressof(self.buffer)
        while not self.stop.is_set():
            for text in self.texts:
                for _ in range(20):
                    ctypes.memmove(at, text, len(text))


def raced(act, *texts, seconds=1.5):
    flip, end = Flip(*texts), time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            try:
                if got := act(flip.buffer):
                    return got
            except OSError:
                pass
    finally:
        flip.stop.set()


def content(fd):
    text = os.read(fd, 4096).decode("utf-8", "replace")
    os.close(fd)
    return MARK in text and text


def exists(path):
    return os.path.lexists(path) and f"not refused: {path}"


HARMLESS = UI + "/a.txt"
how = struct.pack("3Q", os.O_RDONLY, 0, 0)
OPENAT, RENAMEAT, LINKAT, UNLINKAT, MKDIRAT, SYMLINKAT, FCHMODAT = (
    (257, 56), (264, 38), (265, 37), (263, 35), (258, 34), (266, 36), (268, 53))
before = lambda path: os.stat(path).st_mode
TRIES["race-open"] = lambda: raced(lambda p: content(by_number(OPENAT, HERE, p, 0, 0)), HARMLESS, SECRET)
TRIES["race-open-newer"] = lambda: raced(lambda p: content(call(437, HERE, p, how, 24)), HARMLESS, SECRET)
TRIES["race-token"] = lambda: raced(
    lambda p: "token" in (text := os.read(by_number(OPENAT, HERE, p, 0, 0), 4096).decode()) and text,
    HARMLESS, HOME + "/run/attacked.json")
TRIES["race-journal"] = lambda: raced(
    lambda p: b"SQLite format" in os.read(by_number(OPENAT, HERE, p, 0, 0), 4096) and True, HARMLESS, JOURNAL)
TRIES["race-created"] = lambda: raced(
    lambda p: os.close(by_number(OPENAT, HERE, p, os.O_CREAT | os.O_WRONLY, 0o600)) or exists(CORE + "/raced"),
    UI + "/raced", CORE + "/raced")
TRIES["race-folder"] = lambda: raced(
    lambda p: by_number(MKDIRAT, HERE, p, 0o700) == 0 and exists(CORE + "/rac"), UI + "/rac", CORE + "/rac")
TRIES["race-removed"] = lambda: raced(
    lambda p: (open(UI + "/db.py", "w").close(), by_number(UNLINKAT, HERE, p, 0),
               None if os.path.exists(CORE + "/db.py") else "not refused")[2], UI + "/db.py", CORE + "/db.py")
TRIES["race-link-from"] = lambda: raced(
    lambda p: (by_number(LINKAT, HERE, p, HERE, UI + "/raced-link", FOLLOW),
               read(UI + "/raced-link") if MARK in read(UI + "/raced-link") else os.unlink(UI + "/raced-link"))[1],
    HARMLESS, SECRET)
TRIES["race-link-to"] = lambda: raced(
    lambda p: by_number(LINKAT, HERE, HARMLESS, HERE, p, 0) == 0 and exists(CORE + "/lk"), UI + "/lk", CORE + "/lk")
TRIES["race-moved"] = lambda: raced(
    lambda p: (open(UI + "/mv", "w").close(), by_number(RENAMEAT, HERE, UI + "/mv", HERE, p), exists(CORE + "/mv2"))[2],
    UI + "/mv2", CORE + "/mv2")
TRIES["race-symbolic"] = lambda: raced(
    lambda p: by_number(SYMLINKAT, "/", HERE, p) == 0 and exists(CORE + "/sym"), UI + "/sym", CORE + "/sym")
TRIES["race-mode"] = lambda: raced(
    lambda p: by_number(FCHMODAT, HERE, p, 0o777, 0) == 0 and before(CORE + "/db.py") & 0o777 == 0o777 and "not refused",
    HARMLESS, CORE + "/db.py")


@attempt
def race_of_descriptors():
    """The number of a descriptor that leads now to the zone's folder, now to another's."""
    inside, outside, stop = os.open(UI, os.O_PATH), os.open(CORE, os.O_PATH), threading.Event()
    number = os.dup(inside)
    open(UI + "/auth.rs", "w").write("harmless")

    def swap():
        while not stop.is_set():
            os.dup2(outside, number)
            os.dup2(inside, number)

    threading.Thread(target=swap, daemon=True).start()
    end = time.monotonic() + 1.5
    try:
        while time.monotonic() < end:
            try:
                if got := content(by_number(OPENAT, number, "auth.rs", 0, 0)):
                    return got
                by_number(MKDIRAT, number, "by-number", 0o700)
            except OSError:
                pass
            if got := exists(CORE + "/by-number"):
                return got
    finally:
        stop.set()


@attempt
def race_of_folders():
    """A thread that moves the working directory of the whole process."""
    open(UI + "/auth.rs", "w").write("harmless")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            os.chdir(CORE)
            os.chdir(UI)

    threading.Thread(target=swap, daemon=True).start()
    end = time.monotonic() + 1.5
    try:
        while time.monotonic() < end:
            try:
                if got := content(by_number(OPENAT, HERE, "auth.rs", 0, 0)):
                    return got
                by_number(OPENAT, HERE, "by-folder", os.O_CREAT | os.O_WRONLY, 0o600)
            except OSError:
                pass
            if got := exists(CORE + "/by-folder"):
                return got
    finally:
        stop.set()


@attempt
def race_of_socket_address():
    """The address changes between the doorbell's look and the kernel's."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(UI + "/mine.sock")
    server.listen(1000)
    longest = max(len(UI + "/mine.sock"), len(OWN + "/outside.sock"))
    if longest > 100:
        raise OSError("the paths are too long")

    def tried(buffer):
        client = socket.socket(socket.AF_UNIX)
        address = ctypes.create_string_buffer(110)
        with client:
            at = ctypes.addressof(buffer)
            if by_number((42, 203), client.fileno(), at, 110) == 0:
                client.settimeout(0.05)
                return socket.recv_fds(client, 16, 1)[1] and "not refused: the socket outside"
        del address

    family = struct.pack("H", socket.AF_UNIX).decode("latin-1")
    return raced(tried, family + UI + "/mine.sock", family + OWN + "/outside.sock")


@attempt
def race_of_execution():
    """A name in the zone that is now a script of it, now a link to the other's."""
    script, link, stop = UI + "/run", UI + "/exec", threading.Event()
    open(script, "w").write("#!/bin/sh\necho fine\n")
    os.chmod(script, 0o755)
    os.symlink(script, link)

    def swap():
        while not stop.is_set():
            for target in (CORE + "/run.sh", script):
                os.symlink(target, link + "-new")
                os.rename(link + "-new", link)

    threading.Thread(target=swap, daemon=True).start()
    end = time.monotonic() + 1.5
    try:
        while time.monotonic() < end:
            try:
                if MARK in (text := said(link)):
                    return text
            except OSError:
                pass
    finally:
        stop.set()


@attempt
def mapped_twice():
    """A file of the zone that is replaced by a link while it is mapped."""
    fd = os.open(HARMLESS, os.O_RDONLY)
    mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    os.rename(HARMLESS, HARMLESS + "-old")
    os.symlink(SECRET, HARMLESS)
    try:
        return bytes(mapped).decode() + read(HARMLESS)
    finally:
        os.rename(HARMLESS + "-old", HARMLESS)
