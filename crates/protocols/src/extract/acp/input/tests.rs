use super::*;

fn paths(raw: &str) -> Vec<String> {
    let mut named = read(raw, None);
    named.paths.append(&mut named.written);
    named.paths
}

#[test]
fn makers_name_paths_under_keys_of_their_own() {
    for key in [
        "path",
        "file_path",
        "filePath",
        "FilePath",
        "abs_path",
        "absolute_path",
        "filename",
        "fileName",
        "target_file",
        "notebook_path",
        "relative_workspace_path",
        "uri",
        "file",
        "paths",
        "files",
        "new_path",
        "move_path",
    ] {
        assert_eq!(paths(&format!(r#"{{"{key}":"a/b.rs"}}"#)), ["a/b.rs"], "{key}");
    }
    assert_eq!(paths(r#"{"paths":["a","b"]}"#), ["a", "b"]);
    assert_eq!(paths(r#"{"parsed_cmd":[{"type":"read","path":"x.rs","name":"x.rs"}]}"#), ["x.rs"]);
    assert_eq!(paths(r#"{"changes":{"/w/a":{"type":"update","move_path":null}}}"#), ["/w/a"]);
    assert_eq!(paths(r#"{"input":"*** Begin Patch\n*** Add File: n.rs\n"}"#), ["n.rs"]);
}

#[test]
fn what_is_no_path_is_left_out() {
    for raw in [
        r#"{"profile":"x","content":"a/b","query":"path","url":"https://x/y"}"#,
        r#"{"uri":"https://x/y"}"#,
        r#"{"path":null,"file":""}"#,
        r#"{"file":"line one\nline two"}"#,
        r#"{"path":3}"#,
        "[]",
        "7",
    ] {
        assert!(paths(raw).is_empty(), "{raw}");
    }
}

#[test]
fn commands_come_as_text_and_as_arguments() {
    let line = |text: &str| ShellCommand::Line(text.to_owned());
    let argv = |argv: &[&str]| ShellCommand::Argv(argv.iter().map(|a| (*a).to_owned()).collect());
    let cases = [
        (r#"{"command":"cat x","timeout":1}"#, vec![line("cat x")]),
        (r#"{"cmd":["bash","-lc","cat x"]}"#, vec![argv(&["bash", "-lc", "cat x"])]),
        (r#"{"command":"cat","args":["x","y"]}"#, vec![argv(&["cat", "x", "y"])]),
        (r#"{"commands":["a","b"]}"#, vec![line("a"), line("b")]),
    ];
    for (raw, commands) in cases {
        assert_eq!(read(raw, None).commands, commands, "{raw}");
    }
    assert_eq!(read(r#"{"command":"x","cwd":"/w","workdir":"/v"}"#, None).folders, ["/w", "/v"]);
}

#[test]
fn keys_show_writes_and_searches() {
    let shape = |raw| {
        let Shape { writes, searches, more_than_reads, .. } = read(raw, None).shape;
        (writes, searches, more_than_reads)
    };
    assert_eq!(shape(r#"{"path":"a","offset":1,"limit":2}"#), (false, false, false));
    assert_eq!(shape(r#"{"path":"a","content":"x"}"#), (true, false, false));
    assert_eq!(
        shape(r#"{"file_path":"a","old_string":"x","new_string":"y"}"#),
        (true, false, false)
    );
    assert_eq!(shape(r#"{"pattern":"a","path":"."}"#), (false, true, false));
    assert_eq!(shape(r#"{"path":"a","sign":true}"#), (false, false, true));
}

#[test]
fn odd_inputs_are_bounded() {
    read(&format!("{}1{}", r#"{"a":["#.repeat(20_000), "]}".repeat(20_000)), None);
    assert!(read(r#"{"path":"\ud800"}"#, None).unreadable);
    assert!(!read(r#"{"content":"\ud800","path":"a"}"#, None).unreadable);
}
