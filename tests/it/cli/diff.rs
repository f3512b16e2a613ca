//! `diff` and `blame`: what agents wrote, while the team runs and after.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::assert_ended;
use crate::harness::{Stage, agent};

/// Runs git in a folder, with the settings of nobody.
fn git(folder: &Path, args: &[&str], input: &str) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args).current_dir(folder);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let mut git = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A repository, and in it what two agents wrote.
fn written() -> Stage {
    let stage = Stage::new();
    let shop = stage.path("shop");
    git(&shop, &["init", "-q"], "");
    git(&shop, &["add", "src"], "");
    git(&shop, &["commit", "-q", "-m", "before"], "");
    let agents = vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")];
    let team = stage.team("", agents);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.prompt("ui", "write src/ui/app.ts margins");
    port.prompt("api", "write src/api/cart.rs prices");
    port.prompt("ui", "write src/ui/new.ts footer");

    // A running team is asked for what it wrote until now.
    let shown = stage.run(&["diff", "ui", "--stat"]);
    let stat = " src/ui/app.ts | 2 +-\n src/ui/new.ts | 1 +\n 2 files changed, 2 insertions(+), 1 deletion(-)\n";
    assert_ended(&shown, 0, stat, "");
    drop(port);
    team.stop();
    stage
}

#[test]
fn a_diff_of_an_agent_is_what_git_diff_shows_of_it() {
    let stage = written();
    let shop = stage.path("shop");
    let all = stage.run(&["diff"]);
    assert_eq!((all.code, all.stderr.as_str()), (0, ""));
    git(&shop, &["add", "-N", "src"], "");
    assert_eq!(all.stdout, git(&shop, &["diff", "--no-color"], ""));
    let of = |args: &[&str]| stage.run(&[&["diff"], args].concat()).stdout;
    assert_eq!(of(&["api"]), git(&shop, &["diff", "--no-color", "src/api"], ""));
    assert_eq!(
        of(&["ui", "--turn", "0"]),
        git(&shop, &["diff", "--no-color", "src/ui/app.ts"], "")
    );
    assert_eq!(of(&["--session", "ui/ui-s1", "--turn", "1"]), of(&["ui", "--turn", "1"]));
    let event = stage.run(&["history", "ui", "--type", "file", "--json"]).stdout;
    let event: Value = serde_json::from_str(event.lines().next().unwrap()).unwrap();
    let id = event["id"].as_str().unwrap();
    assert_eq!(of(&["ui", "--since", id]), of(&["ui", "--turn", "1"]));

    git(&shop, &["reset", "-q"], "");
    git(&shop, &["checkout", "-q", "--", "src/ui/app.ts", "src/api/cart.rs"], "");
    fs::remove_file(shop.join("src/ui/new.ts")).unwrap();
    git(&shop, &["apply", "-"], &of(&["ui"]));
    assert_eq!(stage.read("shop/src/ui/app.ts"), "margins");
    assert_eq!(stage.read("shop/src/ui/new.ts"), "footer");
    assert_eq!(stage.read("shop/src/api/cart.rs"), "api\n");
}

