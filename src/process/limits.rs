//! What a family of processes may use, and what it uses.

const MB: u64 = 1024 * 1024;

/// What a family may use; None: as much as there is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// In units of 1024 × 1024 bytes.
    pub memory_mb: Option<u64>,
    pub processes: Option<u64>,
}

/// What a family uses, of all its processes together, without its wardens.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Resident. What several of them share is counted for each, but divided among them as soon as
    /// that decides about a limit.
    pub memory_bytes: u64,
    /// Of those that ended, too.
    pub cpu_ms: u64,
    pub processes: u64,
}

/// The most that a family was seen to use at one time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Peak {
    pub memory_bytes: u64,
    pub processes: u64,
}

impl Limits {
    pub fn is_any(self) -> bool {
        self.memory_mb.is_some() || self.processes.is_some()
    }

    pub fn memory_bytes(self) -> Option<u64> {
        self.memory_mb.map(|mb| mb.saturating_mul(MB))
    }

    /// Says which limit this is too much for, if any.
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

    /// Says that the kernel let it have no more memory.
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
    pub(super) fn take_in(&mut self, usage: Usage) {
        self.memory_bytes = self.memory_bytes.max(usage.memory_bytes);
        self.processes = self.processes.max(usage.processes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_told_in_the_words_of_the_configuration() {
        let limits = Limits { memory_mb: Some(100), processes: Some(3) };
        let told = |mb: u64, extra: u64, processes: u64| {
            let usage = Usage { memory_bytes: mb * MB + extra, cpu_ms: 0, processes };
            limits.exceeded_by(usage).unwrap_or_default()
        };
        assert_eq!(told(100, 0, 3), "");
        assert_eq!(
            told(100, 1, 3),
            "used 101 MB of memory, more than memory_mb = 100 allows: killed"
        );
        assert_eq!(told(0, 0, 4), "ran 4 processes, more than processes = 3 allows: killed");
        let none = Limits::default();
        let much = Usage { memory_bytes: u64::MAX, cpu_ms: 0, processes: u64::MAX };
        assert_eq!((none.exceeded_by(much), none.is_near(much)), (None, false));
    }
}
