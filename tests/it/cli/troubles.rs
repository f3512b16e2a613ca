//! What keeps a journal from being written: said once, shown as long as it lasts, and then it is
//! written again.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::json;

use crate::harness::{Stage, agent, eventually, run};

/// A team whose journal is in the folder `disk` of the stage.
fn team(stage: &Stage) -> crate::harness::Team {
    fs::create_dir_all(stage.path("disk")).unwrap();
    stage.team("[journal]\npath = \"disk/j.db\"", vec![agent("ui")])
}

/// A journal of an earlier run, with one turn.
fn earlier(stage: &Stage) -> PathBuf {
    let team = team(stage);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts earlier");
    drop(port);
    team.stop();
    stage.path("disk/j.db")
}

/// Begins a trouble, starts a team in it, looks what it says, ends it, and looks again. With `begin`
/// after the start where `runs`.
fn lasts(stage: &Stage, runs: bool, why: &str, begin: impl FnOnce(&Path), end: impl FnOnce(&Path)) {
    let path = stage.path("disk/j.db");
    let mut begin = Some(begin);
    if !runs {
        begin.take().unwrap()(&path);
    }
    let team = team(stage);
    let mut port = team.steer_when_ready(&["ui"]);
    if let Some(begin) = begin {
        begin(&path);
    }
    // The team goes on.
    assert_eq!(port.prompt("ui", "write src/ui/new.ts meanwhile"), "written");
    let mut shown = String::new();
    eventually("ps shows it", || {
        shown = stage.run(&["ps"]).stdout;
        shown.contains("records nothing")
    });
    assert!(shown.contains(why), "{shown}");
    let report = stage.run(&["check", "-c", "eisen.toml"]).stdout;
    assert!(report.contains("records nothing") && report.contains(why), "{report}");
    assert_eq!(port.prompt("ui", "write src/ui/new.ts again"), "written");
    end(&path);
    eventually("the trouble is over", || {
        port.call("get_journal", &json!({})).unwrap()["trouble"].is_null()
    });
    assert!(!stage.run(&["ps"]).stdout.contains("records nothing"));
    // What happened meanwhile was kept.
    eventually("it is written", || {
        let found = stage.run(&["history", "search", "meanwhile", "--file", "disk/j.db"]);
        found.stdout.contains("[meanwhile]")
    });
    drop(port);
    let said = team.stop().stderr;
    assert_eq!(said.matches("records nothing").count(), 1, "{said}");
    let sound = |path: &Path| -> String {
        let connection = Connection::open(path).unwrap();
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(sound(&path), "ok");
}

#[test]
fn another_process_locks_it() {
    for runs in [false, true] {
        let stage = Stage::new();
        earlier(&stage);
        let other = Connection::open(stage.path("disk/j.db")).unwrap();
        let begin = |_: &Path| other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let end = |_: &Path| other.execute_batch("ROLLBACK").unwrap();
        lasts(&stage, runs, "it is locked by another process", begin, end);
    }
}

#[test]
fn it_is_from_a_newer_version() {
    let stage = Stage::new();
    earlier(&stage);
    let open = |path: &Path| Connection::open(path).unwrap();
    let own: i32 = open(&stage.path("disk/j.db"))
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    let set = |path: &Path, version: i32| {
        open(path).pragma_update(None, "user_version", version).unwrap();
    };
    let begin = |path: &Path| set(path, own + 1);
    let end = |path: &Path| set(path, own);
    lasts(&stage, false, "it is from a newer version", begin, end);
}

#[test]
fn its_path_is_a_folder() {
    let stage = Stage::new();
    let path = stage.path("home/teams/shop/journal.db");
    fs::create_dir_all(&path).unwrap();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "write src/ui/new.ts meanwhile"), "written");
    for command in [&["ps"][..], &["check", "-c", "eisen.toml"]] {
        let shown = stage.run(command).stdout;
        assert!(shown.contains("records nothing") && shown.contains("it is no file"), "{shown}");
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    fs::remove_dir(&path).unwrap();
    eventually("it is written", || {
        stage.run(&["history", "search", "meanwhile"]).stdout.contains("[meanwhile]")
    });
    drop(port);
    let said = team.stop().stderr;
    assert_eq!(said.matches("records nothing").count(), 1, "{said}");
}

#[test]
fn it_is_read_only() {
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: root may write what is read-only");
        return;
    }
    for name in ["disk/j.db", "disk"] {
        let stage = Stage::new();
        earlier(&stage);
        let file = stage.path(name);
        let set = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        lasts(&stage, false, "it is read-only", |_| set(0o500), |_| set(0o700));
    }
}

/// A small disk of its own, mounted on the folder `disk`; None where that needs more rights.
pub(super) struct Disk(PathBuf);

impl Disk {
    pub(super) fn mount(stage: &Stage, options: &str) -> Option<Self> {
        let folder = stage.path("disk");
        fs::create_dir_all(&folder).unwrap();
        let disk = Self(folder);
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(&disk.0);
        if !nix::unistd::geteuid().is_root() || run(&mut mount).code != 0 {
            eprintln!("skipped: only root can mount a small disk");
            std::mem::forget(disk);
            return None;
        }
        Some(disk)
    }

