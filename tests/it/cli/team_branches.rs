//! Agents of a team that work on branches, each in a worktree of its own: `[agents.worktree]`, tasks with a branch, what
//! two branches share, and reviews over the port.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{AgentTable, Lines, Port, Stage, Team, agent, eventually, program, run};

const CODE: &str = "def total():\n    return 1\n\ndef tax():\n    return 2\n";

/// A stage whose workspace is a repository with a commit.
fn repository() -> Stage {
    let stage = Stage::new();
    stage.with_any_memory();
    stage.file("shop/cart.py", CODE);
    stage.file("shop/.gitignore", ".env\n");
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["config", "user.name", "Ann"],
        &["config", "user.email", "ann@example.com"],
        &["add", "-A"],
        &["commit", "-qm", "first"],
    ] {
        git(&stage, "shop", args);
    }
    stage
}

fn git(stage: &Stage, folder: &str, args: &[&str]) -> String {
    let done = program("git").args(args).current_dir(stage.path(folder)).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

fn in_tree(id: &str) -> AgentTable {
    agent(id).zone("**").with("[agents.worktree]\ncopy = [\".env\"]")
}

fn in_shop(stage: &Stage, args: &[&str]) -> crate::harness::Ended {
    run(stage.eisen_core(args).current_dir(stage.path("shop")))
}

fn listed(stage: &Stage, branch: &str) -> Value {
    let all = in_shop(stage, &["branches", "--json"]);
    let all: Vec<Value> = serde_json::from_str(&all.stdout).unwrap_or_else(|_| panic!("{all:?}"));
    all.into_iter().find(|it| it["branch"] == branch).unwrap()
}

fn three(stage: &Stage) -> (Team, Port) {
    let agents = vec![in_tree("ui"), in_tree("api"), agent("main").zone("**")];
    let team = stage.team("[zones]\nsecrets = \"allow\"", agents);
    let port = team.steer_when_ready(&["ui", "api", "main"]);
    (team, port)
}

const UI: &str = "shop.trees/eisen-shop-ui";
const API: &str = "shop.trees/eisen-shop-api";

#[test]
fn each_agent_works_on_its_branch_and_sees_no_others() {
    let stage = repository();
    let (team, mut port) = three(&stage);
    let where_it_is = port.prompt("ui", "run pwd; git branch --show-current; cat .env");
    let tree = stage.path(UI);
    assert_eq!(where_it_is, format!("{}\neisen/shop/ui\nSECRET=1\n", tree.display()));
    port.prompt("ui", "write cart.py changed");
    port.prompt("ui", "run git commit -qam 'change it' && echo more >> src/ui/app.ts");
    assert_eq!(
        git(&stage, "shop", &["log", "--format=%an %s", "-1", "eisen/shop/ui"]),
        "Ann change it"
    );
    assert_eq!(
        (stage.read("shop/cart.py"), git(&stage, "shop", &["status", "--short"])),
        (CODE.to_owned(), String::new())
    );

    // Nobody reads or writes what is another's.
    let others = |path: &Path| format!("run cat {0}; echo mine > {0}", path.display());
    for (id, place) in [("api", UI), ("main", UI), ("ui", "shop"), ("ui", API)] {
        let path = stage.path(place).join("cart.py");
        let said = port.prompt(id, &others(&path));
        assert!(!said.contains("changed") && !said.contains("return"), "{id} {place}: {said}");
    }
    assert_eq!(
        (stage.read(&format!("{UI}/cart.py")), stage.read("shop/cart.py")),
        ("changed".to_owned(), CODE.to_owned())
    );

    // What it did is known with its worktree, and can be taken back.
    let diff = stage.run(&["diff", "ui"]).stdout;
    assert!(
        diff.starts_with(&format!("worktree {}\ndiff --git a/cart.py b/cart.py\n", tree.display())),
        "{diff}"
    );
    let app = tree.join("src/ui/app.ts").display().to_string();
    let blamed = run(stage.eisen_core(&["blame", "src/ui/app.ts"]).current_dir(&tree)).stdout;
    assert!(blamed.lines().last().unwrap().starts_with("ui "), "{blamed}");
    let undone = stage.run(&["undo", "ui"]);
    assert!(undone.stdout.contains(&format!("restored  {app}\n")), "{undone:?}");
    assert_eq!(stage.read(&format!("{UI}/cart.py")), CODE);
    assert_eq!(stage.run(&["redo", "ui"]).code, 0);
    assert_eq!(stage.read(&format!("{UI}/cart.py")), "changed");

    // A team that comes up again goes on where it was.
    assert_eq!(team.stop().code, 0);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "run cat cart.py; git rev-list --count HEAD"), "changed2\n");
    let standing = listed(&stage, "eisen/shop/ui");
    assert_eq!(
        (&standing["ahead"], &standing["owner"], &standing["state"]),
        (&json!(1), &json!("shop/ui"), &json!("ready")),
        "{standing}"
    );
    assert!(standing["task"].as_str().unwrap().starts_with("run pwd"), "{standing}");
}

