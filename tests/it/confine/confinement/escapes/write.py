"""Ways to change what the zone forbids to change: contents, names, modes, owners, times,
attributes."""

import errno
import fcntl
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import time

from common import *


def direct():
    open(VICTIM_FILE, "w").write("changed")


def append():
    open(VICTIM_FILE, "a").write("changed")


def readable():
    open(GUIDE, "w").write("changed")


def readable_by_reopening():
    fd = os.open(GUIDE, os.O_RDONLY)
    os.write(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY), b"changed")


def mapped():
    fd = os.open(VICTIM_FILE, os.O_RDWR)
    mmap.mmap(fd, 0)[0:3] = b"new"


def new_file():
    open(CLOSED + "/new", "w").write("new")


def new_file_without_writing():
    os.open(CLOSED + "/new", os.O_RDONLY | os.O_CREAT | os.O_EXCL)


def by_dangling_link():
    os.symlink(CLOSED + "/new", "new")
    open("new", "w").write("new")


def by_folder_link():
    os.symlink(CLOSED, "folder")
    open("folder/new", "w").write("new")


def denied_name():
    open(MIXED + "/.env", "w").write("changed")


def later_denied_name():
    """Nothing of that name was there when the wall was built."""
    open(".env", "w").write("new")


def later_denied_name_renamed():
    open("env", "w").write("new")
    os.rename("env", ".env")


def later_denied_name_linked():
    open("env", "w").write("new")
    os.link("env", ".env")


def later_denied_name_symlinked():
    os.symlink("env", ".env")


def later_denied_name_of_a_folder():
    os.mkdir(".env")


def later_denied_name_in_a_folder():
    os.mkdir("mine")
    open("mine/.env", "w").write("new")


def later_denied_name_exchanged():
    open("env", "w").write("new")
    os.rename(MIXED + "/fine", "other")
    syscall(316, AT_FDCWD, "env", AT_FDCWD, MIXED + "/.env", 2)


def rename_onto_denied_name():
    open(MIXED + "/env", "w").write("new")
    os.rename(MIXED + "/env", MIXED + "/.env")


def rename_in():
    os.rename("own", CLOSED + "/new")


def rename_onto():
    os.rename("own", VICTIM_FILE)


def rename_folder_in():
    os.mkdir("mine")
    os.rename("mine", CLOSED + "/mine")


def rename_exchange():
    syscall(316, AT_FDCWD, "own", AT_FDCWD, VICTIM_FILE, 2)


def rename_outside_in():
    open(OUTSIDE + "/mine", "w").write("new")
    os.rename(OUTSIDE + "/mine", VICTIM_FILE)


def rename_parent_of_denied():
    os.rename(MIXED + "/deep", MIXED + "/flat")


def link_in():
    os.link("own", CLOSED + "/new")


def symlink_in():
    os.symlink("own", CLOSED + "/new")


def mkdir_in():
    os.mkdir(CLOSED + "/new")


def mkfifo_in():
    os.mkfifo(CLOSED + "/new")


def mknod_in():
    os.mknod(CLOSED + "/new")


def bind_in():
    os.chdir(CLOSED)
    socket.socket(socket.AF_UNIX).bind("new")


def temporary_file_in():
    fd = os.open(CLOSED, os.O_TMPFILE | os.O_RDWR)
    link_followed(f"/proc/self/fd/{fd}", CLOSED + "/new")


def temporary_file_linked_in():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR)
    os.write(fd, b"new")
    link_followed(f"/proc/self/fd/{fd}", CLOSED + "/new")


def temporary_file_linked_by_empty_path():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR)
    syscall(265, fd, "", AT_FDCWD, CLOSED + "/new", AT_EMPTY_PATH)



def unlink():
    os.unlink(VICTIM_FILE)


def unlink_by_folder():
    os.unlink("victim", dir_fd=os.open(CLOSED, os.O_PATH))


