"""Ways to another process: its memory, its descriptors, its sockets, its terminal, its life."""

import contextlib
import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
import subprocess
import termios

from common import *

PTRACE_PEEKDATA, PTRACE_ATTACH, PTRACE_DETACH, PTRACE_SEIZE = 2, 16, 17, 0x4206


def iovec(address, length):
    return struct.pack("QQ", address, length)


def memory():
    pid, address, _ = victim()
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    print(os.pread(fd, 256, address))


def memory_read_by_call():
    pid, address, _ = victim()
    buffer = ctypes.create_string_buffer(256)
    syscall(310, pid, iovec(ctypes.addressof(buffer), 256), 1, iovec(address, 256), 1, 0)
    print(buffer.raw)


def memory_written_by_call():
    pid, address, _ = victim()
    buffer = ctypes.create_string_buffer(b"changed")
    if syscall(311, pid, iovec(ctypes.addressof(buffer), 7), 1, iovec(address, 7), 1, 0) == 7:
        through()


def traced():
    pid, address, _ = victim()
    syscall(101, PTRACE_ATTACH, pid, 0, 0)
    os.waitpid(pid, 0x40000000)
    for at in range(address, address + 64, 8):
        word = ctypes.c_long()
        syscall(101, PTRACE_PEEKDATA, pid, at, ctypes.byref(word))
        os.write(1, struct.pack("q", word.value))
    syscall(101, PTRACE_DETACH, pid, 0, 0)


def seized():
    pid, _, _ = victim()
    syscall(101, PTRACE_SEIZE, pid, 0, 0)
    through()


def descriptor_taken():
    pid, _, descriptor = victim()
    print(os.pread(syscall(438, os.pidfd_open(pid), descriptor, 0), 4096, 0))


def descriptor_reopened():
    pid, _, descriptor = victim()
    show(f"/proc/{pid}/fd/{descriptor}")


def root_of_another():
    show(f"/proc/{victim()[0]}/root" + SECRET)


def folder_of_another():
    show(f"/proc/{victim()[0]}/cwd/secret")


def memory_file_reopened():
    show(f"/proc/{victim()[0]}/fd/{os.environ['MEMORY']}")


def nameless_file_reopened():
    show(f"/proc/{victim()[0]}/fd/{os.environ['NAMELESS']}")


def in_the_view_of_another(name):
    """The place of the secret, as one sees it who has it mounted elsewhere."""
    viewer = int(os.environ["VIEWER"])
    if not viewer:
        missing("nothing can be mounted here")
    return f"/proc/{viewer}/root{OUTSIDE}/{name}"


def view_of_another():
    show(in_the_view_of_another("secret"))


def view_of_another_written():
    with open(in_the_view_of_another("victim"), "w") as file:
        file.write("changed")


def view_of_another_filled():
    os.mkdir(in_the_view_of_another("new"))


def view_of_another_changed():
    os.chmod(in_the_view_of_another("victim"), 0o777)


def environment_of_another():
    show(f"/proc/{victim()[0]}/environ")


def descriptors_of_the_supervisor():
    pid = os.environ["SUPERVISOR"]
    for name in os.listdir(f"/proc/{pid}/fd"):
        # It may be closed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            print(os.readlink(f"/proc/{pid}/fd/{name}"))
            through()


def environment_of_the_supervisor():
    if open(f"/proc/{os.environ['SUPERVISOR']}/environ").read():
        through()


def memory_of_the_supervisor():
    if os.open(f"/proc/{os.environ['SUPERVISOR']}/mem", os.O_RDWR):
        through()


def descriptor_of_the_supervisor():
    syscall(438, os.pidfd_open(int(os.environ["SUPERVISOR"])), 0, 0)
    through()


def supervisor_signalled():
    os.kill(int(os.environ["SUPERVISOR"]), signal.SIGCONT)
    through()


def supervisor_limited():
    pid = int(os.environ["SUPERVISOR"])
    resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE))
    through()


def killed():
    os.kill(victim()[0], signal.SIGKILL)


def killed_by_descriptor():
    signal.pidfd_send_signal(os.pidfd_open(victim()[0]), signal.SIGKILL)


def killed_by_thread():
    pid = victim()[0]
    syscall(234, pid, pid, signal.SIGKILL)


def killed_by_queue():
    pid = victim()[0]
    information = struct.pack("iiii", signal.SIGKILL, 0, -1, 0).ljust(128, b"\0")
    syscall(129, pid, signal.SIGKILL, information)


def killed_by_group():
    os.killpg(os.getpgid(victim()[0]), signal.SIGKILL)


