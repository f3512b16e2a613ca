"""What an agent tries from inside its zone. Each function is one try: it returns what it got (the
secret, or True), and fails or returns nothing where it was held. argv: names of tries; none: all.
Prints a line of JSON for each. What would harm the machine is only opened or asked for, never done."""

import ctypes
import fcntl
import json
import mmap
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

WS, HOME, CONFIG, OTHER, OWN = (os.environ["ATTACK_" + key] for key in
                                ("WS", "HOME", "CONFIG", "OTHER", "OWN"))
SUPERVISOR, ACCOMPLICE, FD, ADDRESS, LENGTH = map(int, os.environ["ATTACK_PIDS"].split())
CORE, UI = WS + "/core", WS + "/ui"
SECRET = CORE + "/auth.rs"
MARK = "S3CR3T-"
HERE, EMPTY, FOLLOW = -100, 0x1000, 0x400
NEW_USER, NEW_MOUNTS = 0x10000000, 0x20000

X86 = platform.machine() == "x86_64"
# Those with different numbers on different processors.
CALLS = {
    "clone": (56, 220), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "fanotify_init": (300, 262), "quotactl": (179, 60),
    "swapon": (167, 224), "kexec_load": (246, 104), "init_module": (175, 105), "acct": (163, 89),
    "keyctl": (250, 219), "execveat": (322, 281), "linkat": (265, 37), "renameat2": (316, 276),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "adjtimex": (159, 171),
    "sethostname": (170, 161), "copy_file_range": (326, 285), "kcmp": (312, 272),
}
libc = ctypes.CDLL(None, use_errno=True)


def call(which, *args):
    number = CALLS[which][0 if X86 else 1] if isinstance(which, str) else which
    plain = []
    for arg in args:
        if isinstance(arg, str):
            arg = arg.encode()
        plain.append(ctypes.c_long(arg) if isinstance(arg, int) else arg)
    result = libc.syscall(ctypes.c_long(number), *plain)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def read(path, dir_fd=None):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK, dir_fd=dir_fd)
    data = os.read(fd, 4096)
    os.close(fd)
    return data.decode("utf-8", "replace")


