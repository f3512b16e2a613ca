//! Resource limits and usage of a family of processes.

const MB: u64 = 1024 * 1024;

/// The limits of a family; None: unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// In units of 1024 × 1024 bytes.
    pub memory_mb: Option<u64>,
    /// Maximum processes at a time; threads don't count.
    pub processes: Option<u64>,
}

/// The usage of all processes of a family, without its wardens.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Resident memory. Shared pages count for each process, unless that would exceed a limit: then
    /// they are divided among the processes.
    pub memory_bytes: u64,
    /// Including processes that have ended.
    pub cpu_ms: u64,
    /// Processes that run now.
    pub processes: u64,
}

/// The highest measured usage of a family.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Peak {
    /// The most resident memory, in bytes, that [`Usage::memory_bytes`] had.
    pub memory_bytes: u64,
    /// The most processes that ran at a time.
    pub processes: u64,
}

impl Limits {
    /// Whether anything is limited.
    pub fn is_any(self) -> bool {
        self.memory_mb.is_some() || self.processes.is_some()
    }

    /// The limit of memory in bytes; None: unlimited.
    pub fn memory_bytes(self) -> Option<u64> {
        self.memory_mb.map(|mb| mb.saturating_mul(MB))
    }

    /// The message about the limit that `usage` exceeds, if any.
    pub(super) fn exceeded_by(self, usage: Usage) -> Option<String> {
        if let (Some(most), Some(mb)) = (self.memory_bytes(), self.memory_mb)
            && usage.memory_bytes > most
        {
            let used = usage.memory_bytes.div_ceil(MB);
            return Some(format!(
                "used {used} MB of memory, more than memory_mb = {mb} allows: killed"
            ));
        }
        let most = self.processes.filter(|most| usage.processes > *most)?;
        let ran = usage.processes;
        Some(format!("ran {ran} processes, more than processes = {most} allows: killed"))
    }

    /// The message for a process that the kernel killed at the memory limit.
    pub(super) fn out_of_memory(self) -> String {
        let allowed = self.memory_mb.unwrap_or_default();
        format!("used more memory than memory_mb = {allowed} allows: killed")
    }

    /// Whether more than half of a limit is used.
    pub(super) fn is_near(self, usage: Usage) -> bool {
        let past_half = |used: u64, most: Option<u64>| most.is_some_and(|most| used > most / 2);
        past_half(usage.memory_bytes, self.memory_bytes())
            || past_half(usage.processes, self.processes)
    }
}

impl Peak {
    pub(super) fn update(&mut self, usage: Usage) {
        self.memory_bytes = self.memory_bytes.max(usage.memory_bytes);
        self.processes = self.processes.max(usage.processes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exceeded_limit_is_named_by_its_configuration_key() {
        let limits = Limits { memory_mb: Some(100), processes: Some(3) };
        let message = |mb: u64, extra: u64, processes: u64| {
            let usage = Usage { memory_bytes: mb * MB + extra, cpu_ms: 0, processes };
            limits.exceeded_by(usage).unwrap_or_default()
        };
        assert_eq!(message(100, 0, 3), "");
        assert_eq!(
            message(100, 1, 3),
            "used 101 MB of memory, more than memory_mb = 100 allows: killed"
        );
        assert_eq!(message(0, 0, 4), "ran 4 processes, more than processes = 3 allows: killed");
        let none = Limits::default();
        let much = Usage { memory_bytes: u64::MAX, cpu_ms: 0, processes: u64::MAX };
        assert_eq!((none.exceeded_by(much), none.is_near(much)), (None, false));
    }
}
