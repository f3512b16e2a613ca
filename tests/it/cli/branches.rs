//! Branches of tasks: a run in a worktree of its own, and how that lands, is cleaned, and comes back.

mod kills;
mod lfs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{EISEN_CORE, Ended, Stage, program, run};

const SCRIPT: &str = r#"
[agent]
name = "one"
[[on]]
prompt = "fix"
steps = [
  { run = "echo fixed > src/cart.js && git commit -qam 'fix the cart'", required = true },
  { disk_write = "notes.txt", content = "not committed" },
  { say = "Fixed." },
]
[[on]]
prompt = "where"
steps = [{ run = "pwd; git branch --show-current; echo $EISEN_PORT_BASE $COMPOSE_PROJECT_NAME" }, { say = "{last}" }]
[[on]]
prompt = "again"
steps = [{ run = "git rev-list --count HEAD; cat .env ready.txt" }, { say = "{last}" }]
[[on]]
regex = "your branch `idle`"
steps = [{ say = "Later." }]
[[on]]
regex = "your branch `marked`"
steps = [{ run = "git commit -qam marks" }, { say = "Committed." }]
[[on]]
regex = "your branch `b`.*is begun in your worktree"
steps = [
  { run = "grep -c '^<<<<<<< \\|^>>>>>>> ' src/cart.js; printf 'one and two\n' > src/cart.js" },
  { say = "{last}" },
]
[[on]]
regex = "^do (?<line>.*)$"
steps = [{ run = "{line}; true" }, { say = "{last}" }]
"#;

/// A stage whose workspace is a git repository with a commit, and an agent.
fn repository() -> Stage {
    let stage = Stage::new();
    stage.with_any_memory();
    stage.file("one.toml", SCRIPT);
    stage.file("shop/src/cart.js", "broken\n");
    stage.file("shop/.gitignore", ".env\nnode_modules/\n");
    git(&stage, &["init", "-q", "-b", "main"]);
    git(&stage, &["config", "user.name", "Ann"]);
    git(&stage, &["config", "user.email", "ann@example.com"]);
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "-qm", "first"]);
    stage
}

