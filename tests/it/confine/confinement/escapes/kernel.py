"""Ways past all paths: other mounts, other roots, devices, and what the kernel does for root.
What would change the machine is only opened, never done."""

import ctypes
import os
import signal
import socket
import stat
import struct
import subprocess

from common import *

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18


def become_root_of_a_namespace():
    """As far as that is needed."""
    user, group = os.getuid(), os.getgid()
    try:
        syscall(272, CLONE_NEWNS | (CLONE_NEWUSER if user else 0))
    except OSError as error:
        missing(error)
    if user:
        open("/proc/self/setgroups", "w").write("deny")
        open("/proc/self/uid_map", "w").write(f"0 {user} 1")
        open("/proc/self/gid_map", "w").write(f"0 {group} 1")
    else:
        mount("none", "/", None, MS_REC | MS_PRIVATE)


def mount(source, target, kind, flags=0, data=None):
    encode = lambda text: None if text is None else os.fsencode(text)
    arguments = [encode(text) for text in (source, target, kind)]
    syscall(165, *arguments, flags, encode(data))


def mount_bind():
    become_root_of_a_namespace()
    os.mkdir("folder")
    mount(CLOSED, "folder", None, MS_BIND)
    show("folder/secret")


def mount_bind_file():
    become_root_of_a_namespace()
    mount(SECRET, "own", None, MS_BIND)
    show("own")


def mount_overlay():
    become_root_of_a_namespace()
    os.mkdir("folder")
    try:
        mount("overlay", "folder", "overlay", 0, f"lowerdir={CLOSED}:{DOCS}")
    except OSError as error:
        missing(error)
    show("folder/secret")


def mount_by_new_calls():
    become_root_of_a_namespace()
    fd = syscall(428, AT_FDCWD, CLOSED, 1)
    os.mkdir("folder")
    syscall(429, fd, b"", AT_FDCWD, b"folder", 4)
    show("folder/secret")


def mount_tree_opened():
    become_root_of_a_namespace()
    fd = syscall(428, AT_FDCWD, CLOSED, 1)
    show("secret", dir_fd=fd)


def mount_tree_not_cloned():
    fd = syscall(428, AT_FDCWD, CLOSED, 0)
    show("secret", dir_fd=fd)


def mount_of_memory():
    become_root_of_a_namespace()
    os.mkdir("folder")
    mount("none", "folder", "tmpfs")
    through()


def mount_of_proc():
    become_root_of_a_namespace()
    os.mkdir("folder")
    try:
        mount("none", "folder", "proc")
    except OSError as error:
        missing(error)
    show("folder/self/root" + SECRET)


def mount_of_own_files():
    """A file system whose contents this process makes up: it decides when a name is read."""
    become_root_of_a_namespace()
    try:
        fd = os.open("/dev/fuse", os.O_RDWR)
    except PermissionError as error:
        missing(error)
    os.mkdir("folder")
    mount("own", "folder", "fuse", 0, f"fd={fd},rootmode=40000,user_id=0,group_id=0")
    through()


def mount_by_program():
    os.mkdir("folder")
    subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
         f"mount --bind {CLOSED} folder && cat folder/secret"]
    )


def mount_of_a_filesystem_context():
    become_root_of_a_namespace()
    fd = syscall(430, b"tmpfs", 0)
    syscall(431, fd, 6, 0, 0, 0)
    syscall(432, fd, 0, 0)
    through()


def root_changed():
    become_root_of_a_namespace()
    os.chroot(CLOSED)
    show("/secret")


def root_changed_by_mount():
    become_root_of_a_namespace()
    os.mkdir("folder")
    mount(CLOSED, "folder", None, MS_BIND)
    os.mkdir("folder/old")
    os.chdir("folder")
    syscall(155, b".", b"old")
    show("/secret")


def namespace_entered():
    pid = int(os.environ["VICTIM"])
    syscall(308, os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY), 0)
    show(SECRET)


def namespace_entered_by_descriptor():
    pid = os.pidfd_open(int(os.environ["VICTIM"]))
    syscall(308, pid, CLONE_NEWNS)
    show(SECRET)


def device():
    return os.stat(CLOSED).st_dev


def device_of_the_disk():
    path = f"/dev/block/{os.major(device())}:{os.minor(device())}"
    if not os.path.exists(path):
        name = os.path.basename(os.readlink(f"/sys{path[4:].replace('block', 'dev/block')}"))
        path = "/dev/" + name
    read_disk(path)


def device_made():
    os.mknod(OUTSIDE + "/disk", 0o600 | stat.S_IFBLK, device())
    read_disk(OUTSIDE + "/disk")


def device_made_in_the_zone():
    os.mknod("disk", 0o600 | stat.S_IFBLK, device())
    read_disk("disk")


def read_disk(path):
    try:
        if os.read(os.open(path, os.O_RDONLY), 512):
            through()
    except PermissionError as error:
        # A container may have no disks.
        missing(error)