#[test]
fn what_two_branches_change_is_told_before_any_merge() {
    let stage = repository();
    let (_team, mut port) = three(&stage);
    let each =
        |own: &str| format!("sed -i 's/return 1/return {own}/' cart.py; echo {own} > notes.txt");
    let ui = format!("run {}; echo more >> src/api/order.rs; touch same", each("11"));
    port.prompt("ui", &ui);
    port.prompt("api", "run sed -i 's/return 2/return 22/' cart.py; touch same");
    port.prompt("api", &format!("run {}; rm src/api/order.rs", each("12")));
    // Nobody is prompted for it: both hear of it by their next prompts, once.
    let mut all = Value::Null;
    eventually("three are found", || {
        all = port.call("list_conflicts", &json!({})).unwrap();
        all["conflicts"].as_array().unwrap().len() == 3
    });
    assert_eq!(all["strategy"], Value::Null);
    let of = |path: &str| {
        let mut all = all["conflicts"].as_array().unwrap().iter();
        let found = all.find(|it| it["path"] == path).unwrap();
        assert_eq!((&found["kind"], &found["status"]), (&json!("branches"), &json!("observed")));
        found["message"].as_str().unwrap()
    };
    assert_eq!(
        of("cart.py"),
        "`api` and `ui` both changed `total` in `cart.py`, on the branches eisen/shop/api and eisen/shop/ui"
    );
    assert!(of("notes.txt").contains("the same lines in `notes.txt`"));
    assert!(of("src/api/order.rs").contains("the same lines in"), "removed, and changed");
    for id in ["ui", "api"] {
        port.begin(id, "read cart.py");
        let events = || stage.run(&["history", id, "--type", "message.user", "--json"]).stdout;
        eventually("the sentence is in the prompt", || {
            events().contains("both changed `total` in `cart.py`")
        });
    }
}

