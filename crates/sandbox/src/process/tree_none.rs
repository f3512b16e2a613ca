//! The process table on systems without `/proc`: empty. Only the command's process group is killed,
//! and nothing is measured.

pub(super) struct ProcessEntry {
    pub(super) pid: i32,
    pub(super) session: i32,
    pub(super) started: u64,
}

#[derive(Default)]
pub(super) struct ProcessTable;

#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) memory_bytes: u64,
    pub(super) cpu_ms: u64,
    pub(super) processes: u64,
}

impl ProcessTable {
    pub(super) fn take() -> Self {
        Self
    }

    pub(super) fn take_below(_: impl IntoIterator<Item = i32>) -> Self {
        Self
    }

    pub(super) fn below(&self, _: i32, _: &mut Vec<(i32, u64)>) -> Sum {
        Sum::default()
    }

    pub(super) fn kill_below(&self, _: i32) {}

    pub(super) fn descendants(&self, _: i32) -> Vec<ProcessEntry> {
        Vec::new()
    }

    pub(super) fn resident_below(&self, _: i32) -> u64 {
        0
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = i32> {
        std::iter::empty()
    }

    pub(super) fn parent(&self, _: i32) -> Option<i32> {
        None
    }
}

pub(super) fn kill_descendants(_: impl Fn(&ProcessEntry) -> bool) -> Vec<i32> {
    Vec::new()
}

pub(super) fn process(_: i32) -> Option<ProcessEntry> {
    None
}

pub(super) fn parent_of(_: i32) -> Option<i32> {
    None
}