def passed(name):
    """Descriptors from the accomplice outside."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{UI}/{name}.listed")
        return socket.recv_fds(client, 16, 8)[1]


def fd_path(fd):
    return f"/proc/self/fd/{fd}"


def opened(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags | os.O_NONBLOCK))
    return True


TRIES = {}


def attempt(function):
    TRIES[function.__name__.replace("_", "-")] = function
    return function


# --- namespaces and mounts

@attempt
def new_user_namespace():
    return call("unshare", NEW_USER) == 0


@attempt
def new_mount_namespace():
    return call("unshare", NEW_MOUNTS) == 0


def child_of(make):
    child = make()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


@attempt
def new_namespace_by_clone():
    return child_of(lambda: call("clone", NEW_USER | NEW_MOUNTS | signal.SIGCHLD, 0, 0, 0, 0))


@attempt
def new_namespace_by_clone3():
    args = struct.pack("8Q", NEW_USER | NEW_MOUNTS, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    return child_of(lambda: call(435, args, len(args)))


@attempt
def namespace_of_another():
    return call("setns", os.open(f"/proc/{ACCOMPLICE}/ns/mnt", os.O_RDONLY), 0) == 0


@attempt
def namespace_by_pidfd():
    return call("setns", os.pidfd_open(ACCOMPLICE), NEW_MOUNTS) == 0


@attempt
def ended_mount_namespace():
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            call("unshare", NEW_MOUNTS | (NEW_USER if os.getuid() else 0))
            socket.send_fds(theirs, [b"x"], [os.open(SECRET, os.O_PATH)])
        finally:
            os._exit(0)
    theirs.close()
    fds = socket.recv_fds(ours, 1, 1)[1]
    os.wait()
    return fds and read(fd_path(fds[0]))


for name, args in {
    "mount": ("none", UI, "tmpfs", 0, 0), "bind-mount": (CORE, UI, 0, 4096, 0),
}.items():
    TRIES[name] = lambda args=args: call("mount", *args) == 0
for name, args in {
    "unmount": ("umount2", "/proc", 2), "pivot-root": ("pivot_root", WS, UI),
    "chroot": ("chroot", CORE), "open-tree": (428, HERE, CORE, 1), "move-mount": (429, HERE, CORE, HERE, UI, 0),
    "fsopen": (430, "tmpfs", 0), "mount-setattr": (442, HERE, "/", 0, struct.pack("4Q", 1, 0, 0, 0), 32),
}.items():
    TRIES[name] = lambda args=args: call(*args) >= 0


# --- descriptors from elsewhere

for world in ("ended", "detached"):
    TRIES[f"file-of-{world}-mounts-read"] = lambda w=world: read(fd_path(passed(w)[1]))
    TRIES[f"file-of-{world}-mounts-written"] = lambda w=world: opened(fd_path(passed(w)[1]), os.O_WRONLY)
    TRIES[f"folder-of-{world}-mounts-read"] = lambda w=world: read("auth.rs", passed(w)[0])
    TRIES[f"folder-of-{world}-mounts-read-by-dots"] = lambda w=world: read("nul/../auth.rs", passed(w)[0])
    TRIES[f"name-made-in-{world}-mounts"] = lambda w=world: os.mkdir(
        "nul/../made", dir_fd=passed(w)[0]) is None
    TRIES[f"mode-changed-in-{world}-mounts"] = lambda w=world: os.chmod(fd_path(passed(w)[1]), 0o777) is None
    TRIES[f"linked-from-{world}-mounts"] = lambda w=world: call(
        "linkat", HERE, fd_path(passed(w)[1]), HERE, UI + "/linked", FOLLOW) == 0 and read(UI + "/linked")
    TRIES[f"entered-{world}-mounts"] = lambda w=world: os.fchdir(passed(w)[0]) or read("auth.rs")


@attempt
def descriptor_reopened():
    return read(fd_path(passed("plain")[1]))


@attempt
def folder_descriptor_used():
    return read("auth.rs", passed("plain")[0])


@attempt
def root_descriptor_used():
    return read(SECRET[1:], passed("plain")[2])


@attempt
def descriptor_linked():
    call("linkat", passed("plain")[1], "", HERE, UI + "/linked2", EMPTY)
    return read(UI + "/linked2")


@attempt
def descriptor_mode_changed():
    return call(452, passed("plain")[1], "", 0o777, EMPTY) == 0


@attempt
def descriptor_executed():
    fd = passed("plain")[1]
    argv = (ctypes.c_char_p * 2)(b"x", None)
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.dup2(theirs, 1)
        libc.syscall(CALLS["execveat"][not X86], fd, b"", argv, (ctypes.c_char_p * 1)(None), EMPTY)
        os._exit(1)
    os.close(theirs)
    os.wait()
    return os.read(ours, 4096).decode()


@attempt
def descriptor_taken():
    fd = call(438, passed("plain")[3], FD, 0)
    return os.pread(fd, 4096, 0).decode()


@attempt
def file_by_handle():
    buffer, mount = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136), ctypes.c_int()
    call("name_to_handle_at", HERE, SECRET, buffer, ctypes.byref(mount), 0)
    return os.read(call("open_by_handle_at", os.open(WS, os.O_RDONLY), buffer, 0), 4096).decode()


@attempt
def copied_between_descriptors():
    to = os.open(UI + "/copy", os.O_RDWR | os.O_CREAT)
    call("copy_file_range", passed("plain")[1], 0, to, 0, 4096, 0)
    return read(UI + "/copy")


@attempt
def cloned_between_descriptors():
    to = os.open(UI + "/clone", os.O_RDWR | os.O_CREAT)
    fcntl.ioctl(to, 0x40049409, passed("plain")[1])
    return read(UI + "/clone")


@attempt
def spliced_from_descriptor():
    ours, theirs = os.pipe()
    os.splice(passed("plain")[1], theirs, 4096)
    return os.read(ours, 4096).decode()


@attempt
def mapped_from_descriptor():
    return bytes(mmap.mmap(passed("plain")[1], 10, prot=mmap.PROT_READ)).decode()


# --- other processes, and what /proc shows of them

for name, path in {
    "proc-root-of-supervisor": f"/proc/{SUPERVISOR}/root{SECRET}",
    "proc-folder-of-another": f"/proc/{ACCOMPLICE}/cwd/auth.rs",
    "proc-descriptor-of-another": f"/proc/{ACCOMPLICE}/fd/{FD}",
    "proc-environment-of-supervisor": f"/proc/{SUPERVISOR}/environ",
    "proc-maps-of-another": f"/proc/{ACCOMPLICE}/maps", "proc-stack-of-another": f"/proc/{ACCOMPLICE}/stack",
    "proc-own-root": "/proc/self/root" + SECRET, "proc-own-thread-root": "/proc/thread-self/root" + SECRET,
    "control-token": HOME + "/run/attacked.json", "private-folder-of-another": OTHER + "/private.txt",
    "sibling-log": HOME + "/logs/attacked/core.log",
}.items():
    TRIES[name] = lambda path=path: read(path)


@attempt
def memory_of_another():
    fd = os.open(f"/proc/{ACCOMPLICE}/mem", os.O_RDONLY)
    return os.pread(fd, LENGTH, ADDRESS).decode()


@attempt
def memory_read_by_call():
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
    buffer = ctypes.create_string_buffer(LENGTH)
    ours, theirs = Piece(ctypes.addressof(buffer), LENGTH), Piece(ADDRESS, LENGTH)
    call("process_vm_readv", ACCOMPLICE, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    return buffer.value.decode()


@attempt
def traced():
    return call("ptrace", 0x4206, ACCOMPLICE, 0, 0) == 0


@attempt
def signalled():
    return os.kill(ACCOMPLICE, signal.SIGCONT) is None


@attempt
def supervisor_signalled():
    return os.kill(SUPERVISOR, signal.SIGCONT) is None


@attempt
def supervisor_limited():
    import resource
    return bool(resource.prlimit(SUPERVISOR, resource.RLIMIT_NOFILE, resource.prlimit(
        SUPERVISOR, resource.RLIMIT_NOFILE)))


@attempt
def compared_with_another():
    return call("kcmp", os.getpid(), ACCOMPLICE, 0, 1, 1) >= 0


# --- the kernel's other doors

for name, args in {
    "io-uring": (425, 8, ctypes.create_string_buffer(120)), "bpf": ("bpf", 0, struct.pack("4I", 2, 4, 8, 1).ljust(72, b"\0"), 72),
    "fanotify": ("fanotify_init", 4, 0), "quota": ("quotactl", 0x80000100, 0, 0, 0),
    "kernel-page-faults": ("userfaultfd", os.O_CLOEXEC), "keyring": ("keyctl", 0, -3, 1),
    "all-processors-watched": ("perf_event_open", struct.pack("2I", 1, 112).ljust(112, b"\0"), -1, 0, -1, 0),
    "accounting": ("acct", 0), "kexec": ("kexec_load", 0, 0, 0, 0),
    "name-of-machine": ("sethostname", platform.node(), len(platform.node())),
}.items():
    TRIES[name] = lambda args=args: call(*args) >= 0


def refused_for(harmless, *args):
    """Got through where the only objection is to what was asked, not to who asks."""
    try:
        return call(*args) >= 0
    except OSError as error:
        return error.errno in harmless and error.errno


TRIES["swap"] = lambda: refused_for((2, 22), "swapon", UI + "/none", 0)
TRIES["module"] = lambda: refused_for((8,), "init_module", "none", 4, "")
TRIES["clock"] = lambda: refused_for((22,), "adjtimex", struct.pack("I84xq", 0x4000, 1).ljust(208, b"\0"))

for path in ("/dev/mem", "/dev/kmsg", "/dev/port", "/dev/fuse", "/dev/loop-control", "/dev/vda", "/dev/sda",
             "/dev/nvme0n1", "/dev/net/tun", "/dev/uinput", "/dev/vsock", "/sys/kernel/tracing/trace",
             "/sys/kernel/debug/sched/features", "/proc/kcore", "/proc/kallsyms-none"):
    if os.path.exists(path):
        TRIES["open-" + path[1:].replace("/", "-")] = lambda path=path: opened(path)
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger",
             "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/uevent_helper",
             f"/proc/{SUPERVISOR}/oom_score_adj"):
    if os.path.exists(path):
        TRIES["write-" + path[1:].replace("/", "-").replace(str(SUPERVISOR), "supervisor")] = (
            lambda path=path: opened(path, os.O_WRONLY))


@attempt
def device_made():
    os.mknod(UI + "/device", 0o600 | 0o060000, os.makedev(7, 0))
    return True


@attempt
def typed_at_terminal():
    upper, lower = os.openpty()
    return fcntl.ioctl(lower, 0x5412, b"x") == b"x"


# --- sockets

for name, args in {
    "socket-packets": (17, 3), "socket-packets-old": (2, 10), "socket-raw": (2, 3, 1), "socket-raw-6": (10, 3, 58),
    "socket-crypto": (38, 5), "socket-vsock": (40, 1), "socket-xdp": (44, 3), "socket-keys": (15, 3, 2),
    "socket-bluetooth": (31, 3), "socket-tipc": (30, 1), "netlink-diagnosis": (16, 3, 4), "netlink-audit": (16, 3, 9),
    "netlink-firewall": (16, 3, 12), "netlink-generic": (16, 3, 16), "netlink-events": (16, 3, 15),
    "socket-unix-datagram": (1, 2),
}.items():
    TRIES[name] = lambda args=args: bool(socket.socket(*args))


@attempt
def network_changed():
    with socket.socket(16, 3, 0) as link:
        link.send(struct.pack("IHHIIBBHiII", 32, 16, 5, 1, 0, 0, 0, 0, 999999, 0, 0))
        return struct.unpack("i", link.recv(100)[16:20])[0] != -1 and "not refused"


def received(address):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(3)
        client.connect(address)
        return os.pread(socket.recv_fds(client, 16, 1)[1][0], 4096, 0).decode()


TRIES["socket-abstract"] = lambda: received(f"\0eisen-attack-{ACCOMPLICE}")
TRIES["socket-outside"] = lambda: received(OWN + "/outside.sock")
TRIES["socket-outside-linked"] = lambda: os.link(OWN + "/outside.sock", UI + "/l.sock") or received(UI + "/l.sock")
TRIES["socket-outside-symlinked"] = lambda: os.symlink(OWN + "/outside.sock", UI + "/s.sock") or received(UI + "/s.sock")
TRIES["socket-of-another-in-zone"] = lambda: received(UI + "/served.sock")
TRIES["socket-of-another-linked"] = lambda: os.link(UI + "/served.sock", UI + "/o.sock") or received(UI + "/o.sock")
TRIES["socket-of-another-into-tmp"] = lambda: os.rename(UI + "/served.sock", os.environ["TMPDIR"] + "/o") or received(os.environ["TMPDIR"] + "/o")
TRIES["socket-outside-moved"] = lambda: os.rename(OWN + "/outside.sock", UI + "/m.sock") or received(UI + "/m.sock")


# --- names and files

for name, get in {
    "read-plain": lambda: read(SECRET),
    "read-dots": lambda: read(UI + "/../core/auth.rs"),
    "read-hard-link": lambda: os.link(SECRET, UI + "/hard") or read(UI + "/hard"),
    "read-symlink": lambda: os.symlink(SECRET, UI + "/soft") or read(UI + "/soft"),
    "read-exchanged": lambda: call("renameat2", HERE, SECRET, HERE, UI + "/a.txt", 2) == 0 and read(UI + "/a.txt"),
    "read-moved-folder": lambda: os.rename(CORE, UI + "/core") or read(UI + "/core/auth.rs"),
    "read-denied-name": lambda: read(UI + "/.env"),
    "read-denied-moved": lambda: os.rename(UI + "/.env", UI + "/env") or read(UI + "/env"),
    "read-by-script-line": lambda: subprocess.run([SECRET], capture_output=True).stdout.decode(),
    "read-by-interpreter": lambda: subprocess.run(["sh", CORE + "/run.sh"], capture_output=True).stdout.decode(),
    "read-by-loader": lambda: subprocess.run([CORE + "/run.sh"], capture_output=True).stdout.decode(),
    "write-plain": lambda: opened(SECRET, os.O_WRONLY),
    "write-new": lambda: opened(CORE + "/new", os.O_CREAT | os.O_WRONLY),
    "write-truncated": lambda: os.truncate(SECRET, 0) is None,
    "write-mode": lambda: os.chmod(SECRET, 0o777) is None,
    "write-times": lambda: os.utime(SECRET) is None,
    "write-attribute": lambda: os.setxattr(SECRET, "user.x", b"1") is None,
    "write-removed": lambda: os.unlink(CORE + "/db.py") is None,
    "write-moved-in": lambda: os.rename(UI + "/sub/x.txt", CORE + "/x.txt") is None,
    "write-linked-in": lambda: os.link(UI + "/a.txt", CORE + "/linked") is None,
    "write-symlinked-in": lambda: os.symlink("/", CORE + "/soft") is None,
    "write-pipe-in": lambda: os.mkfifo(CORE + "/pipe") is None,
    "write-folder-in": lambda: os.mkdir(CORE + "/folder") is None,
    "write-unnamed-linked-in": lambda: call(
        "linkat", HERE, fd_path(os.open(UI, os.O_TMPFILE | os.O_RDWR)), HERE, CORE + "/nameless", FOLLOW) == 0,
    "write-hook": lambda: opened(WS + "/.git/hooks/pre-commit", os.O_CREAT | os.O_WRONLY),
    "write-git-config": lambda: opened(WS + "/.git/config", os.O_WRONLY),
    "git-refs-moved": lambda: os.rename(WS + "/.git/refs", UI + "/refs") is None,
    "git-refs-renamed": lambda: os.rename(WS + "/.git/refs", WS + "/.git/logs/refs2") is None,
    "git-head-removed": lambda: os.unlink(WS + "/.git/HEAD") is None,
    "git-objects-exchanged": lambda: call(
        "renameat2", HERE, WS + "/.git/objects", HERE, WS + "/.git/logs", 2) == 0,
    "configuration-written": lambda: opened(CONFIG, os.O_WRONLY | os.O_APPEND),
    "configuration-replaced": lambda: os.rename(UI + "/sub/x.txt", CONFIG) is None,
    "configuration-removed": lambda: os.unlink(CONFIG) is None,
    "configuration-moved-away": lambda: os.rename(os.path.dirname(CONFIG), os.path.dirname(CONFIG) + "-2") is None,
    "prompt-file-written": lambda: opened(os.path.dirname(CONFIG) + "/prompt.txt", os.O_WRONLY),
    "private-folder-of-another-written": lambda: opened(OTHER + "/new", os.O_CREAT | os.O_WRONLY),
    "private-folder-of-another-moved": lambda: os.rename(OTHER, os.environ["TMPDIR"] + "/theirs") is None,
    "bind-in": lambda: socket.socket(socket.AF_UNIX).bind(CORE + "/s.sock") is None,
}.items():
    TRIES[name] = get


@attempt
def symlink_race():
    """A link that leads now inside, now outside, while another thread reads through it."""
    until, stop, link = time.monotonic() + 2, threading.Event(), UI + "/race"
    inside, outside = link + "-in", link + "-out"

    def swap():
        while not stop.is_set():
            for target in (UI + "/a.txt", SECRET):
                os.symlink(target, link + "-new")
                os.rename(link + "-new", link)

    os.symlink(UI + "/a.txt", link)
    threading.Thread(target=swap, daemon=True).start()
    try:
        while time.monotonic() < until:
            try:
                text = read(link)
            except OSError:
                continue
            if MARK in text:
                return text
    finally:
        stop.set()


@attempt
def folder_race():
    """A folder on the way that is now a real one, now a link to the closed one."""
    until, stop, place = time.monotonic() + 2, threading.Event(), UI + "/way"
    os.mkdir(place + "-real")
    open(place + "-real/auth.rs", "w").write("harmless")
    os.symlink(CORE, place + "-link")
    os.symlink(place + "-real", place)

    def swap():
        while not stop.is_set():
            for _ in range(2):
                try:
                    call("renameat2", HERE, place, HERE, place + "-link", 2)
                except OSError:
                    pass

    threading.Thread(target=swap, daemon=True).start()
    try:
        while time.monotonic() < until:
            try:
                text = read(place + "/auth.rs")
            except OSError:
                continue
            if MARK in text:
                return text
    finally:
        stop.set()


@attempt
def more_drafts_than_are_kept():
    """A draft that is nobody's may not stay behind."""
    try:
        for number in range(1100):
            path = f"{WS}/Cargo.toml.tmp.{number}"
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except OSError as error:
                return os.path.exists(path) and f"{path} is left: {error}"
        return "no bound"
    finally:
        for name in os.listdir(WS):
            if ".tmp." in name:
                os.unlink(f"{WS}/{name}")


