//! Undo and redo, one case after the other.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_leaves_the_tree_as_it_was_and_redo_as_it_became() {
    let scene = Scene::new().await;
    let name = OsStr::from_bytes(b"sm\xf8r");
    scene
        .doing(None, 0, |root| {
            write(root, "kept", "a person's\r\nno end");
            write(root, "gone", "was here\n");
            write(root, "run.sh", "#!/bin/sh\n");
            mode(root, "run.sh", 0o750);
            fs::create_dir_all(root.join("old/empty")).unwrap();
            mode(root, "old/empty", 0o700);
            symlink("kept", root.join("link")).unwrap();
            write(root, "is-file", "a file\n");
            fs::create_dir(root.join("is-folder")).unwrap();
            write(root, "is-folder/in", "inside\n");
        })
        .await;
    let before = look(&scene.workspace());
    scene
        .doing(Some("ui"), 0, |root| {
            write(root, "kept", "\u{feff}an agent's\n");
            fs::remove_file(root.join("gone")).unwrap();
            mode(root, "run.sh", 0o644);
            fs::remove_dir_all(root.join("old")).unwrap();
            fs::remove_file(root.join("link")).unwrap();
            symlink("gone/away", root.join("link")).unwrap();
            fs::create_dir_all(root.join("new/deep/empty")).unwrap();
            mode(root, "new/deep/empty", 0o500);
            fs::write(root.join("new").join(name), vec![0; 20_000]).unwrap();
            fs::remove_file(root.join("is-file")).unwrap();
            fs::create_dir(root.join("is-file")).unwrap();
            write(root, "is-file/in", "now a folder\n");
            fs::remove_dir_all(root.join("is-folder")).unwrap();
            symlink("nowhere", root.join("is-folder")).unwrap();
        })
        .await;
    let after = look(&scene.workspace());

    let outcome = scene.undo("ui").await.unwrap();
    assert_eq!(outcome.obstacles, []);
    assert_eq!(look(&scene.workspace()), before);
    scene.redo().await.unwrap();
    assert_eq!(look(&scene.workspace()), after);
    scene.undo("ui").await.unwrap();
    assert_eq!(look(&scene.workspace()), before);
    let nothing = scene.undo("ui").await.unwrap();
    assert_eq!((nothing.event_id, nothing.paths), (None, Vec::new()));
    assert!(!scene.folder.path().join("journal.db.undo").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_became_a_symlink_in_a_later_turn_is_no_obstacle() {
    let scene = Scene::new().await;
    scene
        .doing(Some("ui"), 0, |root| {
            fs::create_dir_all(root.join("x/y")).unwrap();
            write(root, "x/y/z", "of ui\n");
        })
        .await;
    scene.doing(Some("ui"), 1, |root| fs::remove_dir_all(root.join("x")).unwrap()).await;
    scene.doing(Some("ui"), 2, |root| symlink("away", root.join("x")).unwrap()).await;
    let after = look(&scene.workspace());
    let outcome = scene.undo("ui").await.unwrap();
    assert_eq!(outcome.obstacles, []);
    assert!(!scene.at("x").is_symlink());
    scene.redo().await.unwrap();
    assert_eq!(look(&scene.workspace()), after);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undone_turn_counts_no_more_and_a_repeated_undo_goes_further_back() {
    let scene = Scene::new().await;
    for turn in 0..3 {
        scene.doing(Some("ui"), turn, |root| write(root, "f", &format!("{turn}\n"))).await;
    }
    let turn =
        |turn| Aim::Agent { agent: "ui".to_owned(), session: None, turn: Some(turn), since: None };
    let content = || fs::read_to_string(scene.at("f")).ok();
    scene.run(turn(2)).await.unwrap();
    assert_eq!(content().as_deref(), Some("1\n"));
    assert_eq!(scene.run(turn(2)).await.unwrap().event_id, None);
    scene.run(turn(1)).await.unwrap();
    assert_eq!(content().as_deref(), Some("0\n"));
    scene.undo("ui").await.unwrap();
    assert_eq!(content(), None);
    for then in ["0\n", "1\n", "2\n"] {
        scene.redo().await.unwrap();
        assert_eq!(content().as_deref(), Some(then));
    }
    let none = scene.redo().await.unwrap_err();
    assert!(none.to_string().contains("no undo"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_changed_since_is_merged_or_nothing_is_touched() {
    let scene = Scene::new().await;
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n{last}\n");
    scene
        .doing(None, 0, |root| {
            write(root, "merges", &lines("first", "last"));
            write(root, "clashes", "old\n");
            write(root, "alone", "old\n");
        })
        .await;
    scene
        .doing(Some("ui"), 0, |root| {
            write(root, "merges", &lines("agent", "last"));
            write(root, "clashes", "agent\n");
            write(root, "alone", "agent\n");
            fs::create_dir(root.join("made")).unwrap();
            write(root, "made/by-agent", "text\n");
        })
        .await;
    // Nobody records what this person does.
    write(&scene.workspace(), "merges", &lines("agent", "person"));
    write(&scene.workspace(), "clashes", "person\n");
    write(&scene.workspace(), "made/by-person", "text\n");
    let before = look(&scene.workspace());

    let refused = scene.undo("ui").await.unwrap_err();
    assert!(refused.to_string().contains("clashes: "), "{refused}");
    assert!(!refused.to_string().contains("merges"), "{refused}");
    assert_eq!(look(&scene.workspace()), before);

    let outcome = scene.force(Scene::aim("ui")).await.unwrap();
    assert_eq!(outcome.staying, ["made"]);
    let read = |path: &str| fs::read_to_string(scene.at(path)).unwrap();
    assert_eq!(read("merges"), lines("first", "person"));
    assert_eq!((read("clashes"), read("alone")), ("old\n".to_owned(), "old\n".to_owned()));
    assert!(scene.at("made/by-person").exists() && !scene.at("made/by-agent").exists());
    scene.redo().await.unwrap();
    assert_eq!(look(&scene.workspace()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_restored_is_named_and_left() {
    let scene = Scene::new().await;
    scene.doing(Some("ui"), 0, |root| write(root, "new", "text\n")).await;
    let place = Place::Agent(AgentId::new("ui"));
    let unstored = json!({
        "hash": "0".repeat(64), "size": 1_u64 << 40, "mode": 0o644, "kind": "file",
        "stored": false,
    });
    let lost = json!({ "path": "lost", "before": unstored, "after": null, "cause": "agent" });
    let denied = json!({ "path": "key", "before": null, "after": null, "denied": true });
    let git = json!({ "path": ".git/index", "before": null, "after": unstored });
    let of = |kind, payload| NewEvent::new(place.clone(), kind, &payload);
    scene
        .journal
        .append_all(vec![
            of(EventType::FILE_DELETE, lost),
            of(EventType::FILE_WRITE, denied),
            of(EventType::FILE_CREATE, git),
        ])
        .await
        .unwrap();
    fs::create_dir(scene.at(".git")).unwrap();
    write(&scene.workspace(), ".git/index", "index");
    let refused = scene.undo("ui").await.unwrap_err();
    let UndoError::InTheWay { obstacles } = refused else { panic!("{refused}") };
    let kinds: Vec<_> = obstacles.iter().map(|it| (it.path(), it.kind)).collect();
    let kind = ObstacleKind::NotRestorable;
    assert!(kinds.contains(&("lost".to_owned(), kind)), "{kinds:?}");
    assert!(kinds.contains(&("key".to_owned(), kind)), "{kinds:?}");
    assert_eq!(kinds.len(), 2, "{kinds:?}");
    assert!(scene.at("new").exists());

    let outcome = scene.force(Scene::aim("ui")).await.unwrap();
    assert_eq!((outcome.obstacles.len(), outcome.of_git), (2, 1));
    assert!(!scene.at("new").exists() && scene.at(".git/index").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_symlink_is_followed_and_no_path_leaves_the_workspace() {
    let scene = Scene::new().await;
    let outside = TempDir::new().unwrap();
    write(outside.path(), "f", "outside\n");
    scene
        .doing(None, 0, |root| {
            fs::create_dir(root.join("folder")).unwrap();
            write(root, "folder/f", "old\n");
        })
        .await;
    scene.doing(Some("ui"), 0, |root| write(root, "folder/f", "outside\n")).await;
    fs::remove_dir_all(scene.at("folder")).unwrap();
    symlink(outside.path(), scene.at("folder")).unwrap();
    let refused = scene.force(Scene::aim("ui")).await.unwrap();
    assert_eq!(refused.obstacles.len(), 1);
    assert_eq!(refused.obstacles[0].kind, ObstacleKind::InTheWay);
    assert_eq!(fs::read_to_string(outside.path().join("f")).unwrap(), "outside\n");

    let escape = json!({
        "path": "../escaped", "after": null, "cause": "agent",
        "before": { "hash": hash_of(b"old\n"), "size": 4, "mode": 0o644, "kind": "file",
            "stored": true },
    });
    let place = Place::Agent(AgentId::new("ui"));
    let escape = NewEvent::new(place, EventType::FILE_DELETE, &escape);
    scene.journal.append(escape).await.unwrap();
    let _ = scene.force(Scene::aim("ui")).await;
    assert!(!scene.folder.path().join("escaped").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_touched_if_the_journal_can_not_be_written() {
    let scene = Scene::new().await;
    scene
        .doing(None, 0, |root| {
            for n in 0..20 {
                write(root, &format!("f{n:02}"), "old\n");
            }
        })
        .await;
    scene
        .doing(Some("ui"), 0, |root| {
            for n in 0..20 {
                write(root, &format!("f{n:02}"), "agent\n");
            }
            write(root, "g", "agent\n");
        })
        .await;
    let before = look(&scene.workspace());
    // The journal is locked by another program for longer than its writer waits.
    let other = rusqlite::Connection::open(scene.folder.path().join("journal.db")).unwrap();
    let plan = scene.undoer.run(UndoRequest {
        aim: Scene::aim("ui"),
        force: false,
        dry_run: true,
        outside: false,
        rewind: None,
    });
    assert_eq!(plan.await.unwrap().paths.len(), 21);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = scene.undo("ui").await.unwrap_err();
    assert!(matches!(refused, UndoError::Journal(_)), "{refused}");
    assert_eq!(look(&scene.workspace()), before);
    other.execute_batch("ROLLBACK").unwrap();
}

/// A running team in which something happens when an undo begins to write.
struct Meanwhile<F>(F);

impl<F: Fn() + Send + Sync + 'static> LiveAgents for Meanwhile<F> {
    fn settle(&self) -> std::pin::Pin<Box<dyn Future<Output = Result<(), UndoError>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn busy<'a>(
        &'a self,
        _: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>> {
        Box::pin(std::future::ready(None))
    }

    fn processes(&self) -> Vec<i32> {
        vec![std::process::id().cast_signed()]
    }

    fn announce(&self, paths: Vec<PathBuf>) -> Box<dyn Send> {
        if !paths.is_empty() {
            (self.0)();
        }
        Box::new(())
    }
}

async fn many_files() -> Scene {
    let scene = Scene::new().await;
    let all = |root: &Path, text: &str| {
        for n in 0..20 {
            write(root, &format!("f{n:02}"), text);
        }
    };
    scene.doing(None, 0, |root| all(root, "old\n")).await;
    let work = |root: &Path| {
        all(root, "agent\n");
        fs::create_dir(root.join("z")).unwrap();
        write(root, "z/new", "agent\n");
    };
    scene.doing(Some("ui"), 0, work).await;
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_meanwhile_is_never_lost() {
    type Change = fn(&Path);
    let changes: [Change; 4] = [
        |root| write(root, "f13", "a person's\n"),
        |root| fs::remove_file(root.join("f13")).unwrap(),
        |root| write(root, "z/other", "a person's\n"),
        |root| {
            fs::rename(root.join("z"), root.join("moved")).unwrap();
            symlink("/", root.join("z")).unwrap();
        },
    ];
    for change in changes {
        let scene = many_files().await;
        let root = scene.workspace();
        let meanwhile = Meanwhile(move || change(&root));
        let undoer =
            Undoer::new(scene.journal.clone(), &scene.workspace(), std::sync::Arc::new(meanwhile));
        let request = UndoRequest {
            aim: Scene::aim("ui"),
            force: false,
            dry_run: false,
            outside: false,
            rewind: None,
        };
        let refused = undoer.run(request).await.unwrap_err();
        assert!(matches!(refused, UndoError::Changed { .. } | UndoError::Io { .. }), "{refused}");

        let expected = many_files().await;
        change(&expected.workspace());
        assert_eq!(look(&scene.workspace()), look(&expected.workspace()), "{refused}");
        assert!(!scene.folder.path().join("journal.db.undo").exists());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_open_for_writing_is_not_touched() {
    let scene = many_files().await;
    let undoer = Undoer::new(
        scene.journal.clone(),
        &scene.workspace(),
        std::sync::Arc::new(Meanwhile(|| {})),
    );
    let request = UndoRequest {
        aim: Scene::aim("ui"),
        force: true,
        dry_run: false,
        outside: false,
        rewind: None,
    };
    let before = look(&scene.workspace());
    let open = fs::OpenOptions::new().append(true).open(scene.at("f07")).unwrap();
    let refused = undoer.run(request.clone()).await.unwrap_err();
    assert!(refused.to_string().starts_with("`f07` is open for writing"), "{refused}");
    assert_eq!(look(&scene.workspace()), before);
    drop(open);
    undoer.run(request).await.unwrap();
    assert_eq!(fs::read_to_string(scene.at("f07")).unwrap(), "old\n");
}