def rmdir():
    os.rmdir(CLOSED + "/empty")


def unlink_denied_name():
    os.unlink(MIXED + "/.env")


def remove_tree_of_denied():
    subprocess.run(["rm", "-rf", MIXED + "/deep"])


def truncate():
    os.truncate(VICTIM_FILE, 0)


def truncate_readable():
    os.truncate(GUIDE, 0)


def truncate_by_opening():
    os.open(GUIDE, os.O_RDONLY | os.O_TRUNC)


def truncate_by_opening_for_nothing():
    os.open(GUIDE, 3 | os.O_TRUNC)


def truncate_by_proc():
    fd = os.open(GUIDE, os.O_RDONLY)
    os.truncate(f"/proc/self/fd/{fd}", 0)


def mode():
    os.chmod(VICTIM_FILE, 0o600)


def mode_relative():
    os.chmod("victim", 0o600, dir_fd=os.open(CLOSED, os.O_PATH))


def mode_after_chdir():
    os.chdir(CLOSED)
    os.chmod("victim", 0o600)


def mode_by_link():
    os.symlink(VICTIM_FILE, "link")
    os.chmod("link", 0o600)


def mode_of_readable_by_descriptor():
    os.fchmod(os.open(GUIDE, os.O_RDONLY), 0o600)


def mode_by_proc():
    fd = os.open(VICTIM_FILE, os.O_PATH)
    os.chmod(f"/proc/self/fd/{fd}", 0o600)


def mode_by_new_call():
    syscall(452, AT_FDCWD, VICTIM_FILE, 0o600, AT_SYMLINK_NOFOLLOW)


def mode_by_new_call_and_empty_path():
    fd = os.open(VICTIM_FILE, os.O_PATH)
    syscall(452, fd, "", 0o600, AT_EMPTY_PATH)


def mode_of_folder():
    os.chmod(CLOSED, 0o700)


def mode_of_folder_by_descriptor():
    os.fchmod(os.open(CLOSED, os.O_RDONLY), 0o700)


def owner():
    os.chown(VICTIM_FILE, 1, 1)


def owner_of_link():
    os.lchown(VICTIM_FILE, 1, 1)


def owner_by_empty_path():
    fd = os.open(VICTIM_FILE, os.O_PATH)
    syscall(260, fd, "", 1, 1, AT_EMPTY_PATH)


def owner_by_descriptor():
    os.fchown(os.open(GUIDE, os.O_RDONLY), 1, 1)


def owner_of_folder_by_descriptor():
    os.fchown(os.open(CLOSED, os.O_RDONLY), 1, 1)


def times():
    os.utime(VICTIM_FILE, (1, 1))


def times_by_descriptor():
    os.utime(os.open(GUIDE, os.O_RDONLY), (1, 1))


def times_of_folder_by_descriptor():
    os.utime(os.open(CLOSED, os.O_RDONLY), (1, 1))


def times_by_empty_path():
    fd = os.open(VICTIM_FILE, os.O_PATH)
    syscall(280, fd, "", struct.pack("qqqq", 1, 0, 1, 0), AT_EMPTY_PATH)


def times_by_old_calls():
    for call in (
        lambda: syscall(132, VICTIM_FILE, struct.pack("qq", 1, 1)),
        lambda: syscall(235, VICTIM_FILE, struct.pack("qqqq", 1, 0, 1, 0)),
        lambda: syscall(261, AT_FDCWD, VICTIM_FILE, struct.pack("qqqq", 1, 0, 1, 0)),
    ):
        try:
            call()
        except OSError as error:
            print(error)


def attribute():
    os.setxattr(VICTIM_FILE, "user.mark", b"new")


def attribute_of_link():
    os.setxattr(VICTIM_FILE, "user.mark", b"new", follow_symlinks=False)


def attribute_by_descriptor():
    os.setxattr(os.open(GUIDE, os.O_RDONLY), "user.mark", b"new")