#[test]
fn a_task_with_a_branch_gets_a_helper_and_a_worktree() {
    let stage = repository();
    git(&stage, "shop", &["branch", "release"]);
    let team = stage.team("[zones]\ngit = \"commit\"", vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let task =
        "run echo done > src/done.txt; git add src; git commit -qm T; git branch --show-current";
    let given = json!({ "agent": "ui", "task": task, "branch": "feature/t" });
    let given = port.call("delegate_task", &given).unwrap();
    assert_eq!(given["agent"], "ui-h1");
    let ended = json!({ "ids": [given["id"]], "timeout_s": 40 });
    let ended = port.call("wait_for_tasks", &ended).unwrap();
    assert_eq!(ended["tasks"][0]["state"], "done", "{ended}");
    let result = port.call("task_result", &json!({ "id": given["id"] })).unwrap();
    assert!(result.to_string().contains("feature/t"), "{result}");
    assert_eq!(git(&stage, "shop", &["show", "feature/t:src/done.txt"]), "done");
    let standing = listed(&stage, "feature/t");
    assert_eq!((&standing["ahead"], &standing["owner"]), (&json!(1), &json!("shop/ui-h1")));
    // The zone of the agent holds for it, and a person may name any branch.
    for (task, said) in [
        ("run echo x > src/x; git add src; git commit -qm R; echo $?", "0"),
        ("write cart.py theirs", "refused"),
    ] {
        let given = json!({ "agent": "ui", "task": task, "branch": "release" });
        let given = port.call("delegate_task", &given).unwrap();
        port.call("wait_for_tasks", &json!({ "ids": [given["id"]], "timeout_s": 40 })).unwrap();
        let result = port.call("task_result", &json!({ "id": given["id"] })).unwrap();
        assert!(result.to_string().contains(said), "{result}");
        // Until it has left, it has the branch.
        eventually("the helper has left", || {
            let agents = port.call("list_agents", &json!({})).unwrap();
            agents.as_array().unwrap().len() == 1
        });
    }
    assert_eq!(git(&stage, "shop", &["show", "release:src/x"]), "x");

    // An agent may not take a branch that is a person's, by whatever name.
    git(&stage, "shop", &["branch", "mine/shop"]);
    let program = crate::harness::EISEN_CORE;
    let asked = |port: &mut Port, branch: &str| {
        let line = format!(
            "run {program} run --branch {branch} 'run git branch --show-current' 2>&1; true"
        );
        port.prompt("ui", &line)
    };
    for (branch, why) in [
        ("mine/shop", "is not one of this team's"),
        ("release", "is not one of this team's"),
        ("mine/TEAM", "may not have `TEAM` in it"),
        ("main", "is not one of this team's"),
        ("../out", "is no name of a branch"),
    ] {
        let said = asked(&mut port, branch);
        assert!(said.contains(why), "{branch}: {said}");
    }
    let own = asked(&mut port, "new/one");
    assert!(own.contains("new/one\n"), "{own}");
    let mine = git(&stage, "shop", &["rev-parse", "mine/shop"]);
    assert_eq!(mine, git(&stage, "shop", &["rev-parse", "main"]));
    assert_eq!(team.stop().code, 0);

    // Nor may it commit by a helper where it may not itself.
    stage.configure("", vec![agent("ui").zone("src/**")]);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let said = asked(&mut port, "new/two");
    assert!(said.contains("a helper with a branch commits, and you may not"), "{said}");
}

#[test]
fn a_branch_is_reviewed_over_the_port() {
    let stage = repository();
    let (team, mut port) = three(&stage);
    port.prompt("ui", "run sed -i 's/return 1/return 11/' cart.py; echo new > new.txt");
    let branch = "eisen/shop/ui";
    let review = port.call("get_review", &json!({ "branch": branch })).unwrap();
    assert_eq!((&review["agent_id"], &review["into"]), (&json!("ui"), &json!("main")));
    let hunk = &review["files"][0]["hunks"][0];
    assert_eq!(review["files"][0]["path"], "cart.py");
    assert!(hunk["by"][0]["prompt"].as_str().unwrap().starts_with("run sed"), "{hunk}");
    let accepted = json!({ "branch": branch, "hunk": hunk["id"], "decision": "accept" });
    let accepted = port.call("review_hunk", &accepted).unwrap();
    assert_eq!(accepted["files"][0]["hunks"][0]["is_accepted"], true);
    let reverted = json!({ "branch": branch, "hunk": "new.txt", "decision": "revert" });
    let reverted = port.call("review_hunk", &reverted).unwrap();
    assert_eq!(reverted["files"].as_array().unwrap().len(), 1);
    assert!(!stage.has(format!("{UI}/new.txt")));
    let comment = json!({ "branch": branch, "hunk": hunk["id"], "text": "Why eleven?" });
    assert_eq!(port.call("comment", &comment).unwrap()["unsent"], 1);
    let sent = port.call("comment", &json!({ "branch": branch, "send": true })).unwrap();
    assert_eq!(sent["unsent"], 0);
    let prompts = || stage.run(&["history", "ui", "--type", "message.user", "--json"]).stdout;
    eventually("the agent has the comment", || prompts().contains("Why eleven?"));
    for (params, code) in [
        (json!({ "branch": "none" }), 404),
        (json!({ "branch": branch, "hunk": "zz", "text": "x" }), 404),
        (json!({ "branch": branch, "text": "x" }), 400),
    ] {
        let method = if params.get("text").is_some() { "comment" } else { "get_review" };
        assert_eq!(port.call(method, &params).unwrap_err()["code"], code, "{params}");
    }
    let mut stranger = team.watch();
    let refused = stranger.call("get_review", &json!({ "branch": branch })).unwrap_err();
    assert_eq!(refused["code"], 401);
}

#[test]
fn branches_are_listed_checked_and_merged_over_the_port() {
    let stage = repository();
    let checks = "checks = [\"echo looking; grep -q 'return 11' cart.py\"]";
    stage.file("home/config.toml", &format!("[runs]\nmin_free_mb = 0\n[worktree]\n{checks}\n"));
    let (_team, mut port) = three(&stage);
    let branch = "eisen/shop/ui";
    let row = |port: &mut Port| {
        let all = port.call("list_branches", &json!({})).unwrap();
        assert_eq!((all["branches"].as_array().unwrap().len(), &all["omitted"]), (2, &json!(0)));
        all["branches"].as_array().unwrap().iter().find(|it| it["branch"] == branch).cloned()
    };
    port.prompt("ui", "run sed -i 's/return 1/return 9/' cart.py; git commit -qam nine");
    port.prompt("api", "run sed -i 's/return 1/return 12/' cart.py; git commit -qam twelve");
    let listed = row(&mut port).unwrap();
    assert_eq!(
        (&listed["state"], &listed["agent_id"], &listed["ahead"], &listed["conflicts"]),
        (
            &json!("ready"),
            &json!("ui"),
            &json!(1),
            &json!([{ "with": "eisen/shop/api", "files": ["cart.py"] }])
        ),
        "{listed}"
    );
    assert!(listed["task"].as_str().unwrap().starts_with("run sed"), "{listed}");
    // Its agent works, which is of now whenever the list was made.
    port.begin_waiting("ui");
    assert_eq!(row(&mut port).unwrap()["state"], "working");
    port.call("cancel", &json!({ "agent_id": "ui" })).unwrap();
    eventually("it rests", || row(&mut port).unwrap()["state"] == "ready");

    // A check that fails holds the merge up; meanwhile no other begins.
    let main = git(&stage, "shop", &["rev-parse", "main"]);
    let checked = port.call("check_branch", &json!({ "branch": branch })).unwrap();
    assert_eq!((&checked["passed"], &checked["is_clean"]), (&json!(false), &json!(true)));
    assert!(checked["output"].as_str().unwrap().ends_with("cart.py\nlooking\n"), "{checked}");
    assert!(checked["reason"].as_str().unwrap().contains("status 1"), "{checked}");
    assert_eq!(row(&mut port).unwrap()["checks"]["passed"], false);
    let merge = |port: &mut Port, more: &Value| {
        let mut params = json!({ "branch": branch });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        port.call("merge_branch", &params)
    };
    let first = port.ask("merge_branch", &json!({ "branch": branch }));
    let second = merge(&mut port, &json!({})).unwrap_err();
    assert_eq!(second["code"], 409);
    assert!(second["message"].as_str().unwrap().contains("already"), "{second}");
    let first = port.answer(first).unwrap_err();
    assert_eq!(first["code"], 409);
    assert!(first["message"].as_str().unwrap().contains("nothing was merged"), "{first}");
    assert_eq!(git(&stage, "shop", &["rev-parse", "main"]), main);

    // What is not committed does, too, unless it is to be committed.
    let changed = port.prompt("ui", "run sed -i 's/return 9/return 11/' cart.py; git diff --stat");
    assert!(changed.contains("1 file changed"), "{changed}");
    let refused = merge(&mut port, &json!({})).unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("not committed"), "{refused}");
    // A person looked, and the agent goes on: what nobody saw is not merged.
    let look = json!({ "branch": branch });
    let looked_at = port.call("get_review", &look).unwrap()["tree"].clone();
    port.prompt("ui", "run echo more >> cart.py");
    let how =
        |tree: &Value| json!({ "commit": true, "squash": true, "message": "Eleven", "tree": tree });
    let refused = merge(&mut port, &how(&looked_at)).unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("look again"), "{refused}");
    assert_eq!(git(&stage, UI, &["log", "-1", "--format=%s"]), "nine", "nothing was committed");
    assert_eq!(git(&stage, "shop", &["rev-parse", "main"]), main);
    let seen = port.call("get_review", &look).unwrap()["tree"].clone();
    let merged = merge(&mut port, &how(&seen)).unwrap();
    assert_eq!(
        (&merged["into"], &merged["old"], &merged["checks"]),
        (&json!("main"), &json!(main), &json!(1))
    );
    assert_eq!(merged["new"], git(&stage, "shop", &["rev-parse", "main"]));
    assert_eq!(git(&stage, "shop", &["log", "--format=%s"]), "Eleven\nfirst");
    assert_eq!(row(&mut port).unwrap()["state"], "merged");

    // The other one conflicts with it now, which is known without a merge.
    let api = json!({ "branch": "eisen/shop/api", "dry_run": true });
    let tried = port.call("merge_branch", &api).unwrap();
    assert_eq!((&tried["conflicts"], &tried["new"]), (&json!(["cart.py"]), &Value::Null));
    let refused = port.call("merge_branch", &json!({ "branch": "eisen/shop/api" })).unwrap_err();
    assert_eq!(refused["code"], 409);
    assert!(refused["message"].as_str().unwrap().contains("conflict in cart.py"), "{refused}");
    assert_eq!(port.call("merge_branch", &json!({ "branch": "none" })).unwrap_err()["code"], 404);
}

