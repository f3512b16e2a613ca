//! An unusable plugin is an error with the reason.

use std::path::Path;

use super::scene::{HOSTILE, PLAIN, chmod, compile, configure, configure_with};
use crate::harness::Stage;

/// Checks a file, and returns why it can't be used.
fn refused(stage: &Stage, file: &Path) -> String {
    let ended = stage.run(&["plugin", "check", &file.display().to_string()]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
    let prefix = format!("error: {}: ", file.display());
    let why = ended.stderr.strip_prefix(&prefix).unwrap_or_else(|| panic!("{}", ended.stderr));
    why.trim_end().to_owned()
}

#[test]
fn a_plugin_is_checked_and_listed() {
    let stage = Stage::new();
    let library = compile(&stage, PLAIN, "libwords.so", &[]);
    let checked = stage.run(&["plugin", "check", "libwords.so"]);
    assert_eq!(
        (checked.code, checked.stdout.as_str(), checked.stderr.as_str()),
        (
            0,
            "plain 1.0.0\n  reads      plain words\n  interface  1\n  \
             enforces zones   yes\n  accepts prompts  yes\n  \
             self-test  it has none\n  instance   created without `config`\n",
            ""
        )
    );

    let none = stage.run(&["plugin", "list"]);
    let home = stage.path("home/plugins").display().to_string();
    let listed = format!("no plugins: none in {home}, and no `[[plugins]]` in eisen.toml\n");
    assert_eq!((none.code, none.stdout), (0, listed));

    configure(&stage, &library, "process", "");
    for (file, flags) in [
        ("libcrash.so", &["-DCRASHES"][..]),
        ("libdies.so", &["-DDIES=describe"]),
        ("libodd.so", &["-DABI=0"]),
        ("libpicky.so", &["-DCREATE=1", "-DNAMED=\"odd\\nname\""]),
    ] {
        compile(&stage, HOSTILE, &format!("home/plugins/{file}"), flags);
    }
    let listed = stage.run(&["plugin", "list"]);
    let lines: Vec<_> = listed.stdout.lines().collect();
    let killed = "can't be used: its process was killed by signal 11 (SIGSEGV) as it was loaded";
    let line = |file: &str, said| format!("{}  {said}", stage.path(file).display());
    assert_eq!(lines[0], line("libwords.so", "plain 1.0.0"));
    assert_eq!(lines[1], line("home/plugins/libcrash.so", killed));
    assert_eq!(lines[2], line("home/plugins/libdies.so", killed));
    assert!(lines[3].starts_with(&line("home/plugins/libodd.so", "can't be used: it is made for")));
    assert_eq!(lines[4], line("home/plugins/libpicky.so", "odd name 2"));
    assert_eq!((listed.code, lines.len()), (1, 5));
}

/// Who lists plugins wants none of them to do anything.
#[test]
fn a_plugin_that_is_listed_is_not_tested() {
    let stage = Stage::new();
    let flag = "-DTESTED=\"it is tested\"";
    let library = compile(&stage, HOSTILE, "home/plugins/libwords.so", &[flag]);
    let listed = stage.run(&["plugin", "list"]);
    let line = format!("{}  plain 1.0.0\n", library.display());
    assert_eq!((listed.code, listed.stdout), (0, line));
    assert!(!listed.stderr.contains("it is tested"), "{}", listed.stderr);
    let checked = stage.run(&["plugin", "check", &library.display().to_string()]);
    assert!(checked.stdout.contains("self-test  passed"), "{}", checked.stdout);
    assert!(checked.stderr.contains("it is tested"), "{}", checked.stderr);
}

#[test]
fn a_check_outlives_what_it_checks() {
    let stage = Stage::new();
    for (flag, when) in [
        ("-DCRASHES", "as it was loaded"),
        ("-DDIES=describe", "as it was loaded"),
        ("-DDIES=self_test", "in its self-test"),
        ("-DCREATE=(segfaults(),0)", "as it made an instance"),
        ("-DDESTROYS=segfaults()", "as it destroyed its instance"),
    ] {
        let library = compile(&stage, HOSTILE, "libdies.so", &[flag]);
        let expected = format!("its process was killed by signal 11 (SIGSEGV) {when}");
        assert_eq!(refused(&stage, &library), expected, "{flag}");
    }
}

/// It may need some.
#[test]
fn a_plugin_that_makes_no_instance_without_configuration_passes() {
    let stage = Stage::new();
    let library = compile(&stage, HOSTILE, "libpicky.so", &["-DCREATE=1"]);
    let checked = stage.run(&["plugin", "check", &library.display().to_string()]);
    let reported = "\n  instance   failed without `config`: it does not like that\n";
    assert!(checked.code == 0 && checked.stdout.ends_with(reported), "{}", checked.stdout);
}

/// Takes as long as the deadline.
#[test]
fn a_check_of_what_never_returns_ends() {
    let stage = Stage::new();
    let library = compile(&stage, HOSTILE, "libhangs.so", &["-DHANGS"]);
    let expected = "it was not loaded within 10 s, and was ended";
    assert_eq!(refused(&stage, &library), expected);
}

#[test]
fn a_failed_self_test_is_reported() {
    let stage = Stage::new();
    for flags in [&["-DSELF_TEST"][..], &["-DSELF_TEST", "-DCREATE=(segfaults(),0)"]] {
        let library = compile(&stage, HOSTILE, "libbad.so", flags);
        assert_eq!(refused(&stage, &library), "its self-test failed: it does not like that");
    }
}

#[test]
fn a_library_of_the_folder_needs_no_table() {
    let stage = Stage::new();
    compile(&stage, PLAIN, "home/plugins/libplain_words.so", &[]);
    configure_with(&stage, "", "plain-words", "");
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "say hello;done"), "hello");
}

