//! Interprets the filter's program as the kernel does.

#![allow(clippy::unwrap_used)]

use super::*;

const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const RING: u32 = libc::SECCOMP_RET_USER_NOTIF;

/// Runs the program as the kernel would, and returns the kernel's answer.
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
        for flags in [libc::O_CREAT, libc::O_TRUNC, libc::O_WRONLY, libc::O_RDWR, libc::O_TMPFILE] {
            assert_eq!(fate(flags), RING);
            assert_eq!(fate(flags | libc::O_DIRECTORY), RING);
        }
        assert_eq!(fate(libc::O_RDONLY | usual), RING);
    }
}

#[test]
fn all_other_calls_go_on() {
    let listed = |call| [NOTIFIED, REFUSED, ABSENT].iter().any(|list| list.contains(&call));
    let looked_into = [
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_ioctl,
        libc::SYS_prlimit64,
        libc::SYS_unshare,
        libc::SYS_clone,
    ];
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
        assert_eq!(native(libc::SYS_ioctl, [3, request.into(), 0, 0, 0, 0]), fails(libc::EPERM));
    }
    for &command in REFUSED_COMMANDS {
        assert_eq!(native(libc::SYS_fcntl, [3, command.into(), 0, 0, 0, 0]), fails(libc::EPERM));
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
    for family in [libc::AF_INET, libc::AF_INET6] {
        check(family, libc::SOCK_STREAM, ALLOW);
        check(family, libc::SOCK_DGRAM, ALLOW);
        check(family, libc::SOCK_RAW, fails(libc::EPERM));
        check(family, SOCK_PACKET, fails(libc::EPERM));
    }
    // As the C library asks for the machine's addresses.
    check(libc::AF_NETLINK, libc::SOCK_RAW, ALLOW);
    for family in [libc::AF_PACKET, libc::AF_ALG, libc::AF_VSOCK, libc::AF_XDP, 0, 99] {
        check(family, libc::SOCK_RAW, fails(libc::EAFNOSUPPORT));
        check(family, libc::SOCK_STREAM, fails(libc::EAFNOSUPPORT));
    }
}

#[test]
fn of_netlink_only_the_addresses_are_asked_for() {
    let socket = |protocol: u64| {
        let family = bits(libc::AF_NETLINK).into();
        native(libc::SYS_socket, [family, bits(libc::SOCK_RAW).into(), protocol, 0, 0, 0])
    };
    assert_eq!(socket(bits(libc::NETLINK_ROUTE).into()), ALLOW);
    for protocol in 1..32 {
        assert_eq!(socket(protocol), fails(libc::EPROTONOSUPPORT), "{protocol}");
    }
}

#[test]
fn no_namespace_is_made() {
    for call in NAMESPACING {
        for bit in (0..32).map(|bit| 1_u32 << bit) {
            let is_one = bit & bits(NAMESPACES) != 0;
            let fate = if is_one { fails(libc::EPERM) } else { ALLOW };
            for others in [0, u64::MAX << 32] {
                let flags = others | u64::from(bit);
                assert_eq!(native(call, [flags, 0, 0, 0, 0, 0]), fate, "{call} {bit:#x}");
            }
        }
        // As threads and children are made.
        let thread = bits(libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES).into();
        assert_eq!(native(call, [thread, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(native(call, [bits(libc::SIGCHLD).into(), 0, 0, 0, 0, 0]), ALLOW);
    }
}
