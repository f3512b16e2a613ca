//! The code graph of a folder, as the command prints it.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Map, Value, json};

use crate::harness::{Ended, Stage};

/// A tree with every kind and every language.
fn shop() -> Stage {
    let stage = Stage::new();
    for (path, text) in [
        ("src/till.rs", "pub fn ring() {}\n"),
        (
            "src/shop.rs",
            r#"use crate::till::ring;
pub struct Shop;
impl Shop {
    const DOORS: u32 = 2;
    pub fn open(&self) {
        fn open() {}
        ring();
    }
    pub fn open(&self) {
        fn open() {}
        fn open() {}
        self.close();
    }
    fn close(&self) {}
}
"#,
        ),
        (
            "py/till.py",
            "class Till:\n    def ring(self):\n        pass\n\ndef main():\n    Till()\n",
        ),
        ("web/cart.ts", "export interface Price { of: number }\nexport function total() {}\n"),
        (
            "web/deep/app.tsx",
            "import { total } from \"../cart\";\nexport const App = () => <b>{total()}</b>;\n",
        ),
        ("web/old.js", "export function old() {}\n"),
        ("web/box.jsx", "export function Box() { return <i/>; }\n"),
        ("notes.txt", "one\ntwo"),
        ("empty.py", ""),
    ] {
        stage.file(&format!("tree/{path}"), text);
    }
    stage
}

/// What a run of `snapshot` of the tree prints.
fn printed(stage: &Stage, args: &[&str]) -> String {
    let ended = stage.run(&[&["snapshot", "--root", "tree"], args].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    ended.stdout
}

fn graph(stage: &Stage, args: &[&str]) -> Value {
    serde_json::from_str(&printed(stage, args)).unwrap()
}

fn ids(graph: &Value) -> Vec<&str> {
    graph["nodes"].as_object().unwrap().keys().map(String::as_str).collect()
}

fn node(kind: &str, start: u32, end: u32) -> Value {
    json!({"kind": kind, "lines": {"start": start, "end": end}})
}

fn file(end: u32, language: &str) -> Value {
    json!({"kind": "file", "lines": {"start": 1, "end": end}, "language": language})
}

#[test]
fn a_tree_is_printed_as_nodes_by_their_ids_and_calls() {
    let stage = shop();
    let expected = json!({
        "seq": 0,
        "nodes": {
            "empty.py": file(1, "python"),
            "notes.txt": node("file", 1, 2),
            "py": node("folder", 0, 0),
            "py/till.py": file(6, "python"),
            "py/till.py::Till": node("class", 1, 3),
            "py/till.py::Till::ring": node("method", 2, 3),
            "py/till.py::main": node("function", 5, 6),
            "src": node("folder", 0, 0),
            "src/shop.rs": file(15, "rust"),
            "src/shop.rs::Shop": node("class", 2, 2),
            "src/shop.rs::Shop::DOORS": node("function", 4, 4),
            "src/shop.rs::Shop::close": node("method", 14, 14),
            "src/shop.rs::Shop::open": node("method", 5, 8),
            "src/shop.rs::Shop::open#2": node("method", 9, 13),
            "src/shop.rs::Shop::open#2::open": node("function", 10, 10),
            "src/shop.rs::Shop::open#2::open#2": node("function", 11, 11),
            "src/shop.rs::Shop::open::open": node("function", 6, 6),
            "src/till.rs": file(1, "rust"),
            "src/till.rs::ring": node("function", 1, 1),
            "web": node("folder", 0, 0),
            "web/box.jsx": file(1, "jsx"),
            "web/box.jsx::Box": node("function", 1, 1),
            "web/cart.ts": file(2, "typescript"),
            "web/cart.ts::Price": node("class", 1, 1),
            "web/cart.ts::total": node("function", 2, 2),
            "web/deep": node("folder", 0, 0),
            "web/deep/app.tsx": file(2, "tsx"),
            "web/deep/app.tsx::App": node("function", 2, 2),
            "web/old.js": file(1, "javascript"),
            "web/old.js::old": node("function", 1, 1),
        },
        "calls": [
            {"from": "py/till.py::main", "to": "py/till.py::Till"},
            {"from": "src/shop.rs::Shop::open", "to": "src/till.rs::ring"},
            {"from": "src/shop.rs::Shop::open#2", "to": "src/shop.rs::Shop::close"},
            {"from": "web/deep/app.tsx::App", "to": "web/cart.ts::total"},
        ],
    });
    let printed = printed(&stage, &["--no-tokens"]);
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), expected);
    // On one line, its keys in this order too.
    assert_eq!(printed, format!("{expected}\n"));
}

