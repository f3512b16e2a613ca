//! Files outside the workspace.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_own_state_outside_the_workspace_stays_unless_it_is_asked_for() {
    let keep = Keep { outside: OutsideFiles::Content, ..Keep::default() };
    let scene = Scene::that_keeps(keep).await;
    let home = scene.folder.path().canonicalize().unwrap().join("home");
    fs::create_dir(&home).unwrap();
    write(&home, "sessions.db", "new\n");
    let file = |content: &str| (0o644, 'f', content.as_bytes().to_vec());
    let state = home.join("sessions.db");
    let draft = home.join("draft");
    let events = vec![
        event(Some("ui"), 0, &state, Some(&file("old\n")), Some(&file("new\n"))),
        event(Some("ui"), 0, &draft, None, Some(&file("made\n"))),
        moved(&draft, "made", &file("made\n")),
    ];
    scene.journal.append_all(events).await.unwrap();
    write(&scene.workspace(), "made", "made\n");
    // As an agent has it while it runs.
    let held = fs::OpenOptions::new().append(true).open(&state).unwrap();

    let outcome = scene.undo("ui").await.unwrap();
    assert_eq!((outcome.outside, outcome.paths.len()), (2, 1));
    assert_eq!(look(&home).len(), 1);
    assert_eq!(fs::read(&state).unwrap(), b"new\n");
    assert!(!scene.at("made").exists());
    scene.redo().await.unwrap();
    assert_eq!(fs::read(scene.at("made")).unwrap(), b"made\n");

    drop(held);
    let aim = Scene::aim("ui");
    let request = UndoRequest { aim, force: false, dry_run: false, outside: true, rewind: None };
    assert_eq!(scene.undoer.run(request).await.unwrap().outside, 0);
    assert_eq!(fs::read(&state).unwrap(), b"old\n");
    assert!(!scene.at("made").exists() && !draft.exists());
    scene.redo().await.unwrap();
    assert_eq!(fs::read(&state).unwrap(), b"new\n");
    assert_eq!(fs::read(scene.at("made")).unwrap(), b"made\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_outside_the_workspace_whose_content_is_not_kept_stays_and_is_named() {
    let scene = Scene::new().await;
    let home = scene.folder.path().canonicalize().unwrap().join("home");
    fs::create_dir(&home).unwrap();
    let file = |content: &str| (0o644, 'f', content.as_bytes().to_vec());
    let (changed, made) = (home.join("auth.json"), home.join("made"));
    write(&home, "auth.json", "new\n");
    write(&home, "made", "made\n");
    let events = vec![
        event(Some("ui"), 0, &changed, Some(&file("old\n")), Some(&file("new\n"))),
        event(Some("ui"), 0, &made, None, Some(&file("made\n"))),
    ];
    // The journal has no contents of them.
    let events = events.into_iter().map(|event| event.with(Vec::new())).collect();
    scene.journal.append_all(events).await.unwrap();
    scene.doing(Some("ui"), 0, |root| write(root, "inside", "inside\n")).await;
    let request = |force| UndoRequest {
        aim: Scene::aim("ui"),
        force,
        dry_run: false,
        outside: true,
        rewind: None,
    };
    let refused = scene.undoer.run(request(false)).await.unwrap_err().to_string();
    for path in [&changed, &made] {
        let line = format!("{}: not kept", path.display());
        assert!(refused.contains(&line), "{refused}");
    }
    let outcome = scene.undoer.run(request(true)).await.unwrap();
    assert_eq!((outcome.obstacles.len(), outcome.paths.len()), (2, 1));
    assert!(outcome.obstacles.iter().all(|it| !it.forced && it.why.starts_with("not kept")));
    assert_eq!((fs::read(&changed).unwrap(), made.exists()), (b"new\n".to_vec(), true));
    assert!(!scene.at("inside").exists());
    let store = journal::Store::open(&scene.journal.settings().path).unwrap();
    let kept = store.has_content(&hash_of(b"made\n")).unwrap();
    assert!(!kept, "an undo keeps no content, either");
}

fn moved(from: &Path, to: &str, state: &OnDisk) -> NewEvent {
    let state = json!({
        "hash": hash_of(&state.2), "size": state.2.len(), "mode": state.0, "kind": "file",
        "stored": true,
    });
    let payload = json!({
        "from": from, "path": to, "before": state, "after": state, "cause": "agent",
        "restorable": true,
    });
    let place = Place::Wire(SessionKey::new(AgentId::new("ui"), SessionId::new("s")));
    NewEvent::new(place, EventType::FILE_RENAME, &payload).in_turn(0)
}