#[test]
fn a_diff_as_json_has_each_file_with_its_patch() {
    let stage = written();
    let json = |args: &[&str]| {
        let ended = stage.run(&[&["diff", "--json"], args].concat());
        assert_eq!((ended.code, ended.stderr.as_str(), ended.stdout.lines().count()), (0, "", 1));
        serde_json::from_str::<Value>(&ended.stdout).unwrap()
    };
    let all = json(&["ui"]);
    let files = all["files"].as_array().unwrap();
    let facts: Vec<_> =
        files.iter().map(|it| (&it["path"], &it["added"], &it["removed"])).collect();
    let (app, new) = (json!("src/ui/app.ts"), json!("src/ui/new.ts"));
    assert_eq!(facts, [(&app, &json!(1), &json!(1)), (&new, &json!(1), &json!(0))]);
    let patches: String = files.iter().map(|it| it["patch"].as_str().unwrap()).collect();
    assert_eq!(patches, stage.run(&["diff", "ui"]).stdout);
    assert_eq!(
        (&all["not_in_patch"], &all["outside"], &all["ignored"]),
        (&json!([]), &json!(0), &json!(0))
    );
    let counted = json(&["--stat"]);
    assert_eq!(counted["files"].as_array().unwrap().len(), 3);
    assert!(counted["files"].as_array().unwrap().iter().all(|it| it["patch"].is_null()));
    // What is wrong is told as without it, and nothing stands for an object.
    let wrong = stage.run(&["diff", "nobody", "--json"]);
    assert!(wrong.code == 1 && wrong.stdout.is_empty(), "{wrong:?}");
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let stage = written();
    for (args, why) in [
        (&["diff", "nobody"][..], "there is no agent `nobody` in the journal; there are: api, ui"),
        (&["diff", "ui", "--turn", "9"], "there is no turn 9 in the session"),
        (
            &["diff", "--turn", "0"],
            "which agent's turn 0? Name the agent, or a session; there are: api, ui",
        ),
        (&["diff", "--session", "x"], "there is no session `x`; the last ones are: "),
        (&["diff", "--since", "ffff"], "there is no event `ffff`"),
        (&["diff", "--team", "none"], "there is no journal at "),
        (&["blame", "src/ui/none.ts"], "there is no file "),
        (&["blame", "src"], " is no file with lines"),
    ] {
        let ended = stage.run(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{args:?} {ended:?}");
        assert!(ended.stderr.contains(why), "{args:?} {}", ended.stderr);
    }
}

#[test]
fn blame_names_the_prompt_that_each_line_came_from() {
    let stage = written();
    stage.file("shop/src/ui/app.ts", "person\nmargins");
    let shown = stage.run(&["blame", "src/ui/app.ts"]);
    let lines: Vec<_> = shown.stdout.lines().collect();
    assert!(lines[0].starts_with("outside ") && lines[0].ends_with("1) person"), "{shown:?}");
    assert!(lines[1].starts_with("ui       first turn  "), "{shown:?}");
    assert!(lines[1].contains("\"write src/ui/app.ts margins\""), "{shown:?}");

    let json: Value =
        serde_json::from_str(&stage.run(&["blame", "src/ui/app.ts", "--json"]).stdout).unwrap();
    let line = &json["lines"][1];
    assert_eq!(
        (&line["by"], &line["agent_id"], &line["turn"]),
        (&json!("agent"), &json!("ui"), &json!(0))
    );
    assert_eq!((&line["line"], &line["text"]), (&json!(2), &json!("margins")));
    let unheard = stage.run(&["blame", "types/cart.ts"]);
    assert_ended(&unheard, 0, "-  1) types\n", "");

    let trace = stage.run(&["blame", "src/ui/app.ts", "--format", "agent-trace"]).stdout;
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let conversation = &trace["files"][0]["conversations"][0];
    assert_eq!(trace["files"][0]["path"], "src/ui/app.ts");
    assert_eq!(conversation["contributor"], json!({ "type": "ai" }));
    let range = &conversation["ranges"][0];
    assert_eq!((&range["start_line"], &range["end_line"]), (&json!(2), &json!(2)));
    assert_eq!(trace["vcs"], Value::Null, "no commit has these lines");
}

#[test]
fn blame_reads_the_copy_that_a_team_works_on() {
    let stage = Stage::new();
    let team = stage.team("scratch = true", vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/app.ts margins");
    let original = stage.path("shop/src/ui/app.ts");
    assert_ne!(fs::read_to_string(&original).unwrap_or_default(), "margins");
    let original = original.to_str().unwrap();
    for path in ["src/ui/app.ts", original] {
        let shown = stage.run(&["blame", path]);
        assert!(shown.stdout.starts_with("ui  first turn  "), "{shown:?}");
        assert!(shown.stdout.ends_with("1) margins\n"), "{shown:?}");
        assert!(shown.stderr.contains("note: the team works on a copy: "), "{shown:?}");
        assert!(shown.stderr.trim_end().ends_with("/src/ui/app.ts"), "{shown:?}");
    }
    team.stop();
    let shown = stage.run(&["blame", original]);
    assert!(shown.stdout.starts_with("ui  first turn  "), "{shown:?}");
    assert!(shown.stderr.contains("note: the copy that the team worked on is gone"), "{shown:?}");
}

/// The lines of a note before its metadata.
fn attested(note: &str) -> String {
    note.split("---\n").next().unwrap().to_owned()
}

#[test]
fn notes_of_git_ai_follow_the_lines_of_commits() {
    let stage = written();
    let shop = stage.path("shop");
    let note = |revision: &str| {
        stage.run(&["blame", ".", "--format", "git-ai", "--commit", revision]).stdout
    };
    git(&shop, &["add", "src/ui"], "");
    git(&shop, &["commit", "-q", "-m", "ui"], "");
    git(&shop, &["add", "src/api"], "");
    git(&shop, &["commit", "-q", "-m", "api"], "");
    let (ui, api) = (note("HEAD~1"), note("HEAD"));
    let lines: Vec<_> = ui.lines().collect();
    assert_eq!((lines[0], lines[2], lines[4]), ("src/ui/app.ts", "src/ui/new.ts", "---"), "{ui}");
    for line in [lines[1], lines[3]] {
        assert!(line.starts_with("  s_") && line.contains("::t_") && line.ends_with(" 1"), "{ui}");
    }
    assert!(api.starts_with("src/api/cart.rs\n  s_"), "{api}");
    let metadata: Value = serde_json::from_str(ui.split("---\n").nth(1).unwrap()).unwrap();
    assert_eq!(metadata["schema_version"], "authorship/3.0.0");
    let commit = git(&shop, &["rev-parse", "HEAD~1"], "");
    assert_eq!(metadata["base_commit_sha"], commit.trim());
    let session = lines[1].trim().split("::").next().unwrap();
    assert_eq!(metadata["sessions"][session]["agent_id"]["tool"], "eisen-core");

    // The same lines in commits of other names: amended, squashed, and on another base.
    git(&shop, &["commit", "-q", "--amend", "-m", "renamed"], "");
    assert_eq!(attested(&note("HEAD")), attested(&api));
    git(&shop, &["reset", "-q", "--soft", "HEAD~2"], "");
    git(&shop, &["commit", "-q", "-m", "both"], "");
    assert_eq!(attested(&note("HEAD")), attested(&api) + attested(&ui).as_str());
    let both = git(&shop, &["rev-parse", "HEAD"], "");
    git(&shop, &["checkout", "-q", "-b", "other", "HEAD~1"], "");
    stage.file("shop/src/api/order.rs", "first\norder\n");
    git(&shop, &["commit", "-q", "-a", "-m", "base"], "");
    git(&shop, &["cherry-pick", both.trim()], "");
    assert_eq!(attested(&note("HEAD")), attested(&api) + attested(&ui).as_str());
    assert_eq!(attested(&note("HEAD~1")), "");
}
