use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::extract::testing::Sample;

fn shown(command: &ShellCommand) -> String {
    let workspace =
        Sample::new(&["core/auth.rs", "core/db.py", "ui/app.tsx", "README.md", "s p.txt"]);
    let reading = read(command, Path::new("/w"), &workspace);
    let mut lines: Vec<String> = reading
        .named
        .iter()
        .map(|NamedFile { path, role, plain }| {
            let path = path.strip_prefix("/w").unwrap_or(path).display();
            format!("{role:?} {path}{}", if *plain { "" } else { " ?" })
        })
        .collect();
    if !reading.whole {
        lines.push("not whole".to_owned());
    }
    lines.join("; ")
}

fn check(line: &str, expected: &Expect) {
    expected.assert_eq(&shown(&ShellCommand::Line(line.to_owned())));
}

#[test]
fn readers_writers_and_redirections_name_files() {
    check("cat core/auth.rs", &expect!["Read core/auth.rs"]);
    check(r#"cat "core/au"'th'.r\s"#, &expect!["Read core/auth.rs"]);
    check("head -n 5 a.txt; tail -5 b.txt | wc -l", &expect!["Read a.txt; Read b.txt"]);
    check(
        "sed -n '1,5p' a.rs && sed -i 's/a/b/' b.rs; sed -e s/x/y/ -f s.sed c.rs",
        &expect!["Read a.rs; Write b.rs; Read s.sed; Read c.rs"],
    );
    check("sed -i.bak -e 's/a/b/' x; sed -i '' s/a/b/ y", &expect!["Write x; Write y"]);
    check(
        "grep -rn auth . ; rg -e x core/db.py; grep -n foo a b",
        &expect!["Search core/db.py; Search a; Search b"],
    );
    check("cat > core/new.py <<'EOF'\nprint('a')\nEOF", &expect!["Write core/new.py"]);
    check(
        "echo a/b >> log; sort < in > out 2> /dev/null",
        &expect!["Write log; Read in; Write out"],
    );
    check(
        "tee -a x y; touch z; rm -rf core; mkdir -p new/dir",
        &expect!["Write x; Write y; Write z; Write core; Write new/dir"],
    );
    check(
        "cp README.md core/; mv a b; cp a b ui",
        &expect![
            "Read README.md; Write core/README.md; Write a; Write b; Read a; Read b; Write ui/a; Write ui/b"
        ],
    );
    check(
        "dd if=a of=b bs=1; awk -F, '{print $1}' c; jq .x d.json; diff -u e f",
        &expect!["Read a; Write b; Read c; Read d.json; Read e; Read f"],
    );
    check(
        "ln -s ../core/x ui/link; ln -sf /w/core/y ui/; ln --symbolic z link; ln core/hard ui/name; ln -s ../up",
        &expect![
            "Argument ui/../core/x; Write ui/link; Argument core/y; Write ui/y; Write link; Read core/hard; Write ui/name; Argument ../up; Write up"
        ],
    );
    check("cp -f core/a ui/b", &expect!["Read core/a; Write ui/b"]);
    check(
        "cp -t ui a b; mv --target-directory=core c; install --target-directory ui d; rsync -t e f",
        &expect![
            "Read a; Read b; Write ui/a; Write ui/b; Write c; Write core/c; Read d; Write ui/d; Read e; Write f"
        ],
    );
    check("ls -la ui core; exit 3", &expect![""]);
    check("for i in $(seq 45); do sleep 1; done; echo done", &expect![""]);
}

#[test]
fn folders_and_variables_are_followed() {
    check("cd core && cat auth.rs", &expect!["Read core/auth.rs"]);
    check("(cd core; cat a); cat b", &expect!["Read core/a; Read b"]);
    check("cd /tmp/x && cat ../y", &expect!["Read /tmp/x/../y"]);
    check("cd $X && cat a /b", &expect!["Read a ?; Read /b"]);
    check("F=core/auth.rs; cat $F \"${F}\" $G", &expect!["Read core/auth.rs"]);
    check(
        "cat $PWD/x core/*.rs {core,ui}/y",
        &expect!["Read x; Read core/*.rs ?; Read core/y; Read ui/y"],
    );
    check("A=$A$A$A; cat $A", &expect![""]);
}

#[test]
fn commands_within_commands_are_read() {
    check("bash -lc 'cat core/auth.rs'", &expect!["Read core/auth.rs"]);
    check("sh -ec \"sh -c 'cat a > b'\"", &expect!["Write b; Read a"]);
    check("env A=b sudo -u root timeout -k 5 10 nice -n 3 cat x", &expect!["Read x"]);
    check("ls | xargs -n 1 cat y", &expect!["Read y"]);
    check(
        "echo \"$(cat a)\" `cat b` <(cat c) ${x:-$(cat d)}",
        &expect!["Read a; Read b; Read c; Read d"],
    );
    check(
        "find . -name '*.rs' -exec cat core/db.py {} \\;",
        &expect!["Read core/db.py; Read {}; Argument core/db.py"],
    );
    check(
        "eval 'cat a'; bash <<E\ncat b\nE\nbash <<< 'cat c'; bash run.sh x; . ./env",
        &expect!["Read a; Read b; Read c; Read run.sh; Read env"],
    );
    check(
        "if true; then cat a; fi; while ! cat b; do :; done; { cat c; }",
        &expect!["Read a; Read b; Read c"],
    );
    check("/bin/cat x; command cat y; busybox cat z", &expect!["Read x; Read y; Read z"]);
}

#[test]
fn patches_name_what_they_write() {
    check(
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: core/a.rs\n*** End Patch\nEOF",
        &expect!["Write core/a.rs"],
    );
    check("cd core && patch -p1 <<'EOF'\n--- a/x.rs\n+++ b/x.rs\nEOF", &expect!["Write core/x.rs"]);
    check("git apply <<E\n--- /dev/null\n+++ b/n\nE", &expect!["Write n"]);
    let argv = ["apply_patch", "*** Begin Patch\n*** Add File: new\n*** End Patch"];
    expect!["Write new"].assert_eq(&shown(&ShellCommand::Argv(argv.map(str::to_owned).to_vec())));
}

#[test]
fn arguments_of_others_are_guesses() {
    check(
        "python3 run.py core/auth.rs --out=/x/y -I../inc",
        &expect!["Argument core/auth.rs; Argument /x/y; Argument ../inc"],
    );
    check(
        "git commit -m 'fix a/b and c' ; git push origin feature/x; npm i @a/b; curl https://x/y",
        &expect![""],
    );
    check(
        "git add README.md core/new.rs 's p.txt'",
        &expect!["Argument README.md; Argument core/new.rs; Argument s p.txt"],
    );
    check("make > /dev/null 2>&1 < /dev/tty", &expect![""]);
}

#[test]
fn a_program_with_arguments_is_no_shell_line() {
    let argv =
        |argv: &[&str]| shown(&ShellCommand::Argv(argv.iter().map(|a| (*a).to_owned()).collect()));
    assert_eq!(argv(&["cat", "$HOME", "a;b", ">", "c"]), "Read $HOME; Read a;b; Read >; Read c");
    assert_eq!(argv(&["/bin/bash", "-lc", "cat core/auth.rs > x"]), "Write x; Read core/auth.rs");
    assert_eq!(argv(&[]), "");
}

#[test]
fn bounds_are_said() {
    let whole = |line: String| !shown(&ShellCommand::Line(line)).contains("not whole");
    assert!(!whole("x".repeat(LONGEST + 1)));
    assert!(!whole(format!("{}cat a{}", "$(".repeat(20), ")".repeat(20))));
    assert!(!whole(format!(
        "cat {}",
        (0..5000).map(|n| format!("f{n}")).collect::<Vec<_>>().join(" ")
    )));
    assert!(whole("a|".repeat(LONGEST / 2)));
}

#[test]
fn hostile_lines_end_soon() {
    let fill = |piece: &str| piece.repeat(LONGEST / piece.len());
    let half = |piece: &str| piece.repeat(LONGEST / 2 / piece.len());
    for line in [
        fill("cd a;"),
        fill("a=$a$a;"),
        fill("("),
        fill("{a,b}"),
        fill("cat x "),
        fill("$PWD "),
        fill("sudo "),
        fill("$(x)"),
        fill("env -S 'a' "),
        format!(
            "{}sh -c '{}'",
            (0..9000).map(|n| format!("a{n}=x;")).collect::<Vec<_>>().concat(),
            half("$(x)")
        ),
    ] {
        read(&ShellCommand::Line(line), Path::new("/w"), &Sample::new(&[]));
    }
}

proptest! {
    #[test]
    fn any_line_is_read(line in r#"([a-z/.]{1,4}|cat |sh -c |cd |[ $(){}<>'"`\\|&;\n*~#,=-]){0,40}"#) {
        shown(&ShellCommand::Line(line));
    }

    #[test]
    fn quoting_never_hides_a_file(quotes in prop::collection::vec(0..4, 12)) {
        let mut line = "cat ".to_owned();
        for (c, quote) in "core/auth.rs".chars().zip(quotes) {
            line.extend([match quote {
                0 => c.to_string(),
                1 => format!("'{c}'"),
                2 => format!("\"{c}\""),
                _ => format!("$'\\x{:x}'", u32::from(c)),
            }]);
        }
        prop_assert_eq!(shown(&ShellCommand::Line(line)), "Read core/auth.rs");
    }
}