#[test]
fn a_protocol_that_nothing_speaks_is_an_error() {
    let stage = Stage::new();
    let library = compile(&stage, PLAIN, "libwords.so", &[]);
    let plugin =
        format!("[[plugins]]\nname = \"words\"\npath = {:?}", library.display().to_string());
    configure_with(&stage, &plugin, "wrods", "");
    compile(&stage, PLAIN, "home/plugins/libplain_words.so", &[]);
    for said in [
        "`protocol` can't be \"wrods\"",
        "did you mean \"words\"? It can be \"acp\", \"opencode\", \"words\", \"plain-words\". Name a \
         plugin of `[[plugins]]`, or put its library into",
    ] {
        stage.refuses_to_start(said);
    }
    configure_with(&stage, &plugin, "plain-word", "");
    stage.refuses_to_start("did you mean \"plain-words\"?");
}

#[test]
fn a_library_that_others_may_write_is_refused() {
    let stage = Stage::new();
    let library = compile(&stage, PLAIN, "libwords.so", &[]);
    for mode in [0o757, 0o775] {
        chmod(&library, mode);
        let expected =
            format!("other users can write to it (mode {mode:o}): run `chmod go-w` on it");
        assert_eq!(refused(&stage, &library), expected);
    }
    // Nor is it loaded for an agent, wherever it runs.
    for isolation in ["in-process", "process"] {
        configure(&stage, &library, isolation, "");
        stage.refuses_to_start("other users can write to it (mode 775)");
    }
}

#[test]
fn a_library_that_can_t_be_used_is_reported_with_all_else_that_is_wrong() {
    for isolation in ["in-process", "process"] {
        let stage = Stage::new();
        for (flag, why) in [
            ("-DABI=2", "it is made for version 2 of the plugin interface, and this program has"),
            ("-DNO_ENTRY", "it is not a plugin: it does not export `eisen_plugin_entry`"),
            ("-DSIZE=8", "its table ends after 8 bytes"),
            ("-DCREATE=1", "it does not like that"),
            ("-DCRASHES", "its process was killed by signal 11 (SIGSEGV) as it was loaded"),
        ] {
            let library = compile(&stage, HOSTILE, &format!("lib{}.so", &flag[2..]), &[flag]);
            configure(&stage, &library, isolation, "wrong = 1");
            let place = "eisen.toml:7:8";
            let why = format!("the plugin \"words\" can't be used: {why}");
            for part in [place, &why, "unknown key `wrong`"] {
                stage.refuses_to_start(part);
            }
        }
        // In the folder it is found by its agent's `protocol`.
        compile(&stage, HOSTILE, "home/plugins/libodd.so", &["-DABI=0"]);
        configure_with(&stage, "", "odd", "");
        stage.refuses_to_start("the plugin \"odd\" can't be used: it is made for version 0");
    }
}

