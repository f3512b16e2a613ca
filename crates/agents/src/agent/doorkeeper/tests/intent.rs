//! Whose access it is, and whether it was asked for by name.

use super::*;

#[tokio::test(start_paused = true)]
async fn it_belongs_to_the_only_running_turn_or_to_nobody() {
    let bench = bench(false);
    let owner = async |path: &str| {
        bench.rings(named(path)).await;
        bench.routing.list(None).await.pop().unwrap().key.session.as_str().to_owned()
    };
    assert_eq!(owner("1").await, "");
    bench.begins("s");
    assert_eq!(owner("2").await, "s");
    bench.begins("t");
    assert_eq!(owner("3").await, "");
    bench.ends("s");
    assert_eq!(owner("4").await, "t");
    // Prompts of one session overlap: its turn runs until the last has ended.
    bench.begins("t");
    bench.ends("t");
    assert_eq!(owner("5").await, "t");
    bench.ends("t");
    assert_eq!(owner("6").await, "");
}

#[tokio::test(start_paused = true)]
async fn it_is_meant_if_a_running_call_names_it() {
    let bench = bench(false);
    bench.begins("s");
    let meant = async |said: &str, path: &str| {
        bench.says("s", "1", &[said]);
        bench.rings(read(path)).await;
        bench.tell("s", ActivityKind::Ran { call: "1".into(), failed: false });
        bench.list().await.iter().any(|line| line.ends_with(&format!("denied read {path}")))
    };
    for (number, (said, path, expected)) in [
        ("Read core/N.ts", "core/N.ts", true),
        (r#"{"path":"core\/N.ts"}"#, "core/N.ts", true),
        (r#"{"cmd":["cat","./core/N.ts"]}"#, "core/N.ts", true),
        (r#"{"command":"cat ui/../core/N.ts | head"}"#, "core/N.ts", true),
        ("Look at core/N.ts.", "core/N.ts", true),
        ("cat 'core/a b (N).ts'", "core/a b (N).ts", true),
        ("sed -n 1p core/N.ts:12", "core/N.ts", true),
        ("dd if=core/N.ts", "core/N.ts", true),
        (r#"{"changes":{"core/N.ts":{"type":"update"}}}"#, "core/N.ts", true),
        ("rm -r N/", "N", true),
        // Of an agent that takes the workspace for the root.
        (r#"{"file_path":"/core/N.ts"}"#, "core/N.ts", true),
        (r#"{"file_path":"/x/core/N.ts"}"#, "core/N.ts", false),
        // A part of another path or word is none of it.
        ("cat core/N.ts.bak", "core/N.ts", false),
        ("cat my-core/N.ts", "core/N.ts", false),
        ("cat ui/core/N.ts", "core/N.ts", false),
        ("cat /core/N.ts", "core/N.ts", false),
        ("cat core/N.tsx", "core/N.ts", false),
        ("cat core/N.ts/x", "core/N.ts", false),
        // Its folder is not it.
        ("grep -r x core", "core/N.ts", false),
        ("", "core/N.ts", false),
    ]
    .into_iter()
    .enumerate()
    {
        let number = format!("n{number}");
        let (said, path) = (said.replace('N', &number), path.replace('N', &number));
        assert_eq!(meant(&said, &path).await, expected, "{said}");
    }
    let absolute = bench.workspace.join("core");
    let absolute = absolute.to_str().unwrap();
    assert!(meant(&format!("cat {absolute}/a.ts"), "core/a.ts").await);
    assert!(meant(&format!("see file://{absolute}/b.ts"), "core/b.ts").await);
    assert!(!meant(&format!("cat /x{absolute}/c.ts"), "core/c.ts").await);
    assert!(meant("cat /etc/shadow", "/etc/shadow").await);
    assert!(!meant("cat /x/etc/passwd", "/etc/passwd").await);
}

#[tokio::test(start_paused = true)]
async fn a_link_names_what_it_leads_to() {
    let mut bench = bench(false);
    let at = |path: &str| bench.workspace.join(path);
    std::fs::create_dir_all(at("core")).unwrap();
    std::fs::create_dir_all(at("ui")).unwrap();
    std::fs::write(at("core/x.ts"), "").unwrap();
    std::os::unix::fs::symlink(at("core"), at("ui/link")).unwrap();
    std::os::unix::fs::symlink("../core/x.ts", at("ui/file")).unwrap();
    bench.begins("s");
    bench.says("s", "1", &["cat ui/link/x.ts"]);
    bench.rings(read("core/x.ts")).await;
    assert_eq!(bench.blocked().await, "b1 s denied read core/x.ts");
    bench.says("s", "2", &["echo > ui/link/new.ts"]);
    bench.rings(Attempt { action: Action::Write, ..read("core/new.ts") }).await;
    assert_eq!(bench.blocked().await, "b2 s denied write core/new.ts");
    bench.tell("s", ActivityKind::Ran { call: "1".into(), failed: false });
    bench.says("s", "3", &["cat ui/file"]);
    bench.rings(Attempt { pid: 8, ..read("core/x.ts") }).await;
    assert_eq!(bench.blocked().await, "b3 s denied read core/x.ts");
}

#[tokio::test(start_paused = true)]
async fn a_temporary_file_is_that_which_a_call_names_beside_it() {
    let mut bench = bench(false);
    std::fs::create_dir_all(bench.workspace.join("core")).unwrap();
    let draft =
        |path: &str| Attempt { action: Action::Write, meaning: PathMeaning::Draft, ..read(path) };
    bench.begins("s");
    let absolute = bench.workspace.join("core/a.ts");
    let absolute = absolute.to_str().unwrap();
    let said = format!(r#"{{"path":"{absolute}","content":"core/x.ts ui/y.ts"}}"#);
    bench.says("s", "1", &[&said]);
    bench.rings(draft("core/.hermes-tmp.V0XkRa")).await;
    assert_eq!(bench.blocked().await, "b1 s denied write core/a.ts");
    bench.tell("s", ActivityKind::Ran { call: "1".into(), failed: false });
    // Also if it is said a little later, and by who takes the workspace for the root.
    let late = bench.ring(Attempt { pid: OWN, ..draft("core/tmpa8kd0x_1") });
    tokio::time::sleep(Duration::from_millis(10)).await;
    bench.says("s", "2", &[r#"{"file_path":"/core/b.ts"}"#]);
    assert!(!late.await.unwrap_or(false));
    assert_eq!(bench.blocked().await, "b2 s denied write core/b.ts");
    // Of two it is not known which; of what lies elsewhere it is none.
    bench.tell("s", ActivityKind::Ran { call: "2".into(), failed: false });
    bench.says("s", "3", &[r#"{"paths":["core/a.ts","core/b.ts","ui/c.ts"]}"#]);
    bench.rings(draft("core/tmpa8kd0x_2")).await;
    assert_eq!(bench.blocked().await, "b3 s denied write core/tmpa8kd0x_2 ×1");
    bench.rings(draft("ui/.hermes-tmp.V0XkRa")).await;
    assert_eq!(bench.blocked().await, "b4 s denied write ui/c.ts");
}

#[tokio::test(start_paused = true)]
async fn relative_names_are_taken_against_the_folder_of_the_call() {
    let mut bench = bench(false);
    bench.begins("s");
    let cwd = bench.workspace.join("ui").as_path().into();
    let said = vec!["cat ../core/x.ts y.ts".into()];
    bench.tell("s", ActivityKind::Runs { call: "1".into(), cwd, said });
    bench.rings(read("core/x.ts")).await;
    assert_eq!(bench.blocked().await, "b1 s denied read core/x.ts");
    bench.rings(read("ui/y.ts")).await;
    assert_eq!(bench.blocked().await, "b2 s denied read ui/y.ts");
}

#[tokio::test(start_paused = true)]
async fn what_ended_names_nothing_any_more() {
    let mut bench = bench(false);
    bench.begins("s");
    bench.says("s", "1", &["cat core/x.ts"]);
    bench.tell("s", ActivityKind::Ran { call: "1".into(), failed: false });
    bench.rings(read("core/x.ts")).await;
    assert_eq!(bench.blocked().await, "b1 s denied read core/x.ts ×1");
    bench.says("s", "2", &["cat core/y.ts"]);
    bench.ends("s");
    bench.begins("s");
    bench.rings(read("core/y.ts")).await;
    assert_eq!(bench.blocked().await, "b2 s denied read core/y.ts ×1");
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_says_costs_bounded_memory() {
    let mut bench = bench(false);
    bench.begins("s");
    let text = "x".repeat(60_000);
    for number in 0..2_000 {
        bench.says("s", &number.to_string(), &[&format!("core/{number}.ts {text}")]);
    }
    bench.rings(read("core/0.ts")).await;
    assert_eq!(bench.blocked().await, "b1 s denied read core/0.ts ×1");
    bench.rings(read("core/1999.ts")).await;
    assert_eq!(bench.blocked().await, "b2 s denied read core/1999.ts");
}
