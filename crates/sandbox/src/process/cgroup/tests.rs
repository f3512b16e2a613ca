//! Tests on plain folders that look like cgroups. The tests do what the kernel would do when a
//! folder is created or a file is written.

#![allow(clippy::unwrap_used)]

use super::*;

/// A group with this process and those of `others` in it.
fn own(controllers: &str, others: &str) -> tempfile::TempDir {
    let own = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(own.path().join(name), text).unwrap();
    file("cgroup.type", "domain\n");
    file("cgroup.controllers", controllers);
    file("cgroup.subtree_control", "");
    file("cgroup.procs", &format!("{}\n{others}", std::process::id()));
    own
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap()
}

#[test]
fn a_delegated_group_is_divided_and_the_supervisor_moves_aside() {
    let own = own("cpu memory pids\n", "");
    let pid = std::process::id();
    let groups = Groups::below(own.path(), "eisen-1", pid).unwrap();
    assert_eq!(read(own.path(), "eisen-1-core/cgroup.procs"), pid.to_string());
    for folder in [own.path(), groups.folder()] {
        assert_eq!(read(folder, "cgroup.subtree_control"), "+memory +pids");
    }
    let limits = Limits { memory_mb: Some(64), processes: Some(10) };
    let group = groups.group(limits).unwrap();
    assert_eq!(read(&group.folder, "memory.max"), "67108864");
    assert_eq!(read(&group.folder, "pids.max"), "320");
    group.enter(4711).unwrap();
    assert_eq!(read(&group.folder, "cgroup.procs"), "4711");
    let other = groups.group(Limits { memory_mb: None, processes: Some(1) }).unwrap();
    assert_ne!(other.folder, group.folder);
    assert!(!other.folder.join("memory.max").exists());
}

#[test]
fn an_oom_kill_is_detected() {
    let own = own("memory pids\n", "");
    let groups = Groups::below(own.path(), "eisen-1", 1).unwrap();
    let group = groups.group(Limits { memory_mb: Some(64), processes: None }).unwrap();
    let events = |kills| {
        let text = format!("low 0\nhigh 0\nmax 7\noom 1\noom_kill {kills}\noom_group_kill 0\n");
        fs::write(group.folder.join("memory.events"), text).unwrap();
        group.was_out_of_memory()
    };
    assert!(!group.was_out_of_memory());
    assert!(!events(0));
    assert!(events(1));
}

#[test]
fn a_group_is_ended_as_a_whole() {
    let own = own("memory pids\n", "");
    let groups = Groups::below(own.path(), "eisen-1", 1).unwrap();
    let group = groups.group(Limits::default()).unwrap();
    let folder = group.folder.clone();
    drop(group);
    // Nothing is in it, and it is removed with no more ado.
    assert!(!folder.exists());
    let group = groups.group(Limits::default()).unwrap();
    fs::write(group.folder.join("cgroup.kill"), "").unwrap();
    group.end();
    assert_eq!(read(&group.folder, "cgroup.kill"), "1");
}

#[test]
fn no_group_is_divided_that_others_are_in_or_that_lacks_a_controller() {
    for (controllers, others, why) in [
        ("memory pids\n", "1\n", "other processes are in the same cgroup"),
        ("cpu pids\n", "", "no memory and pids controllers were delegated"),
        ("memory_pids\n", "", "no memory and pids controllers were delegated"),
    ] {
        let own = own(controllers, others);
        let error = Groups::below(own.path(), "eisen-1", 1).unwrap_err();
        assert_eq!(error.to_string(), why);
        assert_eq!(read(own.path(), "cgroup.subtree_control"), "");
        assert!(!own.path().join("eisen-1").exists());
    }
}

#[test]
fn a_group_that_cannot_be_divided_gets_the_supervisor_back() {
    let own = own("memory pids\n", "");
    let control = own.path().join("cgroup.subtree_control");
    fs::remove_file(&control).unwrap();
    fs::create_dir(&control).unwrap();
    let pid = std::process::id();
    Groups::below(own.path(), "eisen-1", pid).unwrap_err();
    assert_eq!(read(own.path(), "cgroup.procs"), pid.to_string());
}

#[test]
fn the_folder_of_a_group_is_found_through_its_mount() {
    let mounts = "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
                  41 31 0:38 ROOT /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
    let found = |root: &str, group: &str| {
        let groups = format!("1:name=systemd:/a\n0::{group}\n");
        folder_of(&groups, &mounts.replace("ROOT", root)).map(|path| path.display().to_string())
    };
    assert_eq!(found("/", "/user.slice/x").unwrap(), "/sys/fs/cgroup/user.slice/x");
    assert_eq!(found("/docker/1", "/docker/1/app").unwrap(), "/sys/fs/cgroup/app");
    assert_eq!(found("/docker/1", "/elsewhere"), None);
    assert_eq!(found("/", "/../outside"), None);
    assert_eq!(folder_of("1:memory:/a\n", mounts), None);
}