    pub(super) fn remount(&self, options: &str) {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-o", &format!("remount,{options}")]).arg(&self.0);
        assert_eq!(run(&mut mount).code, 0);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run(std::process::Command::new("umount").arg("-l").arg(&self.0));
    }
}

#[test]
fn the_disk_is_full() {
    for runs in [false, true] {
        let stage = Stage::new();
        let Some(disk) = Disk::mount(&stage, "size=4m") else { return };
        earlier(&stage);
        let filler = stage.path("disk/filler");
        // As much as goes on it.
        let fill = |_: &Path| {
            let file = fs::File::create(&filler).unwrap();
            let block = [1; 4096];
            while std::io::Write::write(&mut &file, &block).is_ok_and(|written| written > 0) {}
        };
        lasts(&stage, runs, "the disk is full", fill, |_| disk.remount("size=64m"));
    }
}

#[test]
fn the_disk_is_read_only() {
    let stage = Stage::new();
    let Some(disk) = Disk::mount(&stage, "size=4m") else { return };
    earlier(&stage);
    let begin = |_: &Path| disk.remount("ro");
    lasts(&stage, false, "it is read-only", begin, |_| disk.remount("rw"));
}

fn set_aside(stage: &Stage) -> Vec<PathBuf> {
    let files = fs::read_dir(stage.path("disk")).unwrap().map(|entry| entry.unwrap().path());
    // Logs without content go along.
    let is_empty = |file: &PathBuf| fs::metadata(file).unwrap().len() == 0;
    let is_index = |file: &PathBuf| file.to_string_lossy().ends_with("-shm");
    let files = files.filter(|file| file.to_string_lossy().contains(".corrupt-"));
    files.filter(|file| !is_empty(file) && !is_index(file)).collect()
}

#[test]
fn a_damaged_file_is_set_aside_as_it_is() {
    for damaged in [0..100, 8_192..20_000] {
        let stage = Stage::new();
        let path = earlier(&stage);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let noise = vec![b'#'; damaged.end - damaged.start];
        file.write_all_at(&noise, damaged.start as u64).unwrap();
        let before = fs::read(&path).unwrap();
        let report = stage.run(&["check", "-c", "eisen.toml"]).stdout;
        assert!(report.contains("it is corrupt"), "{report}");
        let team = team(&stage);
        let mut port = team.steer_when_ready(&["ui"]);
        port.prompt("ui", "write src/ui/new.ts later");
        drop(port);
        let said = team.stop().stderr;
        assert_eq!(said.matches("is corrupt").count(), 1, "{said}");
        let aside = set_aside(&stage);
        assert_eq!(aside.len(), 1, "{aside:?}");
        assert_eq!(fs::read(&aside[0]).unwrap(), before);
        let found = stage.run(&["history", "search", "later", "--file", "disk/j.db"]).stdout;
        assert!(found.contains("[later]"), "{found}");
    }
}

#[test]
fn a_damaged_log_is_set_aside_and_what_is_before_the_damage_stays() {
    for (at, kept) in [(0, false), (32 + 3 * 4_120 + 100, true)] {
        let stage = Stage::new();
        let team_of_log = team(&stage);
        let mut port = team_of_log.steer_when_ready(&["ui"]);
        port.prompt("ui", "write src/ui/new.ts early");
        let has = |word: &str| {
            stage.run(&["history", "search", word, "--file", "disk/j.db"]).stdout.contains(word)
        };
        eventually("it is in the journal", || has("early"));
        team_of_log.program.signal(nix::sys::signal::Signal::SIGKILL);
        eventually("the team is gone", || stage.run(&["ps"]).code == 1);
        let log = stage.path("disk/j.db-wal");
        let file = OpenOptions::new().write(true).open(&log).unwrap();
        file.write_all_at(b"########", at).unwrap();
        let before = fs::read(&log).unwrap();
        let again = team(&stage);
        again.steer_when_ready(&["ui"]);
        let said = again.stop().stderr;
        assert_eq!(said.matches("write-ahead log").count(), 1, "{said}");
        let aside = set_aside(&stage);
        assert_eq!(aside.len(), 1, "{aside:?}");
        assert_eq!(fs::read(&aside[0]).unwrap(), before, "{kept}");
    }
}

#[test]
fn a_file_that_was_moved_away_is_begun_anew() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts early");
    fs::create_dir(stage.path("away")).unwrap();
    for name in ["j.db", "j.db-wal", "j.db-shm"] {
        fs::rename(stage.path("disk").join(name), stage.path("away").join(name)).unwrap();
    }
    port.prompt("ui", "write src/ui/new.ts later");
    eventually("a new file has it", || {
        let found = stage.run(&["history", "search", "later", "--file", "disk/j.db"]);
        found.stdout.contains("[later]")
    });
    drop(port);
    let said = team.stop().stderr;
    assert!(said.contains("was moved or removed"), "{said}");
}
