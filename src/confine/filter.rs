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
    let fails = |errno: i32| libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
    program.push(jump(libc::BPF_JGT, number(NEWEST), 0, 1));
    program.push(end(fails(libc::ENOSYS)));
    for (call, flags) in OPENS {
        program.extend(names_alone(*call, *flags));
    }
    program.extend(datagrams_to_paths(fails(libc::EACCES)));
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

/// A datagram reaches a path without a `connect` that could be judged. Falls through for all other
/// sockets and calls.
fn datagrams_to_paths(refused: u32) -> Vec<sock_filter> {
    let [unix, datagram, raw] = [libc::AF_UNIX, libc::SOCK_DGRAM, libc::SOCK_RAW].map(bits);
    let mut program = vec![
        jump(libc::BPF_JEQ, number(libc::SYS_socket), 1, 0),
        jump(libc::BPF_JEQ, number(libc::SYS_socketpair), 0, 9),
        load(argument(0)),
        jump(libc::BPF_JEQ, unix, 0, 6),
        load(argument(1)),
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, TYPE),
    ];
    program.extend(if_equal(datagram, refused));
    program.extend(if_equal(raw, refused));
    // Later checks look at the number again.
    program.push(load(offset_of!(seccomp_data, nr)));
    program
}

/// Requests to a descriptor that reach past what it was opened for: attributes of a file that may
/// only be read, what somebody types at a terminal, others who open a file. Falls through for all
/// others.
fn requests(call: libc::c_long, requests: &[u32], refused: u32) -> Vec<sock_filter> {
    let checks: Vec<_> = requests.iter().flat_map(|&request| if_equal(request, refused)).collect();
    let length = u8::try_from(checks.len() + 2).unwrap_or(u8::MAX);
    let mut program = vec![jump(libc::BPF_JEQ, number(call), 0, length), load(argument(1))];
    program.extend(checks);
    // Later checks look at the number again.
    program.push(load(offset_of!(seccomp_data, nr)));
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const RING: u32 = libc::SECCOMP_RET_USER_NOTIF;

    fn fails(errno: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | u32::try_from(errno).unwrap()
    }

    /// What the kernel would do, as it runs such programs.
    fn run(program: &[sock_filter], arch: u32, call: u32, args: [u64; 6]) -> u32 {
        let mut data = [call.to_ne_bytes(), arch.to_ne_bytes()].concat();
        data.extend([0; 8]);
        data.extend(args.iter().flat_map(|arg| arg.to_ne_bytes()));
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let holds = match u32::from(code) {
                0x20 => {
                    let offset = usize::try_from(k).unwrap();
                    assert_eq!(offset % 4, 0);
                    let word = data[offset..offset + 4].try_into().unwrap();
                    accumulator = u32::from_ne_bytes(word);
                    continue;
                }
                0x54 => {
                    accumulator &= k;
                    continue;
                }
                0x05 => {
                    at += k as usize;
                    continue;
                }
                0x06 => return k,
                0x15 => accumulator == k,
                0x45 => accumulator & k != 0,
                0x25 => accumulator > k,
                0x35 => accumulator >= k,
                other => panic!("{other:#x}"),
            };
            at += usize::from(if holds { jt } else { jf });
        }
    }

    fn native(call: libc::c_long, args: [u64; 6]) -> u32 {
        let arch = NATIVE.unwrap();
        run(&program(arch), arch, number(call), args)
    }

    #[test]
    fn each_listed_call_has_its_own_fate() {
        for (calls, fate) in
            [(NOTIFIED, RING), (REFUSED, fails(libc::EPERM)), (ABSENT, fails(libc::ENOSYS))]
        {
            for &call in calls {
                let zeroes = [0; 6];
                // But for the flag by which nothing is opened.
                let ones = [u64::MAX ^ u64::from(bits(libc::O_PATH)); 6];
                assert_eq!(native(call, zeroes), fate, "{call}");
                assert_eq!(native(call, ones), fate, "{call}");
            }
        }
    }

    #[test]
    fn what_opens_no_contents_goes_on() {
        let upper = u64::MAX << 32;
        for (call, at) in OPENS {
            let fate = |flags: i32| {
                let fates = [0, upper].map(|upper| {
                    let mut args = [0; 6];
                    args[*at] = upper | u64::from(bits(flags));
                    native(*call, args)
                });
                assert_eq!(fates[0], fates[1]);
                fates[0]
            };
            let usual = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_LARGEFILE;
            for flags in [libc::O_DIRECTORY, libc::O_PATH, libc::O_PATH | libc::O_DIRECTORY] {
                assert_eq!(fate(flags), ALLOW);
                assert_eq!(fate(flags | usual), ALLOW);
            }
            for flags in
                [libc::O_CREAT, libc::O_TRUNC, libc::O_WRONLY, libc::O_RDWR, libc::O_TMPFILE]
            {
                assert_eq!(fate(flags), RING);
                assert_eq!(fate(flags | libc::O_DIRECTORY), RING);
            }
            assert_eq!(fate(libc::O_RDONLY | usual), RING);
        }
    }

    #[test]
    fn all_other_calls_go_on() {
        let listed = |call| [NOTIFIED, REFUSED, ABSENT].iter().any(|list| list.contains(&call));
        let looked_into =
            [libc::SYS_socket, libc::SYS_socketpair, libc::SYS_ioctl, libc::SYS_prlimit64];
        let others = (0..=NEWEST).filter(|call| !listed(*call) && !looked_into.contains(call));
        for call in others {
            assert_eq!(native(call, [u64::MAX; 6]), ALLOW, "{call}");
        }
    }

    #[test]
    fn a_call_that_nobody_has_looked_at_is_not_there() {
        for call in NEWEST + 1..1024 {
            assert_eq!(native(call, [0; 6]), fails(libc::ENOSYS), "{call}");
        }
    }

    #[test]
    fn a_descriptor_is_asked_for_no_more_than_it_was_opened_for() {
        for &request in REFUSED_REQUESTS {
            assert_eq!(
                native(libc::SYS_ioctl, [3, request.into(), 0, 0, 0, 0]),
                fails(libc::EPERM)
            );
        }
        for &command in REFUSED_COMMANDS {
            assert_eq!(
                native(libc::SYS_fcntl, [3, command.into(), 0, 0, 0, 0]),
                fails(libc::EPERM)
            );
        }
        let own = libc::F_SETFL.cast_unsigned().into();
        assert_eq!(native(libc::SYS_fcntl, [3, own, 0, 0, 0, 0]), ALLOW);
        let size = libc::TIOCGWINSZ;
        assert_eq!(native(libc::SYS_ioctl, [3, size, 0, 0, 0, 0]), ALLOW);
    }

    #[test]
    fn limits_are_a_processs_own_to_set() {
        assert_eq!(native(libc::SYS_prlimit64, [0, 7, 1, 0, 0, 0]), ALLOW);
        assert_eq!(native(libc::SYS_prlimit64, [81, 7, 1, 0, 0, 0]), fails(libc::EPERM));
    }

    #[test]
    fn no_call_is_in_two_lists() {
        let mut all = [NOTIFIED, REFUSED, ABSENT].concat();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn foreign_calls_end_the_process() {
        const I386: u32 = 0x4000_0003;
        const ARM: u32 = 0x4000_0028;
        let arch = NATIVE.unwrap();
        for call in 0..600 {
            for foreign in [I386, ARM, 0] {
                assert_eq!(run(&program(arch), foreign, call, [0; 6]), KILL, "{call}");
            }
            if cfg!(target_arch = "x86_64") {
                assert_eq!(run(&program(arch), arch, call | X32, [0; 6]), KILL, "{call}");
            }
        }
    }

    #[test]
    fn a_socket_that_needs_no_connect_cannot_be_made() {
        let refused = fails(libc::EACCES);
        let flags = bits(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        let check = |family, kind: i32, fate| {
            for call in [libc::SYS_socket, libc::SYS_socketpair] {
                for kind in [bits(kind), bits(kind) | flags] {
                    // The upper halves are no part of an `int`.
                    for upper in [0, u64::MAX << 32] {
                        let args = [upper | u64::from(bits(family)), upper | u64::from(kind)];
                        let args = [args[0], args[1], 0, 0, 0, 0];
                        assert_eq!(native(call, args), fate, "{call} {args:x?}");
                    }
                }
            }
        };
        check(libc::AF_UNIX, libc::SOCK_DGRAM, refused);
        check(libc::AF_UNIX, libc::SOCK_RAW, refused);
        check(libc::AF_UNIX, libc::SOCK_STREAM, ALLOW);
        check(libc::AF_UNIX, libc::SOCK_SEQPACKET, ALLOW);
        check(libc::AF_INET, libc::SOCK_DGRAM, ALLOW);
        check(libc::AF_NETLINK, libc::SOCK_RAW, ALLOW);
    }
}
