//! What an unapproved library can do, and how one is approved.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::scene::{HOSTILE, compile, configure_with, hostile, team};
use crate::harness::{Ended, Stage};

/// Plugins in this process: nothing of it but the approval is asked for.
fn in_process(stage: &Stage, library: &Path) {
    let plugin = format!(
        "[[plugins]]\nname = \"words\"\npath = {:?}\nisolation = \"in-process\"\n",
        library.display().to_string()
    );
    configure_with(stage, &plugin, "words", "");
}

fn trust(stage: &Stage, args: &[&str]) -> Ended {
    stage.run(&[&["plugin", "trust"], args].concat())
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_that_is_looked_at_does_no_harm() {
    let stage = Stage::new();
    stage.file("victim", "mine");
    let victim = stage.path("victim");
    std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o600)).unwrap();
    let flag = format!("-DLOADED=\"{}\"", victim.display());
    let library = compile(&stage, HOSTILE, "libhostile.so", &[&flag]);
    let file = library.display().to_string();
    for isolation in ["", "isolation = \"process\"", "isolation = \"in-process\""] {
        let plugin = format!("[[plugins]]\nname = \"words\"\npath = {file:?}\n{isolation}\n");
        configure_with(&stage, &plugin, "words", "");
        for args in [
            &["check", "-c", "eisen.toml"][..],
            &["plugin", "check", &file],
            &["plugin", "list"],
            &["observe", "--plugin", &file, "--", "true"],
        ] {
            let ended = stage.run(args);
            // It was loaded, and none of what it tried came to anything.
            assert!(ended.stderr.contains("did 0"), "{args:?}: {ended:?}");
        }
        assert_eq!(stage.read("victim"), "mine");
        let mode = std::fs::metadata(&victim).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(
            !stage.has("victim.made") && !stage.has("victim.run") && !stage.has("victim.moved")
        );
    }
}

#[test]
fn in_process_runs_only_what_was_approved_as_it_is() {
    let stage = Stage::new();
    let library = hostile(&stage, &[]);
    let file = library.display().to_string();
    in_process(&stage, &library);
    let command = format!("eisen-core dev plugin trust {file}");
    let refused = |stage: &Stage| {
        for what in ["check", "up"] {
            let ended = stage.run(&[what, "-c", "eisen.toml"]);
            assert!(ended.code == 2 && ended.stderr.contains(&command), "{ended:?}");
        }
    };
    refused(&stage);
    let trusted = trust(&stage, &[&file]);
    assert!(trusted.code == 0 && trusted.stdout.contains("blake3"), "{trusted:?}");
    assert_eq!(stage.run(&["check", "-c", "eisen.toml"]).code, 0);
    {
        let team = stage.up();
        let mut port = team.steer_when_ready(&["ui"]);
        assert_eq!(port.prompt("ui", "say hello;done"), "hello");
    }

    hostile(&stage, &["-DSELF_TEST"]);
    refused(&stage);
    let listed = trust(&stage, &["--list"]);
    assert!(listed.stdout.contains(&file) && listed.stdout.contains("changed"), "{listed:?}");

    assert_eq!(trust(&stage, &[&file]).code, 0);
    assert_eq!(stage.run(&["check", "-c", "eisen.toml"]).code, 0);
    assert_eq!(trust(&stage, &["--remove", &file]).code, 0);
    refused(&stage);
    let nothing = trust(&stage, &["--remove", &file]);
    assert!(nothing.code == 1 && nothing.stderr.contains("--list"), "{nothing:?}");
}

#[test]
fn what_is_no_library_of_one_s_own_is_not_approved() {
    let stage = Stage::new();
    let library = hostile(&stage, &[]);
    super::scene::chmod(&library, 0o777);
    for (file, why) in [
        (library.display().to_string(), "chmod go-w"),
        (stage.path("none.so").display().to_string(), "No such file"),
        (stage.path("shop").display().to_string(), "it is not a regular file"),
    ] {
        let refused = trust(&stage, &[&file]);
        assert!(refused.code == 1 && refused.stderr.contains(why), "{refused:?}");
    }
    assert_eq!(trust(&stage, &[]).code, 2);
}

/// Nothing else would say whose fault it was.
#[test]
fn one_that_takes_the_team_with_it_is_named() {
    for (line, did) in [("segfault", "crashed (SIGSEGV)"), ("exit", "ended this process (exit)")] {
        let stage = Stage::new();
        let marker = stage.path("marker");
        let flag = format!("-DMARKER=\"{}\"", marker.display());
        let team = team(&stage, &hostile(&stage, &[&flag]), "in-process", "");
        let mut port = team.steer_when_ready(&["ui"]);
        stage.file("marker", "");
        port.begin("ui", &format!("say before;{line};done"));
        let reported = format!("the plugin words {did} in `observe`");
        loop {
            let said = team.program.stderr.next().expect("the log ended");
            if said.contains(&reported) {
                assert!(said.contains("isolation = \"process\""), "{said}");
                break;
            }
        }
    }
}
