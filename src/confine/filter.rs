//! The program by which the kernel tells calls apart: which ring the doorbell, which fail, which
//! go on unseen.
//!
//! A call that always goes on costs nothing but a lookup: the kernel runs the program once for each
//! number when it is loaded, and remembers which of them are allowed whatever their arguments are.

use std::mem::offset_of;

use nix::libc::{self, seccomp_data, sock_filter};

use super::calls::{ABSENT, NEWEST, NOTIFIED, REFUSED, REFUSED_COMMANDS, REFUSED_REQUESTS};

/// What the kernel calls the processor that this program is built for; None where the numbers of
/// the calls were never looked at.
pub(super) const NATIVE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// Marks calls of the x32 kind, which have other numbers under the same architecture.
const X32: u32 = 0x4000_0000;

/// Calls that open, and which of their arguments says how.
const OPENS: &[(libc::c_long, usize)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// The bits of a socket's type beside its flags.
const TYPE: u32 = 0xf;

/// Calls whose first argument may ask for new namespaces.
const NAMESPACING: [libc::c_long; 2] = [libc::SYS_unshare, libc::SYS_clone];

/// New namespaces. In one of its own a process has all rights, and its mounts give files paths that
/// mean something else outside. (One of time has no bit in `clone`, and needs a right that is gone.)
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// The old way to see all packets: a type of the internet's sockets, which no crate names.
const SOCK_PACKET: libc::c_int = 10;

/// Builds the program for calls of `native` processors.
pub(super) fn program(native: u32) -> Vec<sock_filter> {
    let kill = libc::SECCOMP_RET_KILL_PROCESS;
    let mut program = vec![load(offset_of!(seccomp_data, arch))];
    program.extend(unless_equal(native, kill));
    program.push(load(offset_of!(seccomp_data, nr)));
    if cfg!(target_arch = "x86_64") {
        program.push(jump(libc::BPF_JGE, X32, 0, 1));
        program.push(end(kill));
    }
    program.push(jump(libc::BPF_JGT, number(NEWEST), 0, 1));
    program.push(end(fails(libc::ENOSYS)));
    for (call, flags) in OPENS {
        program.extend(names_alone(*call, *flags));
    }
    program.extend(sockets());
    program.extend(namespaces(fails(libc::EPERM)));
    program.extend(requests(libc::SYS_ioctl, REFUSED_REQUESTS, fails(libc::EPERM)));
    program.extend(requests(libc::SYS_fcntl, REFUSED_COMMANDS, fails(libc::EPERM)));
    program.extend(limits_of_others(fails(libc::EPERM)));
    let mut fates = Vec::new();
    for (calls, action) in [
        (NOTIFIED, libc::SECCOMP_RET_USER_NOTIF),
        (REFUSED, fails(libc::EPERM)),
        (ABSENT, fails(libc::ENOSYS)),
    ] {
        fates.extend(calls.iter().map(|&call| (number(call), action)));
    }
    fates.sort_unstable();
    program.extend(by_number(&fates));
    program
}

/// Ends every call: those that are listed, in the order of their numbers, by their own fate, and all
/// others by going on. Halves the list as long as it is long: the kernel runs the program for each
/// number there is when it is loaded, which a start waits for.
fn by_number(fates: &[(u32, u32)]) -> Vec<sock_filter> {
    const FEW: usize = 4;
    if fates.len() <= FEW {
        let mut few: Vec<_> = fates.iter().flat_map(|&(call, fate)| if_equal(call, fate)).collect();
        few.push(end(libc::SECCOMP_RET_ALLOW));
        return few;
    }
    let (low, high) = fates.split_at(fates.len() / 2);
    let low = by_number(low);
    let length = u32::try_from(low.len()).unwrap_or(u32::MAX);
    let mut program =
        vec![jump(libc::BPF_JGE, high[0].0, 0, 1), statement(libc::BPF_JMP | libc::BPF_JA, length)];
    program.extend(low);
    program.extend(by_number(high));
    program
}

/// Opens that reach no contents: of a folder, to list it, and of a handle, whose every use is judged
/// for itself. They are many, and names are not protected. Falls through for all others.
fn names_alone(call: libc::c_long, flags: usize) -> [sock_filter; 7] {
    let [path, folder] = [libc::O_PATH, libc::O_DIRECTORY].map(bits);
    // What makes a file, or writes one, is no listing; on old kernels not even with O_DIRECTORY.
    let more = bits(libc::O_TMPFILE | libc::O_CREAT | libc::O_TRUNC | libc::O_ACCMODE);
    [
        jump(libc::BPF_JEQ, number(call), 0, 6),
        load(argument(flags)),
        jump(libc::BPF_JSET, path, 2, 0),
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, more),
        jump(libc::BPF_JEQ, folder, 0, 1),
        end(libc::SECCOMP_RET_ALLOW),
        // Later checks look at the number again.
        load(offset_of!(seccomp_data, nr)),
    ]
}