def attribute_of_folder_by_descriptor():
    os.setxattr(os.open(CLOSED, os.O_RDONLY), "user.mark", b"new")


def attribute_removed():
    os.removexattr(VICTIM_FILE, "user.mark")


def attribute_removed_by_descriptor():
    os.removexattr(os.open(GUIDE, os.O_RDONLY), "user.mark")


def attribute_by_new_call():
    value = ctypes.create_string_buffer(b"new")
    args = struct.pack("QII", ctypes.addressof(value), 3, 0)
    syscall(463, AT_FDCWD, VICTIM_FILE, 0, b"user.mark", args, len(args))


def attribute_by_new_call_and_empty_path():
    value = ctypes.create_string_buffer(b"new")
    args = struct.pack("QII", ctypes.addressof(value), 3, 0)
    fd = os.open(GUIDE, os.O_RDONLY)
    syscall(463, fd, b"", AT_EMPTY_PATH, b"user.mark", args, len(args))


def attribute_removed_by_new_call():
    syscall(466, AT_FDCWD, VICTIM_FILE, 0, b"user.mark")


def version_of_readable():
    """Another request than the one that all file systems share."""
    fd = os.open(GUIDE, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, 0x40086604, struct.pack("L", 4711))
    except OSError as error:
        if error.errno in (errno.ENOTTY, errno.EOPNOTSUPP):
            missing(error)
        raise
    through()


def attribute_of_the_system():
    """Of the superuser alone, and only with a right that is given up."""
    os.setxattr("own", "trusted.mark", b"new")
    through()


FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
FS_NODUMP = 0x40


def set_flag(path):
    fd = os.open(path, os.O_RDONLY)
    flags = struct.unpack("I", fcntl.ioctl(fd, FS_IOC_GETFLAGS, b"\0" * 4))[0]
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("I", flags | FS_NODUMP))


def flags_of_readable():
    set_flag(GUIDE)


def flags_of_folder():
    set_flag(CLOSED)


def flags_by_other_request():
    fd = os.open(GUIDE, os.O_RDONLY)
    attributes = bytearray(fcntl.ioctl(fd, 0x801C581F, b"\0" * 28))
    attributes[0] |= 0x80
    fcntl.ioctl(fd, 0x401C5820, bytes(attributes))


def flags_by_new_call():
    attributes = ctypes.create_string_buffer(24)
    fd = os.open(GUIDE, os.O_RDONLY)
    syscall(468, fd, b"", attributes, 24, AT_EMPTY_PATH)
    changed = bytearray(attributes.raw)
    changed[0] |= 0x80
    syscall(469, fd, b"", bytes(changed), 24, AT_EMPTY_PATH)


def git_link_made():
    os.symlink("config", ".git/COMMIT_EDITMSG")
    through()


def git_link_moved():
    os.symlink("config", "link")
    os.rename("link", ".git/FETCH_HEAD")
    through()


def git_link_exchanged():
    os.symlink("config", "link")
    open(".git/FETCH_HEAD", "w").close()
    syscall(316, AT_FDCWD, "link", AT_FDCWD, ".git/FETCH_HEAD", 2)
    through()


def git_link_linked():
    os.symlink("config", "link")
    os.link("link", ".git/MERGE_MSG", follow_symlinks=False)
    through()


def git_link_in_a_folder():
    os.makedirs("folder/within")
    os.symlink("../../../config", "folder/within/HEAD")
    os.rename("folder", ".git/logs")
    through()


def git_pipe_made():
    os.mkfifo(".git/SQUASH_MSG")
    through()


def git_repository_within():
    """A folder that git takes for a repository, with a config of its own."""
    subprocess.run(["git", "init", "-q", "--bare", "evil"], check=True)
    os.rename("evil", ".git/refs/evil")
    through()


def git_objects_of_another():
    """The next git takes what it needs from there, and keeps it."""
    with open(".git/objects/info/new", "w") as file:
        file.write(CLOSED + "/repository/.git/objects\n")
    os.rename(".git/objects/info/new", ".git/objects/info/alternates")
    through()


