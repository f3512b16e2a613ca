//! Places that are shared by real processes: this test program, started again.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use eisen_base::task;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::*;
use crate::process;

/// Names `$EISEN_DIR` to a process that is to take a slot.
const OF_CHILD: &str = "EISEN_TEST_SLOTS_OF";

/// Past this a test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

fn codex() -> SlotPlace {
    SlotPlace::Base("codex".to_owned())
}

fn request(run: &str) -> SlotRequest {
    let tool_name = "eisen-core run".to_owned();
    SlotRequest {
        tool_name,
        reason: "a test".to_owned(),
        run: Some(run.to_owned()),
        ..SlotRequest::default()
    }
}

/// Another process with a slot, or in the line for one.
struct Other {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(eisen_dir: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", "slots::tests::another_process"]);
        command.env(OF_CHILD, eisen_dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// Returns once it has said this.
    fn says(mut self, wanted: &str) -> Self {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            assert_ne!(
                self.said.read_line(&mut line).unwrap(),
                0,
                "it ended before it said {wanted}"
            );
        }
        self
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Has it give its slot back.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// The work of another process; nothing is done if this is not one.
#[tokio::test]
async fn another_process() {
    let Some(eisen_dir) = std::env::var_os(OF_CHILD) else { return };
    let say = |what: &str| std::io::stdout().write_all(format!("\n{what}\n").as_bytes()).unwrap();
    let slots = Slots::new(Path::new(&eisen_dir));
    let waits = |_: &SlotWaiter| say("WAITS");
    let slot = slots.acquire(&codex(), 1, request("other"), Wait::Forever, waits).await.unwrap();
    say("HOLDS");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(slot);
}

/// Starts to wait for a slot; returns once it is in the line, with what it gets at last.
async fn in_line(slots: &Slots, run: &str, limit: u32) -> tokio::task::JoinHandle<TakenSlot> {
    let (sender, mut waits) = mpsc::unbounded_channel();
    let (slots, request) = (slots.clone(), request(run));
    let task = task::spawn(async move {
        let wait = |standing: &SlotWaiter| drop(sender.send(standing.clone()));
        slots.acquire(&codex(), limit, request, Wait::Forever, wait).await.unwrap()
    });
    waits.recv().await.unwrap();
    task
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap()
}

async fn try_once(slots: &Slots, limit: u32) -> Result<TakenSlot, SlotError> {
    slots.acquire(&codex(), limit, request("me"), Wait::No, |_| ()).await
}

fn lock_files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|it| it == "lock")).collect()
}

#[tokio::test]
async fn slots_are_given_in_the_order_of_arrival() {
    let eisen_dir = tempfile::tempdir().unwrap();
    let slots = Slots::new(eisen_dir.path());
    let (first, second) = (try_once(&slots, 2).await.unwrap(), try_once(&slots, 2).await.unwrap());
    let third = in_line(&slots, "third", 2).await;
    let fourth = in_line(&slots, "fourth", 2).await;
    let fifth = in_line(&slots, "fifth", 2).await;
    let runs = |all: Vec<SlotHolder>| all.into_iter().filter_map(|it| it.run).collect::<Vec<_>>();
    let all = slots.tickets(&codex()).unwrap();
    assert_eq!(runs(all), ["me", "me", "third", "fourth", "fifth"]);
    drop(second);
    let third = soon(third).await.unwrap();
    assert!(!fourth.is_finished() && !fifth.is_finished());
    // One that gives up loses its place, and holds nobody up.
    fourth.abort();
    drop(first);
    let fifth = soon(fifth).await.unwrap();
    assert!(third.number() < fifth.number());
    drop((third, fifth));
    assert_eq!(lock_files(&eisen_dir.path().join("slots/codex")), Vec::<PathBuf>::new());
    // A number is not used again.
    assert_eq!(try_once(&slots, 2).await.unwrap().number(), 6);
}

#[tokio::test]
async fn a_helper_has_its_turn_in_the_slot_of_whom_it_helps() {
    let eisen_dir = tempfile::tempdir().unwrap();
    let slots = Slots::new(eisen_dir.path());
    let take = async |agent: &str, above: &[&str]| {
        let above: Vec<_> = above.iter().map(|agent| (*agent).to_owned()).collect();
        let place = slots.place_of("codex", "shop", &above).unwrap();
        let (team, agent) = (Some("shop".to_owned()), Some(agent.to_owned()));
        let request = SlotRequest { team, agent, ..request("r") };
        slots.acquire(&place, 1, request, Wait::No, |_| ()).await
    };
    let lead = take("lead", &[]).await.unwrap();
    assert!(take("other", &[]).await.is_err());
    let helper = take("helper", &["lead"]).await.unwrap();
    // Its helper has its turn in turn, and another one of the lead waits.
    let below = take("below", &["helper", "lead"]).await.unwrap();
    let refused = take("second", &["lead"]).await.unwrap_err().to_string();
    assert!(refused.contains("the slot of `codex` that `lead` has: held by"), "{refused}");
    drop((helper, below));
    take("second", &["lead"]).await.unwrap();
    drop(lead);
    // Without such a slot it needs one of its own.
    let _other = take("other", &[]).await.unwrap();
    assert!(take("helper", &["lead"]).await.is_err());
}

