//! The seccomp program, which decides for each call whether it is stopped for the doorbell, fails,
//! or continues unseen.
//!
//! A call that always continues costs one lookup: when loading the program, the kernel runs it for
//! each number and caches the calls that are allowed with any arguments.

use std::mem::offset_of;

use nix::libc::{self, seccomp_data, sock_filter};

use super::syscall_lists::{ABSENT, NEWEST, NOTIFIED, REFUSED, REFUSED_COMMANDS, REFUSED_REQUESTS};

/// The kernel's constant for this processor; `None` if the numbers of its calls were not reviewed.
pub(super) const NATIVE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// Marks calls of the x32 ABI, which have other numbers under the same architecture.
const X32: u32 = 0x4000_0000;

/// Calls that open files, with the index of their flags.
const OPENS: &[(libc::c_long, usize)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// The bits of a socket's type beside its flags.
const TYPE: u32 = 0xf;

/// Calls whose first argument may ask for new namespaces.
const NAMESPACING: [libc::c_long; 2] = [libc::SYS_unshare, libc::SYS_clone];

/// New namespaces: a process has all rights in its own, and its mounts give files paths with
/// another meaning outside. (A time namespace has no bit in `clone`, and needs a right that was
/// dropped.)
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// The old way to receive all packets: an internet socket type that no crate defines.
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

/// Ends listed calls, sorted by number, with their own action, and lets all others continue. A
/// binary search, since the kernel runs the program for each number when it is loaded, which delays
/// a start.
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

/// Lets opens without contents continue: folders for listing, and handles, whose every use is
/// judged. They are frequent, and names are not protected. Falls through for all others.
fn names_alone(call: libc::c_long, flags: usize) -> [sock_filter; 7] {
    let [path, folder] = [libc::O_PATH, libc::O_DIRECTORY].map(bits);
    // A call that creates or writes is no listing; on old kernels not even with O_DIRECTORY.
    let more = bits(libc::O_TMPFILE | libc::O_CREAT | libc::O_TRUNC | libc::O_ACCMODE);
    [
        jump(libc::BPF_JEQ, number(call), 0, 6),
        load(argument(flags)),
        jump(libc::BPF_JSET, path, 2, 0),
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, more),
        jump(libc::BPF_JEQ, folder, 0, 1),
        end(libc::SECCOMP_RET_ALLOW),
        // Reloads the number for later checks.
        load(offset_of!(seccomp_data, nr)),
    ]
}

/// Ends each call that creates a socket. Unix sockets continue, except datagrams, which reach a
/// path without a `connect`; so do internet sockets, except raw ones, which read and forge packets
/// of others, and route sockets. All other families appear unsupported. Falls through for other
/// calls.
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

/// Refuses calls for a new namespace. Falls through for all others.
fn namespaces(refused: u32) -> [sock_filter; 6] {
    [
        jump(libc::BPF_JEQ, number(NAMESPACING[0]), 1, 0),
        jump(libc::BPF_JEQ, number(NAMESPACING[1]), 0, 4),
        load(argument(0)),
        jump(libc::BPF_JSET, bits(NAMESPACES), 0, 1),
        end(refused),
        // Reloads the number for later checks.
        load(offset_of!(seccomp_data, nr)),
    ]
}

/// Refuses descriptor requests that exceed the access with which it was opened: attributes of a
/// read-only file, terminal input, leases. Falls through for all others.
fn requests(call: libc::c_long, requests: &[u32], refused: u32) -> Vec<sock_filter> {
    let mut block = vec![load(argument(1))];
    block.extend(requests.iter().flat_map(|&request| if_equal(request, refused)));
    // Reloads the number for later checks.
    block.push(load(offset_of!(seccomp_data, nr)));
    let mut program = vec![jump(libc::BPF_JEQ, number(call), 0, length(&block))];
    program.extend(block);
    program
}

/// Refuses changing the limits of another process, which the kernel allows for the same user. Falls
/// through for a process's own.
fn limits_of_others(refused: u32) -> Vec<sock_filter> {
    let mut program =
        vec![jump(libc::BPF_JEQ, number(libc::SYS_prlimit64), 0, 4), load(argument(0))];
    program.extend(unless_equal(0, refused));
    // Reloads the number for later checks.
    program.push(load(offset_of!(seccomp_data, nr)));
    program
}

fn fails(errno: libc::c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

/// The length of a jump over a block, which always fits.
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

/// The offset of the half of an argument that the kernel takes as an `int`.
fn argument(number: usize) -> usize {
    let low = if cfg!(target_endian = "big") { 4 } else { 0 };
    offset_of!(seccomp_data, args) + 8 * number + low
}

/// Skips `if_so` instructions if the comparison holds, else `else_`.
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
