//! The processes above this one, as the kernel sees them: whether a command of an `eisen-core` started
//! it. No variable and no file tells that, since an agent can change those.

use std::sync::OnceLock;

use super::tree;

/// Levels of processes that are looked at: more than a system has.
const MOST_LEVELS: usize = 4096;

/// A process that ends while it is looked at has its children moved elsewhere: then it begins anew.
const TRIES: usize = 5;

/// How many commands of an `eisen-core` this process is within: each has a warden above it, which
/// adopts what the command leaves behind. None where the system doesn't tell.
///
/// A process in a PID namespace of its own with a `/proc` of its own sees nothing above it. None that
/// the kernel confines gets there.
///
/// The first answer stays: a process is not moved into a command.
pub fn commands_above() -> Option<usize> {
    static ABOVE: OnceLock<Option<usize>> = OnceLock::new();
    *ABOVE.get_or_init(|| {
        for _ in 0..TRIES {
            if let Some(wardens) = look() {
                return Some(wardens);
            }
        }
        // What is hidden belongs to another user; a warden is of ours.
        climb(super::mark::is_warden, tree::parent_of, own()?).0.into()
    })
}

/// The same, if nothing changed meanwhile.
fn look() -> Option<usize> {
    let (wardens, last) = climb(super::mark::is_warden, tree::parent_of, own()?);
    (last <= 1).then_some(wardens)
}

/// This process in the namespace of `/proc`, where it may have another pid than for itself.
fn own() -> Option<i32> {
    let link = std::fs::read_link("/proc/self").ok()?;
    link.to_str()?.parse().ok()
}

/// Counts the ancestors of a process for which `is_warden` holds; returns the last that is seen, too.
fn climb(
    is_warden: impl Fn(i32) -> bool,
    parent: impl Fn(i32) -> Option<i32>,
    own: i32,
) -> (usize, i32) {
    let (mut wardens, mut last) = (0, own);
    for _ in 0..MOST_LEVELS {
        let Some(above) = parent(last) else { break };
        last = above;
        if above <= 1 {
            break;
        }
        wardens += usize::from(is_warden(above));
    }
    (wardens, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warden_above_counts_and_what_is_hidden_ends_the_climb() {
        let parent = |pid: i32| match pid {
            9 => Some(8),
            8 => Some(7),
            7 => Some(5),
            5 => Some(1),
            4 => Some(3),
            _ => None,
        };
        assert_eq!(climb(|pid| pid == 8, parent, 9), (1, 1));
        assert_eq!(climb(|pid| [8, 5].contains(&pid), parent, 9), (2, 1));
        // It is not a command of itself.
        assert_eq!(climb(|pid| pid == 9, parent, 9), (0, 1));
        assert_eq!(climb(|pid| pid == 1, parent, 9), (0, 1));
        assert_eq!(climb(|_| false, parent, 4), (0, 3));
        // A circle, which no system has, comes to an end.
        assert_eq!(climb(|_| true, Some, 9).0, MOST_LEVELS);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_sees_what_is_above_it() {
        assert_eq!(own(), Some(nix::unistd::getpid().as_raw()));
        assert_eq!(tree::parent_of(own().unwrap_or(0)), Some(nix::unistd::getppid().as_raw()));
        assert!(commands_above().is_some());
    }
}
