//! Cgroups (v2) in which the kernel enforces the limits of families. Families are polled in any
//! case (`limit_monitor`); without a cgroup, polling alone enforces the limits.
//!
//! Only families with limits get a cgroup: moving a process waits for an RCU grace period, up to
//! 15 ms, which would slow down every start.
//!
//! A cgroup whose `cgroup.subtree_control` names a controller must not contain processes, unless it
//! is the root (`admin-guide/cgroup-v2`). So the supervisor first moves itself into a child of its
//! own cgroup, if it is the only process there.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::unistd::{AccessFlags, access, geteuid, getpid};

use super::limits::Limits;

/// The controllers needed for limits.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// The kernel counts threads, and limits count processes: this factor only stops a fork bomb until
/// it is polled.
const THREADS_A_PROCESS: u64 = 32;

/// How long systemd may take to move this process.
const SCOPE_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How limits are enforced on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitEnforcement {
    /// By the kernel, in a cgroup for each agent.
    Cgroup,
    /// By the kernel, if systemd grants this program a scope.
    Scope,
    /// By polling the processes.
    Polling,
}

/// The parent cgroup of one run of this program. Dropping it removes it.
#[derive(Debug)]
pub struct Groups {
    run: PathBuf,
    made: AtomicU64,
}

/// The cgroup of one family. Dropping it kills its processes.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

impl LimitEnforcement {
    /// How limits would be enforced if a team started now. Changes nothing.
    pub fn probe() -> Self {
        let fits = |own: &PathBuf| {
            access(own, AccessFlags::W_OK).is_ok()
                && names_all(own, "cgroup.controllers")
                && is_alone(own)
        };
        match own_group() {
            Some(own) if fits(&own) => Self::Cgroup,
            Some(_) if manager().is_some() => Self::Scope,
            _ => Self::Polling,
        }
    }
}

impl Groups {
    /// Creates the cgroup `name` below this process's own, or in a scope requested from systemd.
    /// Blocks for some seconds at most.
    pub fn find(name: &str) -> io::Result<Self> {
        let own = own_group().ok_or_else(|| unsupported("there is no cgroup v2"))?;
        let pid = std::process::id();
        Self::below(&own, name, pid).or_else(|error| {
            let Some(manager) = manager() else { return Err(error) };
            Self::below(&scope(manager, name, pid, &own)?, name, pid)
        })
    }

    fn below(own: &Path, name: &str, pid: u32) -> io::Result<Self> {
        if !names_all(own, "cgroup.controllers") {
            return Err(unsupported("no memory and pids controllers were delegated"));
        }
        if !names_all(own, "cgroup.subtree_control") {
            if !is_alone(own) {
                return Err(unsupported("other processes are in the same cgroup"));
            }
            let core = own.join(format!("{name}-core"));
            make(&core)?;
            write(&core, "cgroup.procs", &pid.to_string())?;
            if let Err(error) = enable(own) {
                let _ = write(own, "cgroup.procs", &pid.to_string());
                let _ = fs::remove_dir(&core);
                return Err(error);
            }
        }
        let groups = Self { run: own.join(name), made: AtomicU64::new(0) };
        make(&groups.run)?;
        enable(&groups.run)?;
        Ok(groups)
    }

    /// The folder of the run's cgroup: writing to its `cgroup.kill` kills all processes.
    pub fn folder(&self) -> &Path {
        &self.run
    }

    pub(super) fn group(&self, limits: Limits) -> io::Result<Group> {
        self.sweep();
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let group = Group { folder: self.run.join(format!("family-{number}")) };
        make(&group.folder)?;
        if let Some(bytes) = limits.memory_bytes() {
            write(&group.folder, "memory.max", &bytes.to_string())?;
        }
        if let Some(processes) = limits.processes {
            let tasks = processes.saturating_mul(THREADS_A_PROCESS);
            write(&group.folder, "pids.max", &tasks.to_string())?;
        }
        Ok(group)
    }