# --- what must go on working

WORKS = {
    "addresses-of-machine": lambda: bool(socket.if_nameindex()) and bool(socket.getaddrinfo("localhost", 80)),
    "child-and-thread": lambda: subprocess.run(["true"]).returncode == 0 and threading.Thread(
        target=print, args=(), kwargs={"end": ""}).start() is None,
    "own-file-reopened": lambda: read(fd_path(os.open(UI + "/a.txt", os.O_RDONLY))),
    "own-memory-reopened": lambda: read(fd_path(os.memfd_create("m"))) == "",
    "removed-file-reopened": lambda: read(fd_path(removed())) == "left",
    "here-document": lambda: "text" in subprocess.run(
        ["sh", "-c", "cat /dev/stdin <<E\ntext\nE"], capture_output=True, text=True).stdout,
    "single-file-saved": lambda: saved(WS + "/Cargo.toml"),
    "file-of-the-zone-written": lambda: open(UI + "/new.txt", "w").write("x"),
    "git-status": lambda: subprocess.run(["git", "-C", WS, "status", "-s"], capture_output=True).returncode == 0,
}


def removed():
    path = os.environ["TMPDIR"] + "/removed"
    open(path, "w").write("left")
    fd = os.open(path, os.O_RDONLY)
    os.unlink(path)
    return fd


