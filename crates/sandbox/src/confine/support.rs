//! The features for confinement that the running kernel supports. Queries without side effects; the
//! canary shows whether confinement works.

#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::libc;

use super::filter;

// Each feature as messages name it.
pub(super) const LANDLOCK: &str = "Landlock: Linux 5.13, built in and switched on (`lsm=`)";
pub(super) const TRUNCATION: &str = "Landlock ABI 3 (Linux 6.2): truncation";
pub(super) const PROCESSOR: &str = "a processor whose system calls are known: x86_64 or aarch64";
pub(super) const NOTIFICATION: &str = "seccomp user notification: Linux 5.5, not itself forbidden";
pub(super) const HAND_IN: &str = "descriptors handed in with the answer: Linux 5.14";
pub(super) const DEVICES: &str = "Landlock ABI 5 (Linux 6.10): devices controlled by ioctl";
pub(super) const SCOPES: &str =
    "Landlock ABI 6 (Linux 6.12): signals and abstract sockets to processes outside";
pub(super) const KILLABLE: &str = "calls that no signal interrupts while they wait: Linux 5.19";

/// The features of the running kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own")]
pub struct Support {
    /// The version of Landlock; 0 if it is not built in, or is switched off.
    pub landlock: u8,
    /// Whether the system calls of this processor are known.
    pub processor: bool,
    /// Whether a call can be stopped for another process.
    pub notification: bool,
    /// Whether a call can be answered with a descriptor in one step.
    pub hand_in: bool,
    /// Whether only a fatal signal interrupts a call that is being answered.
    pub killable: bool,
}

impl Support {
    /// Asks the kernel.
    pub fn of_this_kernel() -> Self {
        let version = kernel_version().unwrap_or_default();
        Self {
            landlock: landlock_version(),
            processor: filter::NATIVE.is_some(),
            notification: stops_calls(),
            // This cannot be queried without a stopped call.
            hand_in: version >= (5, 14),
            killable: knows_flag(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV),
        }
    }

    /// The missing features without which nothing is enforced, for messages. Empty if the kernel
    /// tier is available.
    pub fn lacking(&self) -> Vec<&'static str> {
        let lacks = [
            (self.landlock == 0, LANDLOCK),
            // Otherwise a read-only file could be truncated.
            ((1..3).contains(&self.landlock), TRUNCATION),
            (!self.processor, PROCESSOR),
            (!self.notification, NOTIFICATION),
            (!self.hand_in, HAND_IN),
        ];
        words(&lacks)
    }

    /// All missing features: [`Support::lacking`], and those that leave a gap.
    pub fn missing(&self) -> Vec<&'static str> {
        let mut missing = self.lacking();
        if missing.is_empty() {
            missing.extend(words(&[
                (self.landlock < 5, DEVICES),
                (self.landlock < 6, SCOPES),
                (!self.killable, KILLABLE),
            ]));
        }
        missing
    }
}

fn words(all: &[(bool, &'static str)]) -> Vec<&'static str> {
    all.iter().filter(|(applies, _)| *applies).map(|(_, words)| *words).collect()
}

/// The version of Landlock; 0 without any.
pub(super) fn landlock_version() -> u8 {
    const VERSION: libc::c_ulong = 1;
    let (nothing, size): (*const libc::c_void, usize) = (std::ptr::null(), 0);
    // SAFETY: asked for its version the call looks at no memory.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, size, VERSION) };
    Errno::result(version).map_or(0, |version| u8::try_from(version).unwrap_or(u8::MAX))
}

fn stops_calls() -> bool {
    let action = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: `action` is valid for reading for the length of the call, which changes nothing.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    };
    Errno::result(answer).is_ok()
}

/// Whether filters support this flag: the kernel checks flags before the program, which is missing
/// here.
fn knows_flag(flag: libc::c_ulong) -> bool {
    let flags = flag | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let nothing = std::ptr::null::<libc::sock_fprog>();
    // SAFETY: without a program nothing can be loaded, and the call fails.
    let answer =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, nothing) };
    Errno::result(answer) == Err(Errno::EFAULT)
}

/// Whether receiving a call fails once no process is left under the filter.
pub(super) fn receiving_ends() -> bool {
    kernel_version().is_some_and(|version| version >= (6, 11))
}

fn kernel_version() -> Option<(u32, u32)> {
    let name = nix::sys::utsname::uname().ok()?;
    let mut numbers = name.release().to_str()?.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const ALL: Support =
        Support { landlock: 7, processor: true, notification: true, hand_in: true, killable: true };

    #[test]
    fn what_is_missing_is_named() {
        let check =
            |support: Support, words: Expect| words.assert_eq(&support.missing().join("\n"));
        check(ALL, expect![[""]]);
        check(
            Support { landlock: 0, notification: false, ..ALL },
            expect![[r#"
            Landlock: Linux 5.13, built in and switched on (`lsm=`)
            seccomp user notification: Linux 5.5, not itself forbidden"#]],
        );
        check(
            Support { landlock: 2, killable: false, ..ALL },
            expect!["Landlock ABI 3 (Linux 6.2): truncation"],
        );
        check(
            Support { landlock: 4, killable: false, ..ALL },
            expect![[r#"
            Landlock ABI 5 (Linux 6.10): devices controlled by ioctl
            Landlock ABI 6 (Linux 6.12): signals and abstract sockets to processes outside
            calls that no signal interrupts while they wait: Linux 5.19"#]],
        );
        check(
            Support { hand_in: false, processor: false, ..ALL },
            expect![[r#"
            a processor whose system calls are known: x86_64 or aarch64
            descriptors handed in with the answer: Linux 5.14"#]],
        );
    }

    #[test]
    fn gaps_alone_leave_a_tier() {
        assert!(Support { landlock: 3, killable: false, ..ALL }.lacking().is_empty());
    }
}