fn git_in(folder: &Path, args: &[&str]) -> String {
    let done = program("git").args(args).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

fn git(stage: &Stage, args: &[&str]) -> String {
    git_in(&stage.path("shop"), args)
}

fn command(stage: &Stage, args: &[&str]) -> Command {
    let mut command = stage.eisen_core(args);
    command.current_dir(stage.path("shop/src"));
    command
}

fn eisen(stage: &Stage, args: &[&str]) -> Ended {
    run(&mut command(stage, args))
}

fn run_args(stage: &Stage, args: &[&str]) -> Vec<String> {
    let script = stage.path("one.toml").display().to_string();
    let agent = ["--", EISEN_CORE, "dev", "scripted-agent", &script];
    [&["run"], args, &agent].concat().into_iter().map(str::to_owned).collect()
}

fn run_agent(stage: &Stage, args: &[&str]) -> Ended {
    let args = run_args(stage, args);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    eisen(stage, &args)
}

/// The answer of a run on a branch.
fn said(stage: &Stage, branch: &str, prompt: &str) -> String {
    let ended = run_agent(stage, &["--branch", branch, prompt]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.stdout
}

fn listed(stage: &Stage) -> Vec<Value> {
    let ended = eisen(stage, &["branches", "--json"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn tree(stage: &Stage, name: &str) -> PathBuf {
    stage.path("shop.trees").join(name)
}

#[test]
fn a_run_works_on_a_branch_that_lands_and_is_taken_back() {
    let stage = repository();
    let ended = run_agent(&stage, &["--branch", "fix/cart", "fix"]);
    assert_eq!((ended.code, &*ended.stdout), (0, "Fixed.\n"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("branch fix/cart: 1 commit, 1 file not committed"),
        "{}",
        ended.stderr
    );
    assert_eq!(git(&stage, &["status", "--porcelain"]), "", "the main worktree is as it was");
    let branch = &listed(&stage)[0];
    assert_eq!((&branch["branch"], &branch["state"]), (&"fix/cart".into(), &"ready".into()));
    assert_eq!((&branch["ahead"], &branch["uncommitted"]), (&1.into(), &1.into()));

    let refused = eisen(&stage, &["merge", "fix/cart"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("1 file is not committed"), "{}", refused.stderr);
    let merged = eisen(&stage, &["merge", "fix/cart", "--commit"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    assert!(merged.stdout.starts_with("merged fix/cart into main"), "{}", merged.stdout);
    assert_eq!(fs::read_to_string(stage.path("shop/src/cart.js")).unwrap(), "fixed\n");
    assert_eq!(fs::read_to_string(stage.path("shop/notes.txt")).unwrap(), "not committed");
    assert_eq!(git(&stage, &["status", "--porcelain"]), "");
    let text = git(&stage, &["log", "-1", "--format=%B"]);
    assert!(text.ends_with("Eisen-Agent: eisen-core\nEisen-Task: fix"), "{text}");
    assert_eq!(listed(&stage)[0]["state"], "merged");

    let back = eisen(&stage, &["merge", "--undo", "fix/cart"]);
    assert_eq!(back.code, 0, "{}", back.stderr);
    assert_eq!(fs::read_to_string(stage.path("shop/src/cart.js")).unwrap(), "broken\n");
    assert_eq!(git(&stage, &["status", "--porcelain"]), "");
    let squashed = eisen(&stage, &["merge", "fix/cart", "--squash", "--rm", "-m", "Fix it"]);
    assert_eq!(squashed.code, 0, "{}", squashed.stderr);
    assert!(!tree(&stage, "fix-cart").exists());
    assert_eq!(git(&stage, &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(git(&stage, &["log", "--format=%s"]), "Fix it\nfirst");
}

#[test]
fn a_branch_goes_on_in_its_worktree_and_one_without_a_name_gets_one() {
    let stage = repository();
    let where_to = said(&stage, "a", "where");
    let place = tree(&stage, "a").canonicalize().unwrap();
    assert_eq!(where_to, format!("{}\na\n20000 shop-a\n", place.display()));
    assert!(said(&stage, "b", "where").ends_with("b\n20020 shop-b\n"));
    said(&stage, "a", "fix");
    assert_eq!(said(&stage, "a", "do git rev-list --count HEAD"), "2\n");
    let stopped = run_agent(&stage, &["--branch", "a", "do git rebase -x false main"]);
    assert!(stopped.stderr.contains("is in the middle of a rebase: end it"), "{}", stopped.stderr);
    assert!(!stopped.stderr.contains("merge a"), "{}", stopped.stderr);
    let ended = run_agent(&stage, &["--worktree", "where is the cart?"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("branch eisen/where-cart in "), "{}", ended.stderr);
    for (args, why) in [
        (&["--branch", "main", "where"][..], "`main` is checked out in"),
        (&["--branch", "x", "--base", "nothing", "where"], "no commit `nothing`"),
        (&["--base", "main", "where"], "name it by --branch"),
    ] {
        let refused = run_agent(&stage, args);
        assert_eq!(refused.code, 2, "{args:?}");
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}

#[test]
fn a_worktree_is_made_ready_and_a_merge_waits_for_its_checks() {
    let stage = repository();
    stage.file("shop/.env", "KEY=1\n");
    stage.file("shop/.worktreeinclude", ".env\n");
    let configure = |setup: &str, check: &str| {
        let text = format!("setup = \"{setup}\"\nchecks = [\"{check}\"]\n");
        stage.file("home/config.toml", &format!("[runs]\nmin_free_mb = 0\n[worktree]\n{text}"));
    };
    configure("echo preparing; exit 3", "true");
    let failed = run_agent(&stage, &["--branch", "fix", "again"]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    for part in [
        "preparing",
        "the worktree is not ready",
        "exited with status 3; its output is in",
        "setup.log",
    ] {
        assert!(failed.stderr.contains(part), "{part}: {}", failed.stderr);
    }
    configure("echo yes > ready.txt", "grep -q fixed src/cart.js");
    let answer = said(&stage, "fix", "do cat .env ready.txt");
    assert_eq!(answer, "KEY=1\nyes\n");
    eisen(&stage, &["merge", "fix", "--commit"]);
    let refused = eisen(&stage, &["merge", "fix"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("nothing was merged"), "{}", refused.stderr);
    assert_eq!(git(&stage, &["log", "--format=%s", "main"]), "first");
    said(&stage, "fix", "fix");
    let merged = eisen(&stage, &["merge", "fix", "--commit"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    assert!(merged.stdout.contains("1 check passed"), "{}", merged.stdout);
    // The worktree of the checks is gone, and so is its branch.
    assert_eq!(git(&stage, &["worktree", "list"]).lines().count(), 2);
    assert_eq!(listed(&stage).len(), 1);
}

#[test]
fn an_agent_in_a_worktree_writes_its_own_part_of_the_repository() {
    let stage = repository();
    stage.file("shop/secret.txt", "CANARY\n");
    said(&stage, "other", "fix");
    let try_out = |line: &str| said(&stage, "fix", &format!("do {line}"));
    let read = try_out("cat ../../shop/secret.txt");
    assert!(read.contains("Permission denied") && !read.contains("CANARY"), "{read}");
    git(&stage, &["branch", "spare"]);
    let tips = git(&stage, &["for-each-ref"]);
    for line in [
        "echo x >> src/cart.js; git stash; git checkout -q src/cart.js",
        "git branch mine",
        "git branch -m renamed",
        "git tag v1",
        "git update-ref refs/heads/main HEAD",
        "git update-ref refs/heads/other HEAD",
        "git pack-refs --all",
        "git gc",
        "git worktree add ../mine",
        "git config user.name Mallory",
        "echo x > ../../shop/src/cart.js",
        "echo x > ../other/src/cart.js",
        "cat ../other/notes.txt",
        "ln ../../shop/secret.txt here",
        "echo /tmp > $(git rev-parse --git-dir)/commondir",
    ] {
        let answer = try_out(line);
        let is_refused = ["ermission denied", "annot", "failed", "ot permitted", "unable"];
        assert!(is_refused.iter().any(|word| answer.contains(word)), "{line}: {answer}");
        assert!(!answer.contains("CANARY") && !answer.contains("not committed"), "{line}");
        assert_eq!(git(&stage, &["for-each-ref"]), tips, "{line}");
    }
    // Beside git's own words stands what to do, through a pipe, a terminal and a file.
    let stash = "all worktrees of the repository share its stash: `git commit -m wip` keeps work on the branch";
    let refs = "share its refs: a task writes its own branch `fix` alone";
    let change = "echo x >> src/cart.js";
    let back = "git checkout -q src/cart.js";
    for (line, sentence) in [
        (format!("{change}; git stash; {back}"), stash),
        (format!("{change}; script -qec 'git stash' /dev/null; {back}"), stash),
        (format!("{change}; git stash 2> said; cat said; rm said; {back}"), stash),
        ("git branch -m renamed".to_owned(), refs),
        ("git branch -D spare".to_owned(), refs),
        ("git tag v1".to_owned(), refs),
        ("git pack-refs --all".to_owned(), refs),
        ("git gc".to_owned(), "share its objects: a person packs them"),
        ("git config user.name Mallory".to_owned(), "share its configuration: `git -c"),
    ] {
        let answer = try_out(&line);
        assert!(answer.contains(sentence), "{line}: {answer}");
        // Who is told is not told of what git may do.
        assert!(!try_out("git status").contains("eisen-core:"));
    }
    assert_eq!(git(&stage, &["for-each-ref"]), tips);
    assert_eq!(fs::read_to_string(stage.path("shop/src/cart.js")).unwrap(), "broken\n");
    assert_eq!(fs::read_to_string(tree(&stage, "other").join("src/cart.js")).unwrap(), "fixed\n");
    let line = "git commit -q --allow-empty -m one; git commit -q --allow-empty -m two; \
                GIT_SEQUENCE_EDITOR=true git rebase -q -i HEAD~2 && git log --format=%s";
    assert_eq!(try_out(line), "two\none\nfirst\n");
    git(&stage, &["fsck", "--strict"]);
}

#[test]
fn branches_that_change_the_same_lines_are_named_before_any_merge() {
    let stage = repository();
    for (branch, line) in [("a", "one"), ("b", "two"), ("c", "three")] {
        let path = if branch == "c" { "src/other.js" } else { "src/cart.js" };
        let line =
            format!("do echo {line} > {path}; git add -A; git commit -qm {branch}; echo done");
        said(&stage, branch, &line);
    }
    let all = listed(&stage);
    let with = |at: usize| all[at]["conflicts"][0]["with"].clone();
    assert_eq!((with(0), with(1), with(2)), ("b".into(), "a".into(), Value::Null));
    assert_eq!(all[0]["conflicts"][0]["files"][0], "src/cart.js");
    let ended = eisen(&stage, &["merge", "--all"]);
    assert_eq!(ended.code, 1, "{}", ended.stdout);
    // The one without a conflict first, then in the order in which they were made.
    let merged: Vec<_> = ended.stdout.lines().map(|line| &line[..8]).collect();
    assert_eq!(merged, ["merged c", "merged a"]);
    assert!(ended.stderr.contains("`b` and `main` conflict in src/cart.js"), "{}", ended.stderr);
    assert_eq!(git(&stage, &["status", "--porcelain"]), "");
}

#[test]
fn a_conflict_is_settled_by_the_agent_of_its_branch() {
    let stage = repository();
    for (branch, line) in [("a", "one"), ("b", "two"), ("idle", "three")] {
        said(
            &stage,
            branch,
            &format!("do echo {line} > src/cart.js; git commit -qam {branch}; echo done"),
        );
    }
    eisen(&stage, &["merge", "a"]);
    // It has both sides, and leaves the commit to the person.
    let ended = eisen(&stage, &["merge", "b", "--send"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("`b` and `main` conflict in src/cart.js"));
    assert!(
        ended.stdout.starts_with("2\n") && ended.stdout.contains("\nmerged b into main ("),
        "{}",
        ended.stdout
    );
    assert_eq!(git(&stage, &["show", "main:src/cart.js"]), "one and two");
    assert_eq!(git(&stage, &["log", "-1", "--format=%s", "b"]), "Merge branch 'main' into b");

    // Marks are neither committed nor merged, and the merge waits.
    let ended = eisen(&stage, &["merge", "idle", "--send"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("not settled: src/cart.js. Edit and `git add` them in "),
        "{}",
        ended.stderr
    );
    let ended = eisen(&stage, &["merge", "idle", "--commit"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("not settled: src/cart.js"), "{}", ended.stderr);
    let ended = eisen(&stage, &["merge", "idle"]);
    assert!(
        ended.stderr.contains("a merge of `main` into `idle` is under way"),
        "{}",
        ended.stderr
    );
    fs::write(tree(&stage, "idle").join("src/cart.js"), "all three\n").unwrap();
    assert_eq!(eisen(&stage, &["merge", "idle", "--commit"]).code, 0);
    assert_eq!(git(&stage, &["show", "main:src/cart.js"]), "all three");
    assert_eq!(git(&stage, &["status", "--porcelain"]), "");
}

#[test]
fn a_conflict_that_nobody_settled_is_not_merged() {
    let stage = repository();
    fs::write(stage.path("shop/src/icon"), b"\0 first").unwrap();
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "-qm", "icon"]);
    // A binary file that both change, and a file that one changes and the other removes: git makes no marks.
    said(
        &stage,
        "idle",
        "do printf '\\0 theirs' > src/icon; echo more >> src/cart.js; git commit -qam x; echo done",
    );
    fs::write(stage.path("shop/src/icon"), b"\0 ours").unwrap();
    fs::remove_file(stage.path("shop/src/cart.js")).unwrap();
    git(&stage, &["commit", "-qam", "ours"]);
    let before = git(&stage, &["rev-parse", "main"]);
    for args in [&["merge", "idle", "--send"][..], &["merge", "idle", "--commit"]] {
        let ended = eisen(&stage, args);
        assert_eq!(ended.code, 1, "{}", ended.stdout);
        assert!(ended.stderr.contains("not settled: src/cart.js, src/icon."), "{}", ended.stderr);
    }
    assert_eq!(git(&stage, &["rev-parse", "main"]), before);
    let place = tree(&stage, "idle");
    git_in(&place, &["rm", "-q", "src/cart.js"]);
    git_in(&place, &["add", "src/icon"]);
    let ended = eisen(&stage, &["merge", "idle", "--commit"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(fs::read(stage.path("shop/src/icon")).unwrap(), b"\0 theirs");

    // Marks that an agent commits do not land, and text about marks does.
    said(
        &stage,
        "b",
        "do echo two > src/a.js; printf '<<<<<<< HEAD\\n>>>>>>> x\\n' > src/doc; git add -A; git commit -qm b; echo done",
    );
    assert_eq!(eisen(&stage, &["merge", "b"]).code, 0);
    said(&stage, "marked", "do echo three > src/a.js; git commit -qam c; echo done");
    fs::write(stage.path("shop/src/a.js"), "four\n").unwrap();
    git(&stage, &["commit", "-qam", "four"]);
    let ended = eisen(&stage, &["merge", "marked", "--send"]);
    assert!(
        ended.stderr.contains("`marked` has conflict markers committed, in src/a.js"),
        "{}",
        ended.stderr
    );
    assert_eq!(git(&stage, &["show", "main:src/a.js"]), "four");
}

#[test]
fn a_worktree_that_was_moved_or_removed_by_hand_is_found_or_made_again() {
    let stage = repository();
    for branch in ["moved", "gone"] {
        said(
            &stage,
            branch,
            &format!(
                "do echo {branch} > src/{branch}; git add -A; git commit -qm {branch}; echo done"
            ),
        );
    }
    let elsewhere = stage.path("elsewhere");
    let place = tree(&stage, "moved");
    git(&stage, &["worktree", "move", place.to_str().unwrap(), elsewhere.to_str().unwrap()]);
    let place = tree(&stage, "gone");
    git(&stage, &["worktree", "remove", "--force", place.to_str().unwrap()]);
    assert!(said(&stage, "moved", "do pwd").contains(elsewhere.to_str().unwrap()));
    assert!(said(&stage, "gone", "do cat src/gone").contains("gone"));
    assert_eq!(eisen(&stage, &["merge", "moved", "gone"]).code, 0);
}

#[test]
fn a_pull_request_is_opened_with_the_persons_own_login() {
    let stage = repository();
    said(&stage, "fix/cart", "fix");
    said(&stage, "fix/cart", "do echo x > ../../shop/src/cart.js");
    let remote = stage.path("remote.git");
    git(&stage, &["init", "-q", "--bare", remote.to_str().unwrap()]);
    git(&stage, &["remote", "add", "origin", remote.to_str().unwrap()]);
    let log = stage.path("gh.log");
    let stub = format!(
        "#!/bin/sh\necho \"$@\" > {log}\ncat >> {log}\necho https://example.com/pull/1\n",
        log = log.display()
    );
    stage.file("bin/gh", &stub);
    let gh = stage.path("bin/gh");
    fs::set_permissions(&gh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", stage.path("bin").display(), std::env::var("PATH").unwrap());
    let ended = run(command(&stage, &["merge", "--pr", "--commit", "fix/cart"]).env("PATH", path));
    assert_eq!(
        (ended.code, &*ended.stdout),
        (0, "https://example.com/pull/1\n"),
        "{}",
        ended.stderr
    );
    let json = ["merge", "--pr", "--json", "fix/cart"];
    let path = format!("{}:{}", stage.path("bin").display(), std::env::var("PATH").unwrap());
    let printed = run(command(&stage, &json).env("PATH", path)).stdout;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed[0]["link"], "https://example.com/pull/1");
    let said = fs::read_to_string(log).unwrap();
    for part in [
        "pr create --head fix/cart --title fix --body-file - --base main",
        "**Task:** fix",
        "- fix the cart",
        "**Turns:** 2\n\n- `fix`\n- `do echo x",
        "**Checks:** did not run\n",
        "**Refused:** 1 path\n\n- `write src/cart.js of the main worktree`\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(git_in(&remote, &["log", "--format=%s", "fix/cart"]), "fix\nfix the cart\nfirst");
}

#[test]
fn a_person_reviews_hunks_and_the_agent_gets_their_words() {
    let stage = repository();
    let lines: Vec<String> = (1..=40).map(|line| line.to_string()).collect();
    stage.file("shop/src/cart.js", &(lines.join("\n") + "\n"));
    git(&stage, &["commit", "-qam", "forty lines"]);
    let line = "sed -i 's/^5$/five/; s/^30$/thirty/' src/cart.js; echo new > src/new.js; echo done";
    said(&stage, "fix", &format!("do {line}"));
    let review = |args: &[&str]| {
        let ended = eisen(&stage, &[&["review", "fix"], args].concat());
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
        ended
    };
    let json = || serde_json::from_str::<Value>(&review(&["--json"]).stdout).unwrap();
    let first = json();
    let (cart, new) = (&first["files"][0], &first["files"][1]);
    assert_eq!((&cart["path"], &new["status"]), (&"src/cart.js".into(), &"added".into()));
    assert_eq!(cart["hunks"].as_array().unwrap().len(), 2);
    let by = &cart["hunks"][1]["by"][0];
    assert_eq!((&by["agent"], &by["turn"]), (&"agent".into(), &0.into()), "{by}");
    assert!(by["prompt"].as_str().unwrap().starts_with("do sed"), "{by}");
    assert_eq!((&first["round"], &new["hunks"][0]["is_new"]), (&0.into(), &false.into()));

    // The second hunk goes back, the first stays; what was there is kept.
    let thirty = cart["hunks"][1]["id"].as_str().unwrap();
    review(&["--revert", thirty, "--accept", cart["hunks"][0]["id"].as_str().unwrap()]);
    let text = fs::read_to_string(tree(&stage, "fix").join("src/cart.js")).unwrap();
    assert!(text.contains("five") && text.contains("\n30\n"), "{text}");
    let kept = git(&stage, &["for-each-ref", "--format=%(refname)", "refs/eisen/trees/fix"]);
    assert!(git(&stage, &["show", &format!("{kept}:src/cart.js")]).contains("thirty"));

    let id = new["hunks"][0]["id"].as_str().unwrap();
    let sent = review(&["--comment", id, "do echo newer > src/new.js; echo ok", "--send"]);
    assert!(sent.stdout.contains("script has nothing for this prompt"), "{}", sent.stdout);
    fs::write(tree(&stage, "fix").join("src/new.js"), "newer\n").unwrap();
    let second = json();
    let files = second["files"].as_array().unwrap();
    let is_new = |at: usize| files[at]["hunks"][0]["is_new"].clone();
    assert_eq!((is_new(0), is_new(1)), (false.into(), true.into()));
    assert_eq!(files[0]["hunks"][0]["is_accepted"], true);
    for (args, code) in [(&["--revert", "zzzz"][..], 2), (&["--comment", id, " "], 2)] {
        assert_eq!(eisen(&stage, &[&["review", "fix"], args].concat()).code, code, "{args:?}");
    }
    let missing = eisen(&stage, &["review", "nope"]);
    assert!(missing.stderr.contains("there are: fix"), "{}", missing.stderr);
}

#[test]
fn tasks_of_a_batch_work_on_branches_side_by_side() {
    let stage = repository();
    let script = stage.path("one.toml").display().to_string();
    let profile =
        format!("command = [\"{EISEN_CORE}\", \"dev\", \"scripted-agent\", \"{script}\"]");
    let settings = format!("[runs]\nmin_free_mb = 0\n[profiles.one]\n{profile}\n");
    stage.file("home/config.toml", &settings);
    let task = |id: &str, branch: &str| {
        let prompt = format!("do echo {id} >> {id}.txt; git add -A; git commit -qm {id}; echo ok");
        format!("[[tasks]]\nid = {id:?}\nbranch = {branch:?}\nprompt = {prompt:?}\n")
    };
    let tasks = [task("a", "one"), task("b", "two"), task("c", "one")].concat();
    stage.file("tasks.toml", &format!("[defaults]\nprofile = \"one\"\n{tasks}"));
    let file = stage.path("tasks.toml").display().to_string();
    let ended = eisen(&stage, &["runs", "batch", &file]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("a: branch one in "), "{}", ended.stderr);
    assert_eq!(git(&stage, &["log", "--format=%s", "one"]), "c\na\nfirst");
    assert_eq!(git(&stage, &["log", "--format=%s", "two"]), "b\nfirst");
    assert_eq!(git(&stage, &["status", "--porcelain"]), "");
    let again = eisen(&stage, &["runs", "batch", &file]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(git(&stage, &["log", "--format=%s", "one"]), "c\na\nfirst", "done is done");
}