#[test]
fn files_and_symbols_have_tokens_unless_not_wanted() {
    let stage = shop();
    let counted = graph(&stage, &[]);
    let of = |id: &str| counted["nodes"][id]["tokens"].as_u64();
    assert_eq!(of("src"), None);
    let (file, ring) = (of("py/till.py").unwrap(), of("py/till.py::Till::ring").unwrap());
    let class = of("py/till.py::Till").unwrap();
    assert!(0 < ring && ring < class && class < file, "{ring}, {class}, {file}");
    // What was kept with tokens is printed without, and the other way round.
    assert!(!printed(&stage, &["--no-tokens"]).contains("tokens"));
    assert_eq!(graph(&stage, &[]), counted);
}

#[test]
fn ndjson_is_a_line_for_each_node_and_each_call() {
    let stage = shop();
    let whole = graph(&stage, &[]);
    let printed = printed(&stage, &["--format", "ndjson"]);
    let mut nodes = Map::new();
    let mut calls = Vec::new();
    for line in printed.lines() {
        let mut line: Map<String, Value> = serde_json::from_str(line).unwrap();
        match line.shift_remove("id") {
            Some(id) => {
                assert!(calls.is_empty(), "nodes come first");
                nodes.insert(id.as_str().unwrap().to_owned(), line.into());
            }
            None => calls.push(Value::Object(line)),
        }
    }
    assert_eq!(json!({"seq": 0, "nodes": nodes, "calls": calls}), whole);
}

#[test]
fn dot_has_the_calls() {
    let stage = Stage::new();
    stage.file("tree/a\"b.py", "def one():\n    two()\n\ndef two():\n    pass\n");
    assert_eq!(
        printed(&stage, &["--format", "dot"]),
        "digraph calls {\n  rankdir=LR;\n  node [shape=box];\n  \
         \"a\\\"b.py::one\" -> \"a\\\"b.py::two\";\n}\n"
    );
}

#[test]
fn stats_go_beside_the_output() {
    let stage = shop();
    let args = ["snapshot", "--root", "tree", "--no-tokens"];
    let ended = stage.run(&[&args[..], &["--stats"]].concat());
    assert_eq!((ended.code, &ended.stdout), (0, &printed(&stage, &["--no-tokens"])), "{ended:?}");
    let lines: Vec<_> = ended.stderr.lines().collect();
    let [files, nodes, calls, work] = lines[..] else { panic!("{ended:?}") };
    assert_eq!(files, "files  1 javascript, 1 jsx, 1 other, 2 python, 2 rust, 1 tsx, 1 typescript");
    assert_eq!(nodes, "nodes  4 folder, 9 file, 3 class, 4 method, 10 function");
    assert_eq!(calls, "calls  1 by scope, 1 by file, 2 by import");
    assert!(work.starts_with("work   9 files read ("), "{work}");
    let again = stage.run(&[&args[..], &["--stats", "--no-cache"]].concat());
    assert!(again.stderr.contains("8 parsed"), "{again:?}");
}

#[test]
fn what_is_no_folder_is_refused_with_a_sentence() {
    let stage = shop();
    let check = |root: &str, said: &str| {
        let Ended { code, stdout, stderr } = stage.run(&["snapshot", "--root", root]);
        let said = format!("error: {}\n", said.replace("{}", &format!("./{root}")));
        assert_eq!((code, stdout, stderr), (2, String::new(), said));
    };
    check("nowhere", "there is no folder {}");
    check("tree/notes.txt", "{} is not a folder");
    check("tree/notes.txt/below", "{} is not a folder");
    mkfifo(&stage.path("pipe"), Mode::S_IRWXU).unwrap();
    check("pipe", "{} is not a folder");
    symlink("loop", stage.path("loop")).unwrap();
    let looped = stage.run(&["snapshot", "--root", "loop"]);
    assert_eq!((looped.code, looped.stdout.as_str()), (2, ""), "{looped:?}");
    assert!(looped.stderr.starts_with("error: cannot read the folder "), "{looped:?}");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let stage = Stage::new();
    // More than a pipe holds.
    let functions: Vec<_> = (0..5_000).map(|n| format!("def f{n}(): pass")).collect();
    stage.file("tree/many.py", &functions.join("\n"));
    let args = ["snapshot", "--root", "tree", "--no-tokens", "--format", "ndjson"];
    let mut command = stage.eisen_core(&args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("{\"id\":\"many.py\""), "{first}");
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]), "{ended:?}");
}