def killed_by_owned_descriptor():
    """The kernel sends the signal, when there is something to read."""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, victim()[0])
    fcntl.fcntl(reader, 10, int(signal.SIGKILL))  # F_SETSIG
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writer, b".")


def killed_by_limit():
    pid = victim()[0]
    resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0))
    through()


def limited():
    resource.prlimit(victim()[0], resource.RLIMIT_NOFILE, (1, 1))


def slowed():
    os.setpriority(os.PRIO_PROCESS, victim()[0], 19)


def moved_to_one_processor():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == 1:
        missing("only one processor")
    os.sched_setaffinity(victim()[0], cpus[-1:])


def made_idle():
    os.sched_setscheduler(victim()[0], os.SCHED_IDLE, os.sched_param(0))


def made_the_first_to_die():
    open(f"/proc/{victim()[0]}/oom_score_adj", "w").write("1000")


def connect(kind, where):
    end = socket.socket(socket.AF_UNIX, kind)
    end.connect(where)


def socket_stream():
    connect(socket.SOCK_STREAM, CLOSED + "/stream")


def socket_relative():
    os.chdir(CLOSED)
    connect(socket.SOCK_STREAM, "stream")


def socket_by_link():
    os.symlink(CLOSED + "/stream", "link")
    connect(socket.SOCK_STREAM, "link")


def socket_by_descriptor():
    fd = os.open(CLOSED + "/stream", os.O_PATH)
    connect(socket.SOCK_STREAM, f"/proc/self/fd/{fd}")


def socket_linked():
    os.link(CLOSED + "/stream", "link")
    connect(socket.SOCK_STREAM, "link")


def socket_renamed():
    os.rename(CLOSED + "/stream", "mine")
    connect(socket.SOCK_STREAM, "mine")


def socket_packets():
    connect(socket.SOCK_SEQPACKET, CLOSED + "/packets")


def socket_outside():
    connect(socket.SOCK_STREAM, OUTSIDE + "/stream")


def socket_outside_linked():
    os.link(OUTSIDE + "/stream", OUTSIDE + "/link")
    connect(socket.SOCK_STREAM, OUTSIDE + "/link")


def socket_outside_renamed():
    os.rename(OUTSIDE + "/stream", OUTSIDE + "/mine")
    connect(socket.SOCK_STREAM, OUTSIDE + "/mine")


def socket_outside_renamed_into_the_zone():
    os.rename(OUTSIDE + "/stream", "mine")
    connect(socket.SOCK_STREAM, "mine")


def socket_renamed_into_the_temporary_folder():
    place = os.environ["TMPDIR"] + "/mine"
    os.rename(OUTSIDE + "/stream", place)
    connect(socket.SOCK_STREAM, place)


def socket_linked_into_the_temporary_folder():
    place = os.environ["TMPDIR"] + "/linked"
    os.link(OUTSIDE + "/stream", place)
    connect(socket.SOCK_STREAM, place)


def socket_in_a_folder_renamed_into_the_temporary_folder():
    place = os.environ["TMPDIR"] + "/folder"
    os.rename(OUTSIDE, place)
    connect(socket.SOCK_STREAM, place + "/stream")


def socket_in_a_folder_renamed_into_the_zone():
    os.rename(OUTSIDE, "folder")
    connect(socket.SOCK_STREAM, "folder/stream")


def socket_linked_into_the_zone():
    os.link(OUTSIDE + "/stream", "linked")
    connect(socket.SOCK_STREAM, "linked")


def socket_of_another_in_the_zone():
    connect(socket.SOCK_STREAM, OPEN + "/served")


def socket_of_another_moved_in_the_zone():
    """A socket of its own was at the place, and took part in the move."""
    own = socket.socket(socket.AF_UNIX)
    own.bind("own-socket")
    syscall(316, AT_FDCWD, "own-socket", AT_FDCWD, OPEN + "/served", 2)
    connect(socket.SOCK_STREAM, "own-socket")


def socket_of_another_moved_from_the_zone_into_the_temporary_folder():
    place = os.environ["TMPDIR"] + "/served"
    os.rename(OPEN + "/served", place)
    connect(socket.SOCK_STREAM, place)


def socket_exchanged():
    """Something of its own has the place while it is judged."""
    end = socket.socket(socket.AF_UNIX)
    end.bind("own-socket")
    end.listen()
    syscall(316, AT_FDCWD, "own-socket", AT_FDCWD, OUTSIDE + "/stream", 2)
    connect(socket.SOCK_STREAM, "own-socket")