#[test]
fn a_connection_without_the_token_learns_no_branches_and_merges_none() {
    let stage = repository();
    let (team, mut port) = three(&stage);
    port.prompt("ui", "run sed -i 's/return 1/return 9/' cart.py; git commit -qam nine");
    let main = git(&stage, "shop", &["rev-parse", "main"]);
    let mut stranger = team.watch();
    // Nor is pushed what is no branch of a task.
    for branch in ["main", "*", "heads/eisen/shop/ui"] {
        let refused = port.call("open_pull_request", &json!({ "branch": branch })).unwrap_err();
        assert_eq!(refused["code"], 404, "{branch}");
    }
    for method in ["list_branches", "merge_branch", "check_branch", "open_pull_request"] {
        let params = json!({ "branch": "eisen/shop/ui" });
        let refused = stranger.call(method, &params).unwrap_err();
        assert_eq!(refused["code"], 401, "{method}");
    }
    assert_eq!(git(&stage, "shop", &["rev-parse", "main"]), main);
}

#[test]
fn a_conflict_is_a_task_of_the_agent_that_has_the_branch() {
    let stage = repository();
    let (_team, mut port) = three(&stage);
    port.prompt("ui", "run sed -i 's/return 1/return 11/' cart.py; git commit -qam eleven");
    std::fs::write(stage.path("shop/cart.py"), CODE.replace("return 1", "return 100")).unwrap();
    git(&stage, "shop", &["commit", "-qam", "hundred"]);
    let merge = |args: &[&str]| {
        let args = [&["merge", "eisen/shop/ui"], args].concat();
        run(stage.eisen_core(&args).current_dir(stage.path("shop")))
    };
    let ended = merge(&["--send"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("merge `eisen/shop/ui` again when task "), "{ended:?}");
    let prompts = || stage.run(&["history", "ui", "--type", "message.user", "--json"]).stdout;
    eventually("the agent has both sides", || {
        let prompts = prompts();
        prompts.contains("return 100")
            && prompts.contains("return 11")
            && prompts.contains("hundred")
    });
    assert!(stage.read(&format!("{UI}/cart.py")).contains("<<<<<<< "));
    let said = port.prompt("ui", "run sed -i '/^[<|>=]\\{7\\}/d; /return 11$/d; /return 1$/d' cart.py; git add cart.py; git commit --no-edit -q; echo $?");
    assert_eq!(said, "0\n", "{}", stage.read(&format!("{UI}/cart.py")));
    assert_eq!(merge(&[]).code, 0);
    assert_eq!(
        git(&stage, "shop", &["show", "main:cart.py"]),
        CODE.replace("return 1", "return 100").trim_end()
    );
}

#[test]
fn what_waits_for_a_person_is_shown_with_its_branch() {
    let stage = repository();
    let agents = vec![agent("ui").zone("src/**").with("[agents.worktree]")];
    let team = stage.team("[orchestrator]\non_block = \"hold\"", agents);
    let mut port = team.steer_when_ready(&["ui"]);
    // git looks at no file that the zone closes.
    let line = "run echo y >> src/ui/app.ts; git commit -qam z; echo $?";
    assert_eq!(port.prompt("ui", line), "0\n");
    port.begin("ui", "write cart.py theirs");
    let held = port.blocked("pending");
    assert_eq!(listed(&stage, "eisen/shop/ui")["state"], "needs_you");
    port.resolve(&held, &json!({ "decision": "allow" })).unwrap();
    eventually("it rests", || listed(&stage, "eisen/shop/ui")["state"] == "ready");
    assert_eq!(
        (stage.read(&format!("{UI}/cart.py")), stage.read("shop/cart.py")),
        ("theirs".to_owned(), CODE.to_owned())
    );
}

#[test]
fn what_can_not_be_made_starts_nobody() {
    let stage = repository();
    let refused = |keys: &str, agents: Vec<AgentTable>| {
        stage.configure(keys, agents);
        let ended = stage.run(&["up"]);
        assert_ne!(ended.code, 0, "{ended:?}");
        ended.stderr
    };
    let twice = || in_tree("ui").with("branch = \"one\"");
    let said = refused(
        "",
        vec![twice(), agent("api").zone("**").with("[agents.worktree]\nbranch = \"one\"")],
    );
    assert!(said.contains("agents `ui` and `api` have the branch `one`"), "{said}");
    let said = refused("scratch = true", vec![in_tree("ui")]);
    assert!(said.contains("an agent of a team with `scratch = true` has no worktree"), "{said}");
    let said =
        refused("", vec![agent("ui").zone("**").with("[agents.worktree]\nbranch = \"main\"")]);
    assert!(
        said.contains("the worktree of agent `ui`: the branch `main` is checked out in"),
        "{said}"
    );
    let said = refused("", vec![in_tree("ui").with("setup = \"echo no; exit 3\"")]);
    assert!(said.contains("ui: no\n"), "{said}");
    assert!(
        said.contains("the worktree of agent `ui`") && said.contains("`echo no; exit 3`"),
        "{said}"
    );
    std::fs::remove_dir_all(stage.path("shop/.git")).unwrap();
    let said = refused("", vec![in_tree("ui")]);
    assert!(said.contains("is in no git repository"), "{said}");
}

#[test]
fn a_zone_of_folders_can_have_a_sparse_worktree() {
    let stage = repository();
    let sparse = "[agents.worktree]\nsparse = true";
    let team = stage.team("", vec![agent("ui").zone("src/ui/**").with(sparse)]);
    let mut port = team.steer_when_ready(&["ui"]);
    let files = port
        .prompt("ui", "run git ls-files -t | sort | head -20; find . -name '*.*' -type f | sort");
    assert!(files.contains("S src/api/cart.rs") && files.contains("./src/ui/app.ts"), "{files}");
    assert!(!files.contains("./src/api/cart.rs"), "{files}");
    port.prompt("ui", "run echo more >> src/ui/app.ts && git commit -qam more");
    let names = git(&stage, "shop", &["ls-tree", "-r", "--name-only", "eisen/shop/ui"]);
    assert!(names.contains("src/api/cart.rs"), "{names}");
}

#[test]
fn a_detached_team_shows_how_its_worktrees_are_made_while_they_are_made() {
    let stage = repository();
    let setup = "setup = \"echo preparing; until [ -e go ]; do sleep 0.02; done\"";
    stage.configure("", vec![in_tree("ui").with(setup)]);
    let mut up = stage.eisen_core(&["up", "-d"]);
    let mut up = up.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = Lines::of(up.stderr.take().unwrap());
    lines.until("ui: preparing");
    stage.file(&format!("{UI}/go"), "");
    assert!(up.wait().unwrap().success());
    assert_eq!(stage.run(&["down"]).code, 0);
}