#[test]
fn the_same_tree_gives_the_same_bytes() {
    let stage = shop();
    // Enough that two threads share it.
    for number in 0..100 {
        let text = format!("def f{number}():\n    f{}()\n\ndef f{number}(): pass\n", number + 1);
        stage.file(&format!("tree/many/{}/f{number}.py", number % 7), &text);
    }
    let first = printed(&stage, &["--no-cache", "--jobs", "1"]);
    assert!(!stage.has("cache/eisen-core"), "nothing was to be kept");
    for args in [&["--no-cache", "--jobs", "2"][..], &["--jobs", "2"], &["--jobs", "1"], &[]] {
        assert!(printed(&stage, args) == first, "{args:?}");
    }
    assert!(stage.has("cache/eisen-core"));
    // A cache that was torn is none.
    for pack in fs::read_dir(stage.path("cache/eisen-core/graph")).unwrap() {
        let pack = pack.unwrap().path();
        let content = fs::read(&pack).unwrap();
        fs::write(&pack, &content[..content.len() / 2]).unwrap();
    }
    assert!(printed(&stage, &[]) == first, "with a torn cache");
}

#[test]
fn only_what_is_not_ignored_hidden_linked_or_special_is_listed() {
    let stage = Stage::new();
    for (path, text) in [
        (".gitignore", "out\n*.log\n"),
        (".ignore", "big.rs\n"),
        ("kept/.gitignore", "!kept.log\n"),
        ("kept/kept.log", "kept\n"),
        ("kept/lost.log", "lost\n"),
        ("out/a.rs", "fn a() {}\n"),
        ("big.rs", "fn big() {}\n"),
        (".hidden/b.rs", "fn b() {}\n"),
        (".c.rs", "fn c() {}\n"),
    ] {
        stage.file(&format!("tree/{path}"), text);
    }
    let tree = stage.path("tree");
    stage.file("outside/d.rs", "fn d() {}\n");
    symlink(stage.path("outside"), tree.join("away")).unwrap();
    symlink("kept/kept.log", tree.join("link.rs")).unwrap();
    symlink(".", tree.join("itself")).unwrap();
    mkfifo(&tree.join("pipe.rs"), Mode::S_IRWXU).unwrap();
    assert_eq!(ids(&graph(&stage, &[])), ["kept", "kept/kept.log"]);
    // A root is looked into even if it is hidden itself, or a link.
    for root in ["tree/.hidden", "tree/away"] {
        let ended = stage.run(&["snapshot", "--root", root]);
        let graph: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(ids(&graph).len(), 2, "{graph}");
    }
}

#[test]
fn names_and_contents_that_are_no_text_are_listed() {
    let stage = Stage::new();
    let write = |name: &[u8], content: &[u8]| {
        let path = stage.path("tree").join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write(b"\xfe\n\x1b[31m.py", b"def a(): pass\n");
    write(b"\xff\n\x1b[31m.py", b"def b(): pass\n");
    write(b"latin.py", b"# caf\xe9\ndef call():\n    ring(\"\xe9\")\n\ndef ring(): pass\n");
    write(b"binary.py", b"\0\xff\n\ndef no(): pass\n");
    write(b"broken.py", b"def e(:\n  )\n\ndef f():\n    pass\n");
    let graph = graph(&stage, &[]);
    let shown = ids(&graph);
    for id in [
        "\u{fffd}\n\u{1b}[31m.py::a",
        "\u{fffd}\n\u{1b}[31m.py#2::b",
        "latin.py::call",
        "latin.py::ring",
        "binary.py",
        "broken.py::f",
    ] {
        assert!(shown.contains(&id), "{id:?} of {shown:?}");
    }
    assert!(!shown.contains(&"binary.py::no"));
    assert_eq!(graph["calls"], json!([{"from": "latin.py::call", "to": "latin.py::ring"}]));
}