def open_only(path, flags):
    if not os.path.exists(path):
        missing(path)
    os.close(os.open(path, flags))
    through()


def memory_of_the_machine():
    open_only("/dev/mem", os.O_RDONLY)


def memory_of_the_kernel():
    open_only("/proc/kcore", os.O_RDONLY)


def ports_of_the_machine():
    open_only("/dev/port", os.O_RDONLY)


def registers_of_the_processor():
    open_only("/dev/cpu/0/msr", os.O_RDWR)


def loop_devices():
    open_only("/dev/loop0", os.O_RDWR)


def keyboards():
    open_only("/dev/uinput", os.O_RDWR)


def console():
    open_only("/dev/tty1", os.O_RDWR | os.O_NOCTTY)


def core_pattern():
    open_only("/proc/sys/kernel/core_pattern", os.O_WRONLY)


def name_of_the_machine():
    open_only("/proc/sys/kernel/hostname", os.O_WRONLY)


def helper_of_the_kernel():
    open_only("/proc/sys/kernel/modprobe", os.O_WRONLY)


def system_request():
    open_only("/proc/sysrq-trigger", os.O_WRONLY)


def formats_of_programs():
    open_only("/proc/sys/fs/binfmt_misc/register", os.O_WRONLY)


def release_agent():
    for root, _, files in os.walk("/sys/fs/cgroup"):
        if "release_agent" in files:
            return open_only(root + "/release_agent", os.O_WRONLY)
    missing("no release_agent")


def group_of_processes():
    """Out of the limits of its group, or others into theirs."""
    for root, _, files in os.walk("/sys/fs/cgroup"):
        if "cgroup.procs" in files:
            return open_only(root + "/cgroup.procs", os.O_WRONLY)
    missing("no cgroup.procs")


def group_entered_by_a_child():
    """Out of the limits of its group without writing anything."""
    mounts = [line.split() for line in open("/proc/self/mounts")]
    groups = [mount[1] for mount in mounts if mount[2] == "cgroup2"]
    if not groups:
        missing("no groups of processes")
    group = os.open(groups[0], os.O_RDONLY)
    into_group = 0x200000000
    args = struct.pack("11Q", into_group, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, group)
    child = syscall(435, args, len(args))
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    through()


def helper_of_devices():
    open_only("/sys/kernel/uevent_helper", os.O_WRONLY)


def tracing():
    open_only("/sys/kernel/tracing/trace_pipe", os.O_RDONLY)


def module():
    try:
        syscall(175, b"no module", 9, b"")
    except OSError as error:
        if error.errno == 8:  # ENOEXEC: it would have been loaded.
            through()
        raise


def programs_in_the_kernel():
    syscall(321, 0, struct.pack("IIIII", 2, 4, 8, 1, 0).ljust(72, b"\0"), 72)
    through()


def ports_by_call():
    syscall(172, 3)
    through()


def quota():
    try:
        syscall(179, 0x80000100, None, 0, None)  # Q_SYNC
        through()
    except OSError as error:
        print(error)


def handle_of_a_folder():
    fd = os.open("/", os.O_RDONLY)
    buffer = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136)
    mount_id = ctypes.c_int()
    syscall(303, AT_FDCWD, CLOSED, buffer, ctypes.byref(mount_id), 0)
    show("secret", dir_fd=syscall(304, fd, buffer, os.O_RDONLY | os.O_DIRECTORY))


def namespace_that_ended():
    """What was opened there has a path that means something else here."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        become_root_of_a_namespace()
        socket.send_fds(theirs, [b"."], [os.open(SECRET, os.O_PATH)])
        os._exit(0)
    theirs.close()
    fds = socket.recv_fds(ours, 1, 1)[1]
    os.waitpid(child, 0)
    if not fds:
        missing("no namespace")
    show(f"/proc/self/fd/{fds[0]}")


def namespace_of_its_own():
    become_root_of_a_namespace()
    through()


def namespace_of_a_child():
    """By `clone`, and by `clone3`."""
    flags = CLONE_NEWNS | (CLONE_NEWUSER if os.getuid() else 0)
    for call in [
        lambda: syscall(56, flags | signal.SIGCHLD, 0, 0, 0, 0),
        lambda: syscall(435, struct.pack("8Q", flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64),
    ]:
        try:
            child = call()
        except OSError as error:
            print(error)
            continue
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        through()


def packets():
    """All that passes by, as `tcpdump` sees it."""
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    through()


def packets_the_old_way():
    socket.socket(socket.AF_INET, 10, socket.htons(3))
    through()


def packets_made_up():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    through()


def clock():
    """No clock ticks so fast: nothing is changed."""
    ticks = struct.pack("I84xq", 0x4000, 1).ljust(208, b"\0")
    try:
        syscall(159, ticks)
    except OSError as error:
        if error.errno == 22:  # EINVAL: the right to set it was there.
            through()
        raise


def keys():
    syscall(250, 0, -3, 1)  # The session's keyring.
    through()


run(globals())
