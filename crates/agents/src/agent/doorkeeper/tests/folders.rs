//! Folders that are made for a file.

use super::*;

/// A call that makes a folder.
fn folder(path: &str) -> Attempt {
    Attempt { action: Action::Write, meaning: PathMeaning::NewFolder, ..read(path) }
}

/// A call that writes a new file.
fn write(path: &str) -> Attempt {
    Attempt { action: Action::Write, ..read(path) }
}

#[tokio::test(start_paused = true)]
async fn the_missing_folders_of_a_file_are_asked_for_with_it() {
    let mut bench = bench(true);
    bench.begins("s");
    bench.says("s", "1", &[r#"{"file_path":"test/new/x.ts","content":"import 'test/other/y'"}"#]);
    let made = bench.ring(folder("test"));
    let asked = bench.access().await;
    assert_eq!(shown(&asked), "b1 s pending write test/new/x.ts");
    assert_eq!(asked.tool_call.as_deref(), Some("1"));
    bench.resolve("b1", ALLOW).await;
    assert!(made.await.unwrap());
    assert!(bench.rings(folder("test/new")).await);
    // Another process may write it: a shell makes folders by a program.
    assert!(bench.rings(Attempt { pid: 8, ..write("test/new/x.ts") }).await);
    assert_eq!(bench.list().await, ["b1 s allowed write test/new/x.ts"]);
    // Nothing else in them is allowed.
    bench.says("s", "2", &["touch test/new/y.ts test/more/z.ts"]);
    let other = bench.ring(write("test/new/y.ts"));
    let more = bench.ring(folder("test/more"));
    assert_eq!(bench.blocked().await, "b1 s allowed write test/new/x.ts");
    let mut asked = [bench.blocked().await, bench.blocked().await];
    asked.sort();
    assert!(asked[0].ends_with("pending write test/more/z.ts") || asked[0].ends_with("y.ts"));
    drop((other, more));
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_a_program_names_is_for_the_file_that_its_call_names_in_it() {
    let mut bench = bench(true);
    bench.begins("s");
    bench.says("s", "1", &["mkdir -p new/deep && echo x > new/deep/f"]);
    // The arguments of `mkdir` name the inner folder.
    let above = Attempt { named: true, meaning: PathMeaning::Above, ..write("new/deep") };
    let made = bench.ring(above);
    assert_eq!(bench.blocked().await, "b1 s pending write new/deep/f");
    bench.resolve("b1", ALLOW).await;
    assert!(made.await.unwrap());
    assert!(bench.rings(Attempt { named: true, ..folder("new/deep") }).await);
    assert!(bench.rings(Attempt { pid: 8, ..write("new/deep/f") }).await);
    assert!(!bench.rings(Attempt { pid: 8, ..write("new/deep/g") }).await);
    assert!(!bench.rings(Attempt { pid: 8, ..folder("new/other") }).await);
}

#[tokio::test(start_paused = true)]
async fn a_granted_file_lets_its_folders_be_made_and_stays_granted() {
    let bench = bench(false);
    bench.begins("s");
    assert!(!bench.rings(Attempt { named: true, ..write("test/new/x.ts") }).await);
    bench.resolve("b1", ALLOW).await;
    for path in ["test", "test/new"] {
        assert!(bench.rings(Attempt { named: true, ..folder(path) }).await, "{path}");
    }
    assert!(!bench.rings(Attempt { named: true, ..folder("test/newer") }).await);
    assert!(bench.rings(write("test/new/x.ts")).await);
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_no_call_needs_for_a_file_is_itself() {
    let mut bench = bench(true);
    bench.begins("s");
    bench.says("s", "1", &["mkdir test"]);
    let made = bench.ring(folder("test"));
    assert_eq!(bench.blocked().await, "b1 s pending write test");
    bench.resolve("b1", ALLOW).await;
    assert!(made.await.unwrap());
    assert!(!bench.rings(write("test/x.ts")).await);
    // Those of the zone are free: the call means them, and the folder is no part of them.
    bench.says("s", "2", &["mkdir -p old && cp a ui/x.ts"]);
    let other = bench.ring(folder("old"));
    assert_eq!(bench.blocked().await, "b1 s allowed write test");
    assert_eq!(bench.blocked().await, "b2 s denied write test/x.ts ×1");
    assert_eq!(bench.blocked().await, "b3 s pending write old");
    drop(other);
}

#[test]
fn a_path_that_nobody_may_open_stays_closed_when_it_is_meant_by_another() {
    let bounds = bounds("/nonexistent/w".into());
    for meaning in [PathMeaning::NewFolder, PathMeaning::Draft] {
        let mut attempt = Attempt { meaning, ..folder("lib") };
        assert!(attempt.becomes(Path::new("/nonexistent/eisen/run/x"), &bounds), "{meaning:?}");
        assert!(!attempt.grantable, "{meaning:?}");
        let mut attempt = Attempt { meaning, ..folder("lib") };
        assert!(attempt.becomes(Path::new("/nonexistent/w/lib/x"), &bounds), "{meaning:?}");
        assert!(attempt.grantable, "{meaning:?}");
    }
}