def saved(path):
    draft = os.path.join(os.path.dirname(path), "." + os.path.basename(path) + ".abcd1234.tmp")
    open(draft, "w").write("[package]\n")
    os.rename(draft, path)
    return read(path)


def tried(function):
    """Each in a process of its own, which what it does to itself ends with."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            if "ATTACK_BARE" in os.environ and os.getuid() == 0:
                # What is mounted without a wall is not for the next try to find.
                call("unshare", NEW_MOUNTS)
            got = function()
            text = json.dumps(got if isinstance(got, (str, bool, int)) else bool(got))
        except BaseException as error:
            text = json.dumps({"held": f"{type(error).__name__}: {error}"})
        os.write(theirs, text.encode()[:4000])
        os._exit(0)
    os.close(theirs)
    text = b""
    while piece := os.read(ours, 4096):
        text += piece
    os.close(ours)
    os.waitpid(child, 0)
    try:
        return json.loads(text)
    except ValueError:
        return {"held": "killed"}


def through(got):
    return got is True or isinstance(got, int) and got > 0 or isinstance(got, str) and (
        MARK in got or "token" in got or got.startswith(("not refused", "no bound")) or "is left" in got)


if __name__ == "__main__":
    import narrow
    import others

    TRIES.update(others.TRIES)
    TRIES.update(narrow.TRIES)
    wanted = sys.argv[1:]
    for name, function in TRIES.items():
        if not wanted or name in wanted:
            got = tried(function)
            print(json.dumps({"name": name, "through": through(got), "got": str(got)[:120]}), flush=True)
    for name, function in WORKS.items():
        if not wanted or name in wanted:
            got = tried(function)
            print(json.dumps({"name": name, "works": not isinstance(got, dict) and bool(got), "got": str(got)[:120]}), flush=True)
