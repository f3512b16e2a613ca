"""An accomplice outside every zone, as the same user: it passes descriptors to whoever connects to
a socket in the zone, and has others that may be taken. argv: workspace, folder of its own. It ends
with its standard input."""

import array
import ctypes
import os
import socket
import sys
import threading
import time

workspace, own = sys.argv[1:3]
core = workspace + "/core"
libc = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_MOUNTS = 0x10000000, 0x20000
OPEN_TREE, AT_FDCWD, CLONE = 428, -100, 1


def enter_new_mounts():
    if libc.unshare(NEW_MOUNTS | (NEW_USER if os.getuid() else 0)):
        raise OSError(ctypes.get_errno(), "unshare")


def from_elsewhere(detached):
    """Descriptors that were opened among other mounts: of a tree that is mounted nowhere, or of a
    namespace that has ended."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            enter_new_mounts()
            folder = core
            if detached:
                tree = libc.syscall(OPEN_TREE, AT_FDCWD, core.encode(), CLONE | 0x80000)
                folder = f"/proc/self/fd/{tree}"
            fds = [os.open(folder + name, os.O_PATH) for name in ("", "/auth.rs")]
            socket.send_fds(theirs, [b"x"], fds)
        finally:
            os._exit(0)
    theirs.close()
    fds = socket.recv_fds(ours, 1, 2)[1]
    os.wait()
    return fds


def listen(path, fds, kind=socket.SOCK_STREAM):
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(path)
    server.listen(100)

    def serve():
        while True:
            client, _ = server.accept()
            data = array.array("i", fds)
            client.sendmsg([b"hello"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, data)] if fds else [])
            client.close()

    threading.Thread(target=serve, daemon=True).start()


secret = os.open(core + "/auth.rs", os.O_RDONLY)
plain = [os.open(core, os.O_PATH), os.open(core + "/auth.rs", os.O_PATH), os.open("/", os.O_PATH),
         os.pidfd_open(os.getpid())]
os.umask(0)
for name, fds in [("plain", plain), ("ended", from_elsewhere(False)), ("detached", from_elsewhere(True))]:
    if fds:
        listen(f"{workspace}/ui/{name}.listed", fds)
listen(workspace + "/ui/served.sock", [secret])
listen(own + "/outside.sock", [secret])
listen(f"\0eisen-attack-{os.getpid()}", [secret])
os.chdir(core)
held = ctypes.create_string_buffer(open("auth.rs", "rb").read())
print(os.getpid(), secret, ctypes.addressof(held), len(held), flush=True)
sys.stdin.read()