#[tokio::test]
async fn a_killed_holder_holds_nothing() {
    let eisen_dir = tempfile::tempdir().unwrap();
    let slots = Slots::new(eisen_dir.path());
    let other = Other::start(eisen_dir.path()).says("HOLDS");
    let refused = try_once(&slots, 1).await.unwrap_err().to_string();
    let named = format!(
        "waits for a slot of `codex`: held by the run other (pid {}, since 2",
        other.child.id()
    );
    assert!(refused.starts_with(&named), "{refused}");
    let waiter = in_line(&slots, "me", 1).await;
    other.kill();
    drop(soon(waiter).await.unwrap());
    drop(try_once(&slots, 1).await.unwrap());
    // What the killed one left was removed.
    assert_eq!(lock_files(&eisen_dir.path().join("slots/codex")), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_killed_waiter_holds_nobody_up() {
    let eisen_dir = tempfile::tempdir().unwrap();
    let slots = Slots::new(eisen_dir.path());
    let holder = Other::start(eisen_dir.path()).says("HOLDS");
    let other = Other::start(eisen_dir.path()).says("WAITS");
    let mine = in_line(&slots, "me", 1).await;
    other.kill();
    holder.end();
    let mine = soon(mine).await.unwrap();
    assert!(try_once(&slots, 1).await.is_err());
    drop(mine);
}

#[tokio::test]
async fn a_place_passes_from_process_to_process() {
    let eisen_dir = tempfile::tempdir().unwrap();
    let slots = Slots::new(eisen_dir.path());
    let mine = try_once(&slots, 1).await.unwrap();
    let other = Other::start(eisen_dir.path()).says("WAITS");
    drop(mine);
    let other = other.says("HOLDS");
    let deadline = Wait::Until(Instant::now() + Duration::from_millis(50));
    let late = slots.acquire(&codex(), 1, request("me"), deadline, |_| ()).await.unwrap_err();
    assert!(matches!(&late, SlotError::TimedOut(why) if why.contains("the run other")), "{late}");
    other.end();
    try_once(&slots, 1).await.unwrap();
}

#[tokio::test]
async fn only_a_live_process_with_its_lock_is_a_holder() {
    let eisen_dir = tempfile::tempdir().unwrap();
    let slots = Slots::new(eisen_dir.path());
    let own = try_once(&slots, 1).await.unwrap();
    let folder = eisen_dir.path().join("slots/codex");
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let file = lock_files(&folder).remove(0);
    let text: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for field in ["pid", "pid_start_time_ticks", "tool_name", "acquired_at", "reason", "run"] {
        assert!(!text[field].is_null(), "{field}: {text}");
    }
    drop(own);
    let (pid, start) = (std::process::id(), process::start_of(std::process::id()).unwrap());
    let holder = |pid: u32, start: u64| {
        json!({ "pid": pid, "pid_start_time_ticks": start, "tool_name": "t", "acquired_at": "2026-01-01T00:00:00Z", "reason": "r" })
            .to_string()
    };
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    for (text, is_locked, holds) in [
        (holder(pid, start), true, true),
        (holder(pid, start), false, false),
        // Its pid belongs to another process now.
        (holder(pid, start + 1), true, false),
        (holder(ended.id(), start), true, false),
        (holder(pid, start)[..20].to_owned(), true, true),
        (holder(pid, start)[..20].to_owned(), false, false),
        (String::new(), false, false),
        ("\u{0}".repeat(100_000), false, false),
    ] {
        let path = ticket::lock_file(&folder, 1_000);
        fs::write(&path, &text).unwrap();
        let lock = File::open(&path).unwrap();
        if is_locked {
            lock.lock().unwrap();
        }
        let got = try_once(&slots, 1).await;
        assert_eq!(got.is_err(), holds, "{text:.100} {is_locked}: {got:?}");
        // What nobody holds is removed by the next one who comes.
        let _ = fs::remove_file(path);
    }
}

#[tokio::test]
async fn what_stands_in_the_way_is_an_error_and_no_hang() {
    let eisen_dir = tempfile::tempdir().unwrap();
    let slots = Slots::new(eisen_dir.path());
    drop(try_once(&slots, 1).await.unwrap());
    let folder = eisen_dir.path().join("slots/codex");
    // Remains of one that was killed while it made its ticket.
    fs::write(folder.join("new"), "{").unwrap();
    fs::write(folder.join("00000000000000000002.pipe"), "").unwrap();
    fs::write(folder.join("turn"), "no number").unwrap();
    drop(soon(try_once(&slots, 1)).await.unwrap());
    fs::remove_dir_all(&folder).unwrap();
    drop(soon(try_once(&slots, 1)).await.unwrap());
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    let error = soon(try_once(&slots, 1)).await.unwrap_err().to_string();
    assert!(error.contains("slots/codex"), "{error}");
}

#[tokio::test]
async fn memory_is_promised_once() {
    let eisen_dir = tempfile::tempdir().unwrap();
    let slots = Slots::new(eisen_dir.path());
    let available = Machine::now().unwrap().available;
    // Twice this is more than there is, whatever other processes of this machine take and free meanwhile.
    let need = MemoryNeed { expected: available / 10 * 8, min_free_mb: 0 };
    let reserve = |wait| slots.reserve(need, request("me"), wait, |_| ());
    // At the same moment: the second has its turn to look when the first has its promise.
    let later = Wait::Until(Instant::now() + Duration::from_millis(100));
    let (one, other) = tokio::join!(reserve(later), reserve(later));
    let (got, refused) = if one.is_ok() { (one, other) } else { (other, one) };
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("waits for memory"), "{refused}");
    drop(got.unwrap());
    soon(reserve(Wait::Forever)).await.unwrap();
}