def socket_without_end():
    """A name that fills the address, without the byte that ends one."""
    os.chdir(CLOSED)
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = os.fsencode("./" * 51 + "stream")
    assert len(path) == 108
    libc.connect(end.fileno(), struct.pack("H", 1) + path, 110)


def datagram_connected():
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.connect(CLOSED + "/datagrams")
    end.send(b"datagram")


def datagram_sent():
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"datagram", CLOSED + "/datagrams")


def datagram_sent_outside():
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"datagram", OUTSIDE + "/datagrams")


def datagram_in_a_message():
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.sendmsg([b"datagram"], [], 0, CLOSED + "/datagrams")


def datagram_from_a_pair():
    end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.sendto(b"datagram", CLOSED + "/datagrams")


def datagram_in_a_message_from_a_pair():
    end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.sendmsg([b"datagram"], [], 0, CLOSED + "/datagrams")


def datagrams_in_messages():
    end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]
    to = struct.pack("H", 1) + os.fsencode(OUTSIDE + "/datagrams") + b"\0"
    at = ctypes.create_string_buffer(to)
    data = ctypes.create_string_buffer(b"datagram")
    vector = ctypes.create_string_buffer(iovec(ctypes.addressof(data), 8))
    message = struct.pack(
        "QIxxxxQQQQIxxxxIxxxx", ctypes.addressof(at), len(to), ctypes.addressof(vector), 1, 0, 0, 0, 0
    )
    syscall(307, end.fileno(), message, 1, 0)


def raw_socket_type():
    """A raw Unix socket is a datagram one."""
    socket.socket(socket.AF_UNIX, socket.SOCK_RAW).sendto(b"datagram", CLOSED + "/datagrams")


def abstract_stream():
    connect(socket.SOCK_STREAM, "\0" + os.environ["ABSTRACT"] + "-stream")


def abstract_datagram():
    end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.sendto(b"datagram", "\0" + os.environ["ABSTRACT"] + "-datagrams")


def terminal_read():
    """What the user types, read before the user's own shell."""
    show(os.environ["TYPED_AT"], os.O_RDONLY | os.O_NOCTTY)


def terminal_written():
    os.write(os.open(os.environ["PUSHED_AT"], os.O_WRONLY | os.O_NOCTTY), b"text")


def terminal_pushed():
    """Input that nobody typed."""
    os.setsid() if os.getpid() != os.getsid(0) else None
    fd = os.open(os.environ["PUSHED_AT"], os.O_RDWR)
    try:
        fcntl.ioctl(fd, termios.TIOCSTI, b"x")
    except OSError as error:
        missing(error)


def traced_child_without_filter():
    """A tracer may switch a child's filters off, if the kernel lets it."""
    child = os.fork()
    if child == 0:
        syscall(101, 0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        show(SECRET)
        os._exit(0)
    os.waitpid(child, 0)
    try:
        syscall(101, 0x4200, child, 0, 1 << 21)  # PTRACE_O_SUSPEND_SECCOMP
    except OSError as error:
        print(error)
    syscall(101, PTRACE_DETACH, child, 0, 0)
    os.waitpid(child, 0)


def own_filter():
    """A filter of its own that lets all through, and answers for the other's."""
    code = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
    filters = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxQ", 1, ctypes.addressof(filters))
    libc.prctl(38, 1, 0, 0, 0)
    syscall(317, 1, 0, program)
    show(SECRET)


def own_listener():
    """A listener of its own: who asks is told to go on."""
    instructions = [
        struct.pack("HBBI", 0x20, 0, 0, 0),
        struct.pack("HBBI", 0x15, 0, 1, 257),
        struct.pack("HBBI", 0x06, 0, 0, 0x7FC00000),
        struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000),
    ]
    filters = ctypes.create_string_buffer(b"".join(instructions))
    program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(filters))
    libc.prctl(38, 1, 0, 0, 0)
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        fd = syscall(317, 1, 8, program)
        socket.send_fds(there, [b"."], [fd])
        show(SECRET)
        os._exit(0)
    there.close()
    _, fds, _, _ = socket.recv_fds(here, 1, 1)
    if fds:
        notification = bytearray(80)
        fcntl.ioctl(fds[0], 0xC0502100, notification)
        answer = notification[:8] + struct.pack("qiI", 0, 0, 1)
        fcntl.ioctl(fds[0], 0xC0182101, answer)
    os.waitpid(child, 0)


def keyring():
    """A key of the user's that was there before."""
    serial = syscall(250, 10, -4, b"user", os.fsencode(os.environ["ABSTRACT"]), 0)
    buffer = ctypes.create_string_buffer(256)
    syscall(250, 11, serial, buffer, 256)
    print(buffer.raw)


run(globals())
