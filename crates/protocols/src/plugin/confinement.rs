//! Owns the confinement of a plugin's child: it may read its library and those of the system, and
//! compute. It holds before the library is loaded.

use std::path::Path;

/// Confines this single-threaded process for good. The error names what the system lacks; then only
/// an approved library may be loaded.
#[cfg(target_os = "linux")]
pub(super) fn enter(library: &Path) -> Result<(), String> {
    limit().map_err(|error| format!("its limits can't be set: {error}"))?;
    wall(library).map_err(|error| format!("Landlock of Linux 6.2 is needed: {error}"))?;
    filter::enter().map_err(|error| format!("no filter of system calls: {error}"))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn enter(_: &Path) -> Result<(), String> {
    Err("only Linux supports it".to_owned())
}

/// Bytes of data memory.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 1024 * 1024 * 1024;

/// Open descriptors.
#[cfg(target_os = "linux")]
const DESCRIPTORS: u64 = 256;

#[cfg(target_os = "linux")]
fn limit() -> nix::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    for (resource, most) in [
        (Resource::RLIMIT_DATA, MEMORY),
        (Resource::RLIMIT_NOFILE, DESCRIPTORS),
        (Resource::RLIMIT_FSIZE, 0),
        (Resource::RLIMIT_CORE, 0),
    ] {
        let most = most.min(getrlimit(resource)?.1);
        setrlimit(resource, most, most)?;
    }
    Ok(())
}

/// Makes nothing readable but libraries. Linux 6.2 is required, since older kernels don't restrict
/// `truncate`.
#[cfg(target_os = "linux")]
fn wall(library: &Path) -> Result<(), landlock::RulesetError> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
        RulesetAttr, RulesetCreatedAttr, Scope,
    };
    const SYSTEM: [&str; 11] = [
        "/lib",
        "/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/etc/ld.so.cache",
        "/nix/store",
        "/gnu/store",
        "/dev/null",
        "/dev/urandom",
        "/proc/self",
    ];
    let abi = ABI::V6;
    let read = AccessFs::from_read(abi);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?;
    for place in SYSTEM.iter().map(Path::new).chain([library]) {
        // A missing path needs no rule.
        let Ok(handle) = PathFd::new(place) else { continue };
        let rights = if place.is_dir() { read } else { read & AccessFs::from_file(abi) };
        rules = rules.add_rule(PathBeneath::new(handle, rights))?;
    }
    rules.restrict_self().map(drop)
}

#[cfg(target_os = "linux")]
mod filter {
    //! Owns the filter of system calls. It allows the calls of a library that computes, and refuses
    //! those that Landlock does not cover (modes, owners, signals, sockets, other processes).

    use std::collections::BTreeMap;

    use nix::libc;
    use seccompiler::{
        BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Length,
        SeccompCmpOp as Compare, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
        apply_filter,
    };

    /// Calls that are allowed with any arguments.
    const ALLOWED: &[libc::c_long] = &[
        // Open descriptors, and files that the wall opens for reading.
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_pread64,
        libc::SYS_preadv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_lseek,
        libc::SYS_openat,
        libc::SYS_fstat,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_fstatfs,
        libc::SYS_faccessat,
        libc::SYS_faccessat2,
        libc::SYS_readlinkat,
        libc::SYS_getdents64,
        libc::SYS_getcwd,
        libc::SYS_dup,
        libc::SYS_dup3,
        libc::SYS_pipe2,
        libc::SYS_eventfd2,
        libc::SYS_epoll_create1,
        libc::SYS_epoll_ctl,
        libc::SYS_epoll_pwait,
        libc::SYS_ppoll,
        libc::SYS_pselect6,
        // Memory.
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_mincore,
        libc::SYS_brk,
        // Threads and waiting.
        libc::SYS_futex,
        libc::SYS_set_robust_list,
        libc::SYS_get_robust_list,
        libc::SYS_set_tid_address,
        libc::SYS_rseq,
        libc::SYS_membarrier,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_clone3,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_gettimeofday,
        libc::SYS_restart_syscall,
        // Its own signals.
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigsuspend,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_sigaltstack,
        // Identity, environment and exit.
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getppid,
        libc::SYS_getuid,
        libc::SYS_geteuid,
        libc::SYS_getgid,
        libc::SYS_getegid,
        libc::SYS_getrandom,
        libc::SYS_getrusage,
        libc::SYS_getcpu,
        libc::SYS_uname,
        libc::SYS_sysinfo,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// Older calls for the same.
    #[cfg(target_arch = "x86_64")]
    const OLDER: &[libc::c_long] = &[
        libc::SYS_open,
        libc::SYS_stat,
        libc::SYS_lstat,
        libc::SYS_access,
        libc::SYS_readlink,
        libc::SYS_dup2,
        libc::SYS_pipe,
        libc::SYS_poll,
        libc::SYS_select,
        libc::SYS_epoll_wait,
        libc::SYS_pause,
        libc::SYS_time,
        libc::SYS_arch_prctl,
    ];
    #[cfg(not(target_arch = "x86_64"))]
    const OLDER: &[libc::c_long] = &[];

    /// A thread has this flag, a process has not; no flag of a namespace may come with it.
    const THREAD: i32 = libc::CLONE_THREAD;
    const NAMESPACES: i32 = libc::CLONE_NEWNS
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;

    pub(super) fn enter() -> Result<(), Error> {
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        // The flags of `clone3` lie in memory, out of the filter's reach. `ENOSYS` makes libraries
        // use `clone`.
        let threads = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        let absent = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
        let threads = SeccompFilter::new(threads, SeccompAction::Allow, absent, arch)?;
        let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
        let calls = SeccompFilter::new(calls()?, refused, SeccompAction::Allow, arch)?;
        for filter in [threads, calls] {
            apply_filter(&BpfProgram::try_from(filter)?)?;
        }
        Ok(())
    }

    fn calls() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
        let is = |argument, value: u64| {
            SeccompCondition::new(argument, Length::Dword, Compare::Eq, value)
        };
        let one = |condition| SeccompRule::new(vec![condition]);
        let word = |value: i32| u64::from(value.cast_unsigned());
        let mut calls: BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.iter().chain(OLDER).map(|call| (*call, Vec::new())).collect();
        let thread = Compare::MaskedEq(word(THREAD | NAMESPACES));
        let thread = SeccompCondition::new(0, Length::Dword, thread, word(THREAD))?;
        calls.insert(libc::SYS_clone, vec![one(thread)?]);
        // Signals only to itself.
        let own = u64::from(std::process::id());
        calls.insert(libc::SYS_tgkill, vec![one(is(0, own)?)?]);
        calls.insert(libc::SYS_kill, vec![one(is(0, own)?)?]);
        // Not `F_SETOWN`, which names another process as the receiver of a signal.
        let commands = [
            libc::F_GETFD,
            libc::F_SETFD,
            libc::F_GETFL,
            libc::F_SETFL,
            libc::F_DUPFD,
            libc::F_DUPFD_CLOEXEC,
        ];
        let commands = commands.map(|command| one(is(1, word(command))?));
        calls.insert(libc::SYS_fcntl, commands.into_iter().collect::<Result<_, _>>()?);
        // Its own limits, and the names of its threads and memory.
        calls.insert(libc::SYS_prlimit64, vec![one(is(0, 0)?)?]);
        let names = [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA];
        let names = names.map(|option| one(is(0, word(option))?));
        calls.insert(libc::SYS_prctl, names.into_iter().collect::<Result<_, _>>()?);
        Ok(calls)
    }
}