    /// Removes empty cgroups.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.run).into_iter().flatten().flatten() {
            // This fails for files, and for cgroups in use.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.sweep();
        let _ = fs::remove_dir(&self.run);
    }
}

impl Group {
    /// Moves a process here; its future children start here, too.
    pub(super) fn enter(&self, pid: i32) -> io::Result<()> {
        write(&self.folder, "cgroup.procs", &pid.to_string())
    }

    /// Whether the kernel killed a process here at the memory limit.
    pub(super) fn was_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|kills| kills.trim().parse::<u64>().ok()).is_some_and(|kills| kills > 0)
    }

    /// Kills all processes here; no fork can escape it.
    pub(super) fn end(&self) {
        end_group(&self.folder);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
        // This fails while processes are dying; a later sweep removes it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Kills all processes of a cgroup and of those below it, if it exists.
pub(super) fn end_group(folder: &Path) {
    let file = folder.join("cgroup.kill");
    if file.exists() {
        let _ = fs::write(file, "1");
    }
}

/// The folder of this process's cgroup.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    folder_of(&groups, &mounts)
}

/// The cgroup's line is `0::PATH`. A mount's line has its root in the hierarchy and its mount point
/// as fourth and fifth field, and the file system's type after a lone dash.
fn folder_of(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, mount_point) = (fields.next()?, fields.next()?);
        if !kind.starts_with("cgroup2 ") || path.starts_with("/..") {
            return None;
        }
        Some(Path::new(mount_point).join(Path::new(path).strip_prefix(root).ok()?))
    })
}

fn names_all(folder: &Path, file: &str) -> bool {
    let named = fs::read_to_string(folder.join(file)).unwrap_or_default();
    CONTROLLERS.iter().all(|wanted| named.split_whitespace().any(|name| name == *wanted))
}

/// Whether this process is the only one in a cgroup, or the cgroup is the root, which may contain
/// processes.
fn is_alone(folder: &Path) -> bool {
    let is_root = !folder.join("cgroup.type").exists();
    let pids = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    is_root || pids.lines().all(|pid| pid == getpid().to_string())
}

fn enable(folder: &Path) -> io::Result<()> {
    write(folder, "cgroup.subtree_control", "+memory +pids")
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn write(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    let file = folder.join(file);
    fs::write(&file, text)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}

/// The option of `busctl` for the systemd manager that can grant this process a scope.
fn manager() -> Option<&'static str> {
    if geteuid().is_root() {
        return Path::new("/run/systemd/system").exists().then_some("--system");
    }
    let runtime = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    let is_own = runtime.metadata().is_ok_and(|folder| folder.uid() == geteuid().as_raw());
    (is_own && runtime.join("systemd/private").exists()).then_some("--user")
}

/// Moves this process to a delegated systemd scope; returns its folder.
fn scope(manager: &str, name: &str, pid: u32, before: &Path) -> io::Result<PathBuf> {
    let (unit, pid) = (format!("{name}.scope"), pid.to_string());
    let mut call = Command::new("busctl");
    call.args([manager, "--timeout=2", "--quiet", "call", "org.freedesktop.systemd1"]);
    call.args(["/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]);
    call.args(["StartTransientUnit", "ssa(sv)a(sa(sv))", &unit, "fail"]);
    call.args(["2", "PIDs", "au", "1", &pid, "Delegate", "b", "true", "0"]);
    call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !call.status()?.success() {
        return Err(unsupported("systemd granted no scope"));
    }
    let begun = std::time::Instant::now();
    while begun.elapsed() < SCOPE_TIMEOUT {
        // The call returns before the process is moved.
        if let Some(own) = own_group().filter(|own| own != before) {
            return Ok(own);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Err(unsupported("systemd did not create the scope in time"))
}

fn unsupported(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

#[cfg(test)]
mod tests;
