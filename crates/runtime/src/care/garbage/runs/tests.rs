#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::time::SystemTime;

use crate::care::garbage::runs::*;
use crate::process;
use crate::runs::{RunId, RunStatus};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A run in this state, whose files did not change for an hour.
    fn run(&self, change: impl FnOnce(&mut RunState)) -> RunFolder {
        let run = RunFolder::create(self.dir.path(), RunId::generate()).unwrap();
        let mut state = run.lost(now_ms());
        change(&mut state);
        run.keep(&state).unwrap();
        age_files(run.path());
        run
    }

    fn found(&self, running: &[&RunFolder]) -> Vec<Garbage> {
        let running = running.iter().map(|run| run.team()).collect();
        OneShots::new(self.dir.path(), None, &running).garbage().unwrap()
    }

    async fn clean(&self) -> Vec<String> {
        let mut done = Vec::new();
        for garbage in self.found(&[]) {
            done.push(garbage.what.clone());
            garbage.remove(self.dir.path()).await.unwrap();
        }
        done
    }
}

fn age_files(folder: &Path) {
    for file in fs::read_dir(folder).unwrap() {
        let file = File::options().write(true).open(file.unwrap().path()).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
    }
}

fn days_ago(days: u64) -> u64 {
    now_ms() - days * DAY_MS
}

#[tokio::test]
async fn a_run_that_ended_long_ago_goes_with_all_that_it_left() {
    let place = Place::new();
    let young = place.run(|it| it.ended_at_ms = Some(days_ago(29)));
    let old = place.run(|it| it.ended_at_ms = Some(days_ago(31)));
    let team = place.dir.path().join("teams").join(old.team());
    let logs = place.dir.path().join("logs").join(old.team());
    for folder in [&team, &logs] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("agent.log"), "x".repeat(1000)).unwrap();
    }
    let found = place.found(&[]);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].bytes > 2000 && found[0].reason.contains("`--max-age-days` is 30"),
        "{found:?}"
    );
    assert!(place.found(&[&old]).is_empty(), "its team runs");
    assert_eq!(place.clean().await, [format!("run {}", old.id())]);
    assert!(young.path().exists() && !old.path().exists() && !team.exists() && !logs.exists());
    assert!(place.found(&[]).is_empty());
}

#[tokio::test]
async fn a_run_that_runs_stays_whatever_its_age() {
    let place = Place::new();
    let own = std::process::id();
    let long_ago = |state: &mut RunState| {
        state.started_at_ms = 0;
        state.status = RunStatus::Running;
        state.ended_at_ms = None;
        (state.pid, state.pid_start_time_ticks) = (own, process::start_of(own));
    };
    place.run(long_ago);
    place.run(|state| {
        long_ago(state);
        state.status = RunStatus::Waiting;
    });
    assert!(place.found(&[]).is_empty());
    // Its pid is used again.
    let dead = place.run(|state| {
        long_ago(state);
        state.pid_start_time_ticks = Some(1);
    });
    dead.keep_answer("so far").unwrap();
    assert!(place.found(&[&dead]).is_empty(), "its team runs");
    assert!(place.found(&[])[0].is_repair());
    place.clean().await;
    let state = dead.kept().unwrap();
    assert_eq!((state.status, state.exit_code), (RunStatus::Lost, Some(1)));
    assert!(state.ended_at_ms.unwrap() + 10_000 > now_ms() && state.started_at_ms == 0);
    assert_eq!(dead.answer().unwrap(), "so far");
    assert!(place.found(&[]).is_empty());
}

#[tokio::test]
async fn a_run_without_a_state_is_mended_if_it_left_something_to_keep() {
    let place = Place::new();
    let states = ["", "status = \"runn", "\u{0}"];
    let runs = states.map(|text| {
        let run = place.run(|_| ());
        fs::write(run.path().join("state.toml"), text).unwrap();
        age_files(run.path());
        run
    });
    let [nothing, answered, journaled] = runs;
    fs::remove_file(nothing.path().join("state.toml")).unwrap();
    fs::write(nothing.config(), "").unwrap();
    answered.keep_answer("42").unwrap();
    let team = place.dir.path().join("teams").join(journaled.team());
    fs::create_dir_all(&team).unwrap();
    fs::write(team.join("journal.db"), "").unwrap();
    // It may be in the making.
    assert_eq!(place.found(&[]).len(), 1);
    for run in [&nothing, &answered] {
        age_files(run.path());
    }
    let held = nothing.try_hold().unwrap();
    let is_of = |garbage: &Garbage| garbage.what.contains(nothing.id());
    let of_nothing = place.found(&[]).into_iter().find(is_of).unwrap();
    assert!(!of_nothing.is_repair());
    let refused = of_nothing.remove(place.dir.path()).await.unwrap_err();
    assert!(format!("{refused:#}").contains("another process"), "{refused:#}");
    drop(held);
    assert_eq!(place.clean().await.len(), 3);
    assert!(!nothing.path().exists());
    assert_eq!(answered.answer().unwrap(), "42");
    for run in [answered, journaled] {
        let state = run.state().unwrap();
        assert_eq!((state.status, state.exit_code), (RunStatus::Lost, Some(1)));
        assert_eq!(state.reason.as_deref(), Some("its state was lost"));
    }
}

#[tokio::test]
async fn a_child_goes_with_its_parent_once_it_has_ended() {
    let place = Place::new();
    let parent = place.run(|_| ());
    let children = [RunStatus::Succeeded, RunStatus::Running].map(|status| {
        let child = place.run(|state| {
            state.status = status;
            state.pid = std::process::id();
            state.pid_start_time_ticks = process::start_of(state.pid);
        });
        let file = child.path().join("state.toml");
        let text = fs::read_to_string(&file).unwrap();
        let text: String = text
            .lines()
            .filter(|line| !line.starts_with("parent ="))
            .collect::<Vec<_>>()
            .join("\n");
        fs::write(&file, format!("parent = \"{}\"\n{text}", parent.id())).unwrap();
        child
    });
    assert!(place.found(&[]).is_empty());
    let aside = parent.set_aside().unwrap();
    let found = place.clean().await;
    assert_eq!(found, [format!("run {}", children[0].id()), aside.display().to_string()]);
    assert!(!children[0].path().exists() && children[1].path().exists() && !aside.exists());
}
