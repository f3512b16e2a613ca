//! The user, groups and rights with which a call is made.

/// The values that the kernel checks before it gives a caller access to a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    pub(super) process: u32,
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) groups: Vec<u32>,
    pub(super) umask: u32,
}

impl Identity {
    /// Reads `/proc/PID/status`.
    pub(super) fn parse(status: &str) -> Option<Self> {
        // They come near the beginning; the kernel escapes newlines in the name before them.
        let field =
            |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(":\t"));
        // The real, effective, saved and filesystem ids.
        let of_files = |key: &str| field(key)?.split_whitespace().nth(3)?.parse().ok();
        Some(Self {
            process: field("Tgid")?.parse().ok()?,
            user: of_files("Uid")?,
            group: of_files("Gid")?,
            groups: field("Groups")?.split_whitespace().map_while(|id| id.parse().ok()).collect(),
            umask: u32::from_str_radix(field("Umask")?, 8).ok()?,
        })
    }
}
