//! Groups of the kernel's (cgroup v2), in which it holds the limits of families by itself. Where
//! none can be had, families are looked at ([`super::census`]), which also goes on beside it.
//!
//! Groups are only made for families with limits: moving a process to another group waits for an
//! RCU grace period, 15 ms now and then, which would make every start slow.
//!
//! By the kernel's documentation (`admin-guide/cgroup-v2`): a group whose `cgroup.subtree_control`
//! names a controller may hold no processes itself, unless it is the root. So the supervisor first
//! moves itself into a group below its own, which it only does where it is alone.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::unistd::{AccessFlags, access, geteuid, getpid};

use super::limits::Limits;

/// What is needed to hold limits.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// The kernel counts threads where limits count processes, so that it only keeps a fork bomb from
/// growing until it has been seen.
const THREADS_A_PROCESS: u64 = 32;

/// How long systemd may take to move this process.
const SCOPE_PATIENCE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How limits are held on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holding {
    /// By the kernel, in a group of its own for each agent.
    Cgroup,
    /// By the kernel, if systemd gives this program a scope of its own.
    Scope,
    /// By looking at the processes again and again.
    Polling,
}

/// Where the groups of one run of this program are made. Dropping it removes it.
#[derive(Debug)]
pub struct Groups {
    run: PathBuf,
    made: AtomicU64,
}

/// The group of one family. Dropping it ends what is in it.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

impl Holding {
    /// How limits would be held if a team came up now. Changes nothing.
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
    /// Makes a place for groups below this process's own, or in a scope of its own that systemd is
    /// asked for. `name` is its name there. Blocks for some seconds at most.
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

    /// The folder that stands for all groups of this run: writing to its `cgroup.kill` ends all.
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

    /// Removes groups in which nothing is left.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.run).into_iter().flatten().flatten() {
            // Its files are no folders, and a group that is in use can't be removed.
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
    /// Moves a process here, with all that it will start.
    pub(super) fn enter(&self, pid: i32) -> io::Result<()> {
        write(&self.folder, "cgroup.procs", &pid.to_string())
    }

    /// Whether the kernel ended a process here for want of memory.
    pub(super) fn was_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|kills| kills.trim().parse::<u64>().ok()).is_some_and(|kills| kills > 0)
    }

    /// Ends all that is here: no fork outruns it.
    pub(super) fn end(&self) {
        end_group(&self.folder);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
        // What is still dying keeps it until the next sweep.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Ends all that is in a group and in those below it, if it is there.
pub(super) fn end_group(folder: &Path) {
    let file = folder.join("cgroup.kill");
    if file.exists() {
        let _ = fs::write(file, "1");
    }
}

/// The folder of this process's group.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    folder_of(&groups, &mounts)
}

/// A group's line is `0::PATH`; that of a mount has its root in the hierarchy and its place as
/// fourth and fifth field, and behind a lone dash the file system's type.
fn folder_of(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        if !kind.starts_with("cgroup2 ") || path.starts_with("/..") {
            return None;
        }
        Some(Path::new(place).join(Path::new(path).strip_prefix(root).ok()?))
    })
}

fn names_all(folder: &Path, file: &str) -> bool {
    let named = fs::read_to_string(folder.join(file)).unwrap_or_default();
    CONTROLLERS.iter().all(|wanted| named.split_whitespace().any(|name| name == *wanted))
}

/// Whether this process is the only one in a group. (The root may hold processes beside groups.)
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

/// The option by which `busctl` reaches the systemd that may give this process a scope.
fn manager() -> Option<&'static str> {
    if geteuid().is_root() {
        return Path::new("/run/systemd/system").exists().then_some("--system");
    }
    let runtime = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    let is_own = runtime.metadata().is_ok_and(|folder| folder.uid() == geteuid().as_raw());
    (is_own && runtime.join("systemd/private").exists()).then_some("--user")
}

/// Has this process moved to a scope of its own in which it may make groups; returns its folder.
fn scope(manager: &str, name: &str, pid: u32, before: &Path) -> io::Result<PathBuf> {
    let (unit, pid) = (format!("{name}.scope"), pid.to_string());
    let mut call = Command::new("busctl");
    call.args([manager, "--timeout=2", "--quiet", "call", "org.freedesktop.systemd1"]);
    call.args(["/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]);
    call.args(["StartTransientUnit", "ssa(sv)a(sa(sv))", &unit, "fail"]);
    call.args(["2", "PIDs", "au", "1", &pid, "Delegate", "b", "true", "0"]);
    call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !call.status()?.success() {
        return Err(unsupported("systemd gave no scope"));
    }
    let begun = std::time::Instant::now();
    while begun.elapsed() < SCOPE_PATIENCE {
        // The call ends before the move is done.
        if let Some(own) = own_group().filter(|own| own != before) {
            return Ok(own);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Err(unsupported("systemd did not make the scope in time"))
}

fn unsupported(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

#[cfg(test)]
mod tests;
