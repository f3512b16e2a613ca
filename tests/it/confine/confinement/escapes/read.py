"""Ways to read a file that the zone forbids."""

import ctypes
import mmap
import os
import platform
import struct
import subprocess
import sys
import time

from common import *


def open_direct():
    show(SECRET)


def open_relative():
    show(os.path.relpath(SECRET))


def open_dots():
    show(OPEN + "/./" + os.path.relpath(SECRET, OPEN).replace("/", "//./"))


def open_long_path():
    up = os.path.relpath(SECRET, OPEN)
    show("./" * ((4095 - len(up)) // 2) + up)


def open_odd_names():
    for name in (b"new\nline", b"\xff\xfe", b"n" * 255, b" ", b"-"):
        show(os.fsencode(CLOSED) + b"/" + name)


def open_child():
    subprocess.run(["cat", SECRET])


def open_grandchild_in_new_session():
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(reader)
            try:
                os.write(writer, open(SECRET, "rb").read())
            finally:
                os._exit(0)
        os._exit(0)
    os.close(writer)
    os.wait()
    print(os.read(reader, 4096))


def open_closed_descriptors():
    if os.fork() == 0:
        os.dup2(1, 500)
        os.closerange(0, 500)
        os.write(500, open(SECRET, "rb").read())
        os._exit(0)
    os.wait()


def symlink():
    os.symlink(SECRET, "link")
    show("link")


def symlink_relative():
    os.symlink(os.path.relpath(SECRET), "link")
    show("link")


def symlink_to_folder():
    os.symlink(CLOSED, "folder")
    show("folder/secret")
    show("folder/../" + os.path.basename(CLOSED) + "/secret")


def symlink_chain():
    os.symlink(CLOSED, "one")
    os.symlink("one/inner", "two")
    os.symlink("two/../secret", "three")
    show("three")


def symlink_through_proc():
    os.symlink("/proc/self/root" + SECRET, "link")
    show("link")


def hard_link():
    os.link(SECRET, "link")
    show("link")


def hard_link_by_descriptor():
    fd = os.open(SECRET, os.O_PATH)
    link_followed(f"/proc/self/fd/{fd}", "link")
    show("link")


def hard_link_by_empty_path():
    fd = os.open(SECRET, os.O_PATH)
    syscall(265, fd, "", AT_FDCWD, "link", AT_EMPTY_PATH)
    show("link")


def rename_out():
    os.rename(SECRET, "mine")
    show("mine")


def rename_folder_out():
    os.rename(CLOSED + "/inner", "mine")
    show("mine/secret")


def rename_exchange():
    syscall(316, AT_FDCWD, SECRET, AT_FDCWD, "own", 2)
    show("own")


def rename_whiteout():
    syscall(316, AT_FDCWD, SECRET, AT_FDCWD, "mine", 4)
    show("mine")


def denied_name():
    show(MIXED + "/.env")


def denied_name_renamed():
    os.rename(MIXED + "/.env", MIXED + "/env")
    show(MIXED + "/env")


def denied_name_exchanged():
    syscall(316, AT_FDCWD, MIXED + "/.env", AT_FDCWD, MIXED + "/fine", 2)
    show(MIXED + "/fine")


def denied_name_linked():
    os.link(MIXED + "/.env", MIXED + "/env")
    show(MIXED + "/env")


def denied_name_symlinked():
    os.symlink(".env", MIXED + "/env")
    show(MIXED + "/env")


def denied_folder_renamed():
    os.rename(MIXED + "/denied", MIXED + "/allowed")
    show(MIXED + "/allowed/secret")


def denied_folder_exchanged():
    os.mkdir(MIXED + "/other")
    syscall(316, AT_FDCWD, MIXED + "/other", AT_FDCWD, MIXED + "/denied", 2)
    show(MIXED + "/other/secret")


def parent_of_denied_renamed():
    os.rename(MIXED + "/deep", MIXED + "/flat")
    show(MIXED + "/flat/core/secret")
    os.rename(MIXED + "/flat", MIXED + "/deep")


def parent_of_denied_moved_to_the_zone():
    os.rename(MIXED + "/deep", "mine")
    show("mine/core/secret")


def proc_self_root():
    show("/proc/self/root" + SECRET)


def proc_self_cwd():
    show("/proc/self/cwd/" + os.path.relpath(SECRET))


def proc_self_cwd_inside():
    os.chdir(CLOSED)
    show("/proc/self/cwd/secret")


def proc_thread_self_root():
    show("/proc/thread-self/root" + SECRET)


def proc_task_root():
    show(f"/proc/self/task/{os.getpid()}/root" + SECRET)


def proc_self_fd_of_folder():
    fd = os.open(CLOSED, os.O_RDONLY | os.O_DIRECTORY)
    show(f"/proc/self/fd/{fd}/secret")


def proc_child_cwd():
    reader, writer = os.pipe()
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.chdir(CLOSED)
        os.write(tell, b".")
        os.read(reader, 1)
        os._exit(0)
    os.read(ready, 1)
    try:
        show(f"/proc/{child}/cwd/secret")
    finally:
        os.close(writer)
        os.wait()


def openat_foreign_folder():
    fd = os.open(CLOSED, os.O_PATH | os.O_DIRECTORY)
    show("secret", dir_fd=fd)


def openat_listed_folder():
    fd = os.open(CLOSED, os.O_RDONLY | os.O_DIRECTORY)
    show("secret", dir_fd=fd)


def openat_dots():
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    show(os.path.relpath(SECRET), dir_fd=fd)


def openat_root():
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    show(SECRET[1:], dir_fd=fd)


def openat2_flags():
    """With each flag of resolution, from the folder and from above it."""
    how = lambda resolve: struct.pack("QQQ", os.O_RDONLY, 0, resolve)
    inside = os.open(CLOSED, os.O_PATH | os.O_DIRECTORY)
    above = os.open(os.path.dirname(CLOSED), os.O_PATH | os.O_DIRECTORY)
    for resolve in (0, 1, 2, 4, 8, 0x10, 0x20):
        for base, path in (
            (AT_FDCWD, SECRET),
            (inside, "secret"),
            (above, os.path.basename(CLOSED) + "/secret"),
            (inside, "/secret"),
        ):
            try:
                show_fd(syscall(437, base, path, how(resolve), 24))
            except OSError as error:
                print(resolve, path, error)


def openat2_larger():
    """With a structure as a later kernel may have it."""
    show_fd(syscall(437, AT_FDCWD, SECRET, struct.pack("QQQQQ", os.O_RDONLY, 0, 0, 0, 0), 40))


def chdir_first():
    os.chdir(CLOSED)
    show("secret")


def chdir_above():
    os.chdir(os.path.dirname(CLOSED))
    show(os.path.basename(CLOSED) + "/secret")


def fchdir_first():
    os.fchdir(os.open(CLOSED, os.O_PATH))
    show("secret")


def map_memory():
    fd = os.open(SECRET, os.O_RDONLY)
    print(mmap.mmap(fd, 0, prot=mmap.PROT_READ)[:])


def path_reopened():
    fd = os.open(SECRET, os.O_PATH)
    show(f"/proc/self/fd/{fd}")


def path_reopened_by_dev_fd():
    fd = os.open(SECRET, os.O_PATH)
    show(f"/dev/fd/{fd}")


def path_reopened_relative():
    fd = os.open(SECRET, os.O_PATH)
    folder = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
    show(str(fd), dir_fd=folder)


def path_reopened_by_child():
    fd = os.open(SECRET, os.O_PATH)
    os.dup2(fd, 0)
    subprocess.run(["cat", "/dev/stdin"], stdin=0)


def copy_file_range():
    source = os.open(SECRET, os.O_RDONLY)
    copy = os.open("copy", os.O_RDWR | os.O_CREAT)
    os.copy_file_range(source, copy, 4096)
    os.lseek(copy, 0, 0)
    show_fd(copy)


def sendfile_to_memory():
    source = os.open(SECRET, os.O_RDONLY)
    memory = os.memfd_create("memory")
    os.sendfile(memory, source, 0, 4096)
    os.lseek(memory, 0, 0)
    show_fd(memory)


def splice_to_pipe():
    reader, writer = os.pipe()
    os.splice(os.open(SECRET, os.O_RDONLY), writer, 4096)
    show_fd(reader)


def handle():
    """A file by its handle: no path is told."""
    buffer = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 8 + 128)
    mount = ctypes.c_int()
    syscall(303, AT_FDCWD, SECRET, buffer, ctypes.byref(mount), 0)
    show_fd(syscall(304, os.open("/", os.O_RDONLY), buffer, os.O_RDONLY))


def inherited():
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                print(name, os.readlink("/proc/self/fd/" + name))
                show_fd(int(name))
                show(f"/proc/self/fd/{name}/secret")
            except OSError as error:
                print(name, error)


def vault():
    show(VAULT + "/secret")


def vault_by_link():
    os.symlink(VAULT, "vault")
    show("vault/secret")


def vault_linked():
    os.link(VAULT + "/secret", "link")
    show("link")


def vault_renamed():
    os.rename(VAULT, OUTSIDE + "/vault")
    show(OUTSIDE + "/vault/secret")


def vault_parent_renamed():
    """The folder that holds `$EISEN_DIR` lies outside the workspace."""
    stage = os.path.dirname(os.environ["WORKSPACE"])
    os.rename(stage + "/home", stage + "/elsewhere")
    try:
        show(VAULT.replace(stage + "/home", stage + "/elsewhere") + "/secret")
    finally:
        os.rename(stage + "/elsewhere", stage + "/home")


def hidden():
    """Outside the workspace, where a pattern that searches at any depth denies it."""
    show(OUTSIDE + "/a/hidden/secret")


def hidden_linked():
    os.link(OUTSIDE + "/a/hidden/secret", "link")
    show("link")


def out_of_sight():
    """A folder to which that pattern does not reach."""
    stage = os.path.dirname(os.environ["WORKSPACE"])
    return stage + "/out-of-sight-" + "-".join(OUTSIDE.split("/")[-2:])


def hidden_parent_renamed():
    os.rename(OUTSIDE + "/a", out_of_sight())
    show(out_of_sight() + "/hidden/secret")


def hidden_parent_of_parent_renamed():
    os.rename(OUTSIDE, out_of_sight())
    show(out_of_sight() + "/a/hidden/secret")


def hidden_parent_exchanged():
    os.mkdir(out_of_sight())
    syscall(276 if platform.machine() == "aarch64" else 316, AT_FDCWD, out_of_sight(), AT_FDCWD, OUTSIDE + "/a", 2)
    show(out_of_sight() + "/hidden/secret")


def workspace_renamed():
    """The workspace under another name is outside the workspace."""
    shop = os.environ["WORKSPACE"]
    os.rename(shop, shop + "-moved")
    try:
        show(SECRET.replace(shop, shop + "-moved"))
    finally:
        os.rename(shop + "-moved", shop)


def secret_renamed_out_of_the_workspace():
    os.rename(SECRET, OUTSIDE + "/mine")
    show(OUTSIDE + "/mine")


def secret_linked_out_of_the_workspace():
    os.link(SECRET, OUTSIDE + "/mine")
    show(OUTSIDE + "/mine")


def run_file():
    print(open(os.environ["RUN_FILE"]).read())


def draft_name():
    """A file that looks like what an editor makes beside an allowed one, and is not."""
    show(CLOSED + "/single.txt.lock")


def draft_by_renaming():
    os.rename(SECRET, CLOSED + "/single.txt.tmp")
    show(CLOSED + "/single.txt.tmp")


def draft_by_linking():
    os.link(SECRET, CLOSED + "/single.txt.tmp")
    show(CLOSED + "/single.txt.tmp")


def draft_whose_number_is_used_again():
    """Files made outside, later, get the numbers of files that are gone."""
    for number in range(200):
        try:
            os.close(os.open(f"{CLOSED}/single.txt.tmp{number}", os.O_CREAT | os.O_WRONLY))
        except OSError as error:
            print(error)
    for number in range(200):
        try:
            os.unlink(f"{CLOSED}/single.txt.tmp{number}")
        except OSError as error:
            print(error)
    for _ in range(100):
        time.sleep(0.005)
        try:
            text = open(CLOSED + "/empty/later").read()
            if text:
                return print(text)
        except OSError as error:
            print(error)


def exec_script():
    subprocess.run([CLOSED + "/script"])


def exec_script_by_shell():
    subprocess.run(["sh", CLOSED + "/script"])


def exec_script_by_descriptor():
    fd = os.open(CLOSED + "/script", os.O_PATH)
    os.set_inheritable(fd, True)
    os.execve(fd, ["script"], os.environ)


def exec_binary():
    os.execv(CLOSED + "/binary", ["binary"])


def exec_binary_by_descriptor():
    fd = os.open(CLOSED + "/binary", os.O_PATH)
    os.execve(fd, ["binary"], os.environ)


def exec_binary_by_loader():
    loader = "/lib64/ld-linux-x86-64.so.2"
    if not os.path.exists(loader):
        missing(loader)
    os.execv(loader, [loader, CLOSED + "/binary"])


def exec_library_preloaded():
    os.execve("/bin/true", ["true"], {"LD_PRELOAD": CLOSED + "/library.so"})


def exec_library_opened():
    ctypes.CDLL(CLOSED + "/library.so")


def exec_interpreter():
    with open("mine", "w") as file:
        file.write("#!" + CLOSED + "/binary\n")
    os.chmod("mine", 0o755)
    os.execv("./mine", ["mine"])


def interpreter_shows_file():
    os.symlink(SECRET, "s")
    with open("mine", "w") as file:
        file.write("#!/bin/cat s\n")
    os.chmod("mine", 0o755)
    os.execv("./mine", ["mine"])


def setuid_program():
    """A program that runs as another, and may read what is that one's."""
    os.execv(OUTSIDE + "/as-root", ["as-root", OUTSIDE + "/of-root"])


def fanotify():
    """The kernel opens for its listener what others open."""
    group = syscall(300, 4, os.O_RDONLY)
    syscall(301, group, 0x1 | 0x10, 0x20, AT_FDCWD, os.path.dirname(CLOSED))
    while True:
        event = os.read(group, 4096)
        while event:
            length, fd = struct.unpack("I", event[:4])[0], struct.unpack("i", event[16:20])[0]
            if os.readlink(f"/proc/self/fd/{fd}") == SECRET:
                show_fd(fd)
                return
            os.close(fd)
            event = event[length:]


run(globals())