def git_refs_moved():
    """Without them git finds no repository here, and takes the next one above."""
    os.rename(".git/refs", "refs")
    through()


def git_head_removed():
    os.unlink(".git/HEAD")
    through()


def git_objects_exchanged():
    os.mkdir("folder")
    syscall(316, AT_FDCWD, "folder", AT_FDCWD, ".git/objects", 2)
    through()


def core_dump():
    """The kernel itself writes into the current folder."""
    pattern = open("/proc/sys/kernel/core_pattern").read().strip()
    if pattern.startswith("|") or "/" in pattern:
        missing("core dumps go elsewhere")
    os.chdir(CLOSED)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    except ValueError:
        missing("core dumps are limited")
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    os.waitpid(child, 0)


def draft_over_another():
    os.rename(CLOSED + "/single.txt", CLOSED + "/single.txt.bak")


def draft_over_another_by_linking():
    os.unlink(CLOSED + "/single.txt.bak")
    os.link(CLOSED + "/single.txt", CLOSED + "/single.txt.bak")


def draft_opened():
    os.open(CLOSED + "/single.txt.bak", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def draft_removed():
    os.unlink(CLOSED + "/single.txt.bak")


def draft_mode():
    os.chmod(CLOSED + "/single.txt.bak", 0o600)


def named_like_a_folder():
    """Beside a folder that is allowed with all in it."""
    for name in ("_template.rs", "-v2.rs", "_test2.c", ".tmp", ".tmp.81", ".new", "~"):
        beside = os.environ["WORKSPACE"] + "/open" + name
        try:
            open(beside, "w").close()
        except OSError as error:
            print(error)
        else:
            os.unlink(beside)
            through()


def vault():
    open(VAULT + "/victim", "w").write("changed")


def vault_new_file():
    open(VAULT + "/new", "w").write("new")


def vault_rename_in():
    open(OUTSIDE + "/mine", "w").write("new")
    os.rename(OUTSIDE + "/mine", VAULT + "/victim")


def vault_unlink():
    os.unlink(VAULT + "/victim")


def vault_mode():
    os.chmod(VAULT + "/victim", 0o666)


def configuration():
    """That of the team, beside the workspace."""
    path = os.path.dirname(os.environ["WORKSPACE"]) + "/eisen.toml"
    open(path, "a").close()
    through()


def run_file_times():
    path = os.environ["RUN_FILE"]
    before = os.stat(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    through()


def set_id(make):
    """A file in the zone that gives whoever executes it the rights of its user."""
    open("program", "w").close()
    try:
        make()
    except OSError as error:
        print(error)
    for name in ("program", "new"):
        if os.path.exists(name) and os.stat(name).st_mode & 0o6000:
            through()


def set_uid_by_mode():
    set_id(lambda: os.chmod("program", 0o4755))


def set_gid_by_mode():
    set_id(lambda: os.chmod("program", 0o2755))


def set_uid_by_descriptor():
    set_id(lambda: os.fchmod(os.open("program", os.O_RDONLY), 0o4755))


def set_uid_by_new_call():
    set_id(lambda: syscall(452, AT_FDCWD, "program", 0o4755, 0))


def set_uid_by_creating():
    set_id(lambda: os.open("new", os.O_CREAT | os.O_WRONLY, 0o4755))


def set_uid_by_node():
    set_id(lambda: os.mknod("new", 0o104755))


def set_uid_outside():
    """Where names are made without help."""
    os.chdir(OUTSIDE)
    set_id(lambda: os.open("new", os.O_CREAT | os.O_WRONLY, 0o4755))


def set_uid_by_structure():
    """The mode lies in memory."""
    os.chdir(OUTSIDE)
    how = struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0)
    set_id(lambda: syscall(437, AT_FDCWD, "new", how, 24))


run(globals())