/// Takes as long as the deadline, twice.
#[test]
fn a_library_that_never_gets_loaded_is_given_up() {
    let stage = Stage::new();
    let library = compile(&stage, HOSTILE, "libhangs.so", &["-DHANGS"]);
    configure(&stage, &library, "in-process", "");
    stage.refuses_to_start("it was not loaded within 10 s, and was ended");
}

impl Stage {
    /// Neither `check` nor `up` takes the configuration, both for this reason, and nothing starts.
    fn refuses_to_start(&self, why: &str) {
        for command in ["check", "up"] {
            let ended = self.run(&[command, "-c", "eisen.toml"]);
            assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
            assert!(ended.stderr.contains(why), "{command}, {why}: {}", ended.stderr);
            assert!(!ended.stderr.contains("tcp port"), "{}", ended.stderr);
        }
    }
}

#[test]
fn what_is_no_library_is_refused() {
    let stage = Stage::new();
    stage.file("text.so", "this is text");
    chmod(&stage.path("text.so"), 0o755);
    let why = refused(&stage, &stage.path("text.so"));
    assert!(why.starts_with("it can't be loaded as a library: "), "{why}");
    assert!(!why.contains("/proc/"), "{why}");
    assert_eq!(refused(&stage, &stage.path("shop")), "it is not a regular file");
    let why = refused(&stage, &stage.path("missing.so"));
    assert!(why.starts_with("it can't be read: No such file"), "{why}");
    let fifo = stage.path("fifo.so");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(refused(&stage, &fifo), "it is not a regular file");
}

#[test]
fn a_table_that_is_wrong_is_refused() {
    let stage = Stage::new();
    let older = "it is made for version 0 of the plugin interface, and this program has version \
                 1: it needs a plugin that was built with a newer eisen_plugin.h";
    let newer = "it is made for version 2 of the plugin interface, and this program has version \
                 1: it needs a newer eisen-core, or a plugin that was built with an older \
                 eisen_plugin.h";
    for (flag, why) in [
        ("-DNO_ENTRY", "it is not a plugin: it does not export `eisen_plugin_entry`"),
        ("-DNO_TABLE", "its entry returned no table"),
        ("-DABI=0", older),
        ("-DABI=2", newer),
        ("-DSIZE=0", "its table ends after 0 bytes, before the end of what every plugin must have"),
        (
            "-DSIZE=24",
            "its table ends after 24 bytes, before the end of what every plugin must have",
        ),
        ("-DSIZE=offsetof(eisen_plugin,gate)", "its table has no `gate`"),
        ("-DSIZE=offsetof(eisen_plugin,allow)", "its table has no `allow`"),
        ("-DLACKS=describe", "its table has no `describe`"),
        ("-DLACKS=create", "its table has no `create`"),
        ("-DLACKS=destroy", "its table has no `destroy`"),
        ("-DLACKS=observe", "its table has no `observe`"),
        ("-DLACKS=deny", "its table has no `deny`"),
        ("-DLACKS=cancel", "its table has no `cancel`"),
        ("-DNO_NAME=0", "it can't describe itself: it does not like that"),
        ("-DNO_NAME=1", "it can't describe itself: it puts no description with a name"),
    ] {
        let library = compile(&stage, HOSTILE, &format!("lib{}.so", &flag[2..]), &[flag]);
        assert_eq!(refused(&stage, &library), why, "{flag}");
    }
    // A later version of this interface has a longer table.
    let library = compile(&stage, HOSTILE, "liblong.so", &["-DSIZE=4096"]);
    assert_eq!(stage.run(&["plugin", "check", &library.display().to_string()]).code, 0);
}