/// Ends each call that makes a socket. Those of unix (but for datagrams, which reach a path without a
/// `connect` that could be judged) and of the internet (but for raw ones, which read and forge what
/// others send) go on, and so do those that ask for the machine's addresses. Of all other families a
/// program finds that this kernel has none. Falls through for all other calls.
fn sockets() -> Vec<sock_filter> {
    let typed = |refused: [libc::c_int; 2], fate: u32| {
        let mut block =
            vec![load(argument(1)), statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, TYPE)];
        block.extend(refused.into_iter().flat_map(|kind| if_equal(bits(kind), fate)));
        block.push(end(libc::SECCOMP_RET_ALLOW));
        block
    };
    let mut addresses = vec![load(argument(2))];
    addresses.extend(if_equal(bits(libc::NETLINK_ROUTE), libc::SECCOMP_RET_ALLOW));
    addresses.push(end(fails(libc::EPROTONOSUPPORT)));
    let datagrams = typed([libc::SOCK_DGRAM, libc::SOCK_RAW], fails(libc::EACCES));
    let raw = typed([libc::SOCK_RAW, SOCK_PACKET], fails(libc::EPERM));
    let mut families = vec![load(argument(0))];
    for (family, block) in [
        (libc::AF_UNIX, datagrams),
        (libc::AF_INET, raw.clone()),
        (libc::AF_INET6, raw),
        (libc::AF_NETLINK, addresses),
    ] {
        families.push(jump(libc::BPF_JEQ, bits(family), 0, length(&block)));
        families.extend(block);
    }
    families.push(end(fails(libc::EAFNOSUPPORT)));
    let mut program = vec![
        jump(libc::BPF_JEQ, number(libc::SYS_socket), 1, 0),
        jump(libc::BPF_JEQ, number(libc::SYS_socketpair), 0, length(&families)),
    ];
    program.extend(families);
    program
}

/// Calls that ask for a new namespace. Falls through for those that don't, and for all others.
fn namespaces(refused: u32) -> [sock_filter; 6] {
    [
        jump(libc::BPF_JEQ, number(NAMESPACING[0]), 1, 0),
        jump(libc::BPF_JEQ, number(NAMESPACING[1]), 0, 4),
        load(argument(0)),
        jump(libc::BPF_JSET, bits(NAMESPACES), 0, 1),
        end(refused),
        // Later checks look at the number again.
        load(offset_of!(seccomp_data, nr)),
    ]
}

/// Requests to a descriptor that reach past what it was opened for: attributes of a file that may
/// only be read, what somebody types at a terminal, others who open a file. Falls through for all
/// others.
fn requests(call: libc::c_long, requests: &[u32], refused: u32) -> Vec<sock_filter> {
    let mut block = vec![load(argument(1))];
    block.extend(requests.iter().flat_map(|&request| if_equal(request, refused)));
    // Later checks look at the number again.
    block.push(load(offset_of!(seccomp_data, nr)));
    let mut program = vec![jump(libc::BPF_JEQ, number(call), 0, length(&block))];
    program.extend(block);
    program
}

/// Limits of another process, which the kernel lets be set for any of the same user. Falls through
/// for a process's own.
fn limits_of_others(refused: u32) -> Vec<sock_filter> {
    let mut program =
        vec![jump(libc::BPF_JEQ, number(libc::SYS_prlimit64), 0, 4), load(argument(0))];
    program.extend(unless_equal(0, refused));
    // Later checks look at the number again.
    program.push(load(offset_of!(seccomp_data, nr)));
    program
}

fn fails(errno: libc::c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

/// How far a jump over a block goes; blocks are shorter than the farthest.
fn length(block: &[sock_filter]) -> u8 {
    u8::try_from(block.len()).unwrap_or(u8::MAX)
}

fn if_equal(value: u32, action: u32) -> [sock_filter; 2] {
    [jump(libc::BPF_JEQ, value, 0, 1), end(action)]
}

fn unless_equal(value: u32, action: u32) -> [sock_filter; 2] {
    [jump(libc::BPF_JEQ, value, 1, 0), end(action)]
}

fn load(offset: usize) -> sock_filter {
    let offset = u32::try_from(offset).unwrap_or(u32::MAX);
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

/// Where the half of an argument is that the kernel takes an `int` from.
fn argument(number: usize) -> usize {
    let low = if cfg!(target_endian = "big") { 4 } else { 0 };
    offset_of!(seccomp_data, args) + 8 * number + low
}

/// Skips so many instructions if the comparison holds, else so many.
fn jump(comparison: u32, value: u32, if_so: u8, else_: u8) -> sock_filter {
    let code = libc::BPF_JMP | comparison | libc::BPF_K;
    sock_filter { jt: if_so, jf: else_, ..statement(code, value) }
}

fn end(action: u32) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, action)
}

#[expect(clippy::cast_possible_truncation, reason = "codes are bytes")]
fn statement(code: u32, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
fn number(call: libc::c_long) -> u32 {
    call as u32
}

fn bits(value: libc::c_int) -> u32 {
    value.cast_unsigned()
}

#[cfg(test)]
mod tests;
