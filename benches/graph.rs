//! What `snapshot` costs, against bare parsing of the same bytes, ctags and, where it is there,
//! `ast-grep scan` in the same run. Each is a process of its own, and counts from its start to its
//! end; of bare parsing, only the reading and parsing does. The results are medians of ratios, so that the
//! machine cancels out; what else runs on it does not. `EISEN_TREE` names the tree; without it, one of
//! about 2,000 files is made of the sources in cargo's registry.

use std::collections::HashMap;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use tempfile::TempDir;
use tree_sitter::{Language, Parser, Query, QueryCursor, StreamingIterator as _};

const FILES: usize = 2_000;
const BYTES: u64 = 20 << 20;
const ROUNDS: usize = 5;

pub(crate) fn run() {
    let args: Vec<String> = crate::arguments();
    if let [first, tree, threads] = &args[..]
        && (first == "parse" || first == "query")
    {
        let took = bare(&sources(Path::new(tree)), threads.parse().unwrap(), first == "query");
        return print!("{}", took.as_nanos());
    }
    let made = tempfile::tempdir().unwrap();
    let tree = std::env::var_os("EISEN_TREE").map_or_else(|| make(&made), PathBuf::from);
    let files = sources(&tree);
    let bytes: u64 = files.iter().map(|(path, _)| fs::metadata(path).unwrap().len()).sum();
    println!("{} files that are parsed, {bytes} bytes", files.len());
    let threads = std::thread::available_parallelism().map_or(1, Into::into).min(2);
    let cache = tempfile::tempdir().unwrap();
    let cold = |threads| snapshot(&tree, threads, cache.path(), &["--no-cache"]);
    cold(threads);
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let memory = peak() as f64 / bytes as f64;
    row("memory / source bytes", Some(memory));
    let own = |work: &str| {
        let mut own = crate::part("graph");
        let output = own.arg(work).arg(&tree).arg(threads.to_string()).output().unwrap();
        Duration::from_nanos(str::from_utf8(&output.stdout).unwrap().parse().unwrap())
    };
    row("cold / bare parsing", Some(ratio(|| cold(threads), || own("parse"))));
    row("parsing with queries / bare parsing", Some(ratio(|| own("query"), || own("parse"))));
    row("one thread / two", Some(ratio(|| cold(1), || cold(2))));
    row(
        "cold / ast-grep",
        ast_grep(&tree, threads)
            .map(|_| ratio(|| cold(threads), || ast_grep(&tree, threads).unwrap())),
    );
    // What was written just now is not trusted to stay.
    std::thread::sleep(Duration::from_secs(3));
    let warm = || snapshot(&tree, threads, cache.path(), &[]);
    warm();
    row("warm / ctags", ctags(&tree).map(|_| ratio(warm, || ctags(&tree).unwrap())));
}

fn row(name: &str, ratio: Option<f64>) {
    match ratio {
        Some(ratio) => println!("{name:<24}{ratio:>8.2}"),
        None => println!("{name:<24}       - it is not there"),
    }
}

/// The median of how much longer the one takes, in turns.
fn ratio(one: impl Fn() -> Duration, other: impl Fn() -> Duration) -> f64 {
    let mut ratios: Vec<_> =
        (0..ROUNDS).map(|_| one().as_secs_f64() / other().as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ROUNDS / 2]
}

/// How long a program takes that is to succeed; None if there is none.
fn time(command: &mut Command) -> Option<Duration> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    assert!(status.success(), "{command:?} {status}");
    Some(start.elapsed())
}

fn snapshot(tree: &Path, jobs: usize, cache: &Path, more: &[&str]) -> Duration {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eisen-core"));
    command.args(["snapshot", "--no-tokens", "--jobs", &jobs.to_string(), "--root"]).arg(tree);
    time(command.args(more).env("XDG_CACHE_HOME", cache)).unwrap()
}

/// Reads and parses all files; `queries`: finds what our queries find with tree-sitter's own engine, too.
fn bare(files: &[(PathBuf, Language)], threads: usize, queries: bool) -> Duration {
    let mut by_extension = HashMap::new();
    for (path, language) in files.iter().filter(|_| queries) {
        let extension = path.extension().unwrap();
        by_extension
            .entry(extension)
            .or_insert_with(|| Query::new(language, &query(extension.to_str().unwrap())).unwrap());
    }
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let (mut parser, mut cursor) = (Parser::new(), QueryCursor::new());
                while let Some((path, language)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    parser.set_language(language).unwrap();
                    let text = fs::read(path).unwrap();
                    let tree = parser.parse(&text, None).unwrap();
                    if let Some(query) = by_extension.get(path.extension().unwrap()) {
                        cursor.matches(query, tree.root_node(), &text[..]).for_each(|found| {
                            black_box(found);
                        });
                    }
                }
            });
        }
    });
    start.elapsed()
}

/// The queries of `crates/graph/src/graph/languages.rs`, without the `+` that tree-sitter's engine does not need.
fn query(extension: &str) -> String {
    const ECMASCRIPT: &str = include_str!("../crates/graph/src/graph/languages/ecmascript.scm");
    const JAVASCRIPT: &str = include_str!("../crates/graph/src/graph/languages/javascript.scm");
    const TYPESCRIPT: &str = include_str!("../crates/graph/src/graph/languages/typescript.scm");
    const JSX: &str = include_str!("../crates/graph/src/graph/languages/jsx.scm");
    let parts: &[&str] = match extension {
        "rs" => &[include_str!("../crates/graph/src/graph/languages/rust.scm")],
        "py" | "pyi" => &[include_str!("../crates/graph/src/graph/languages/python.scm")],
        "tsx" => &[ECMASCRIPT, TYPESCRIPT, JSX],
        "ts" | "mts" | "cts" => &[ECMASCRIPT, TYPESCRIPT],
        _ => &[ECMASCRIPT, JAVASCRIPT, JSX],
    };
    parts.concat().replace(")+", ")")
}

fn ctags(tree: &Path) -> Option<Duration> {
    time(Command::new("ctags").args(["-R", "-f", "/dev/null"]).arg(tree))
}

/// One rule for each language, as a scan has at least.
fn ast_grep(tree: &Path, threads: usize) -> Option<Duration> {
    let rule = |language: &str| {
        format!(
            "{{id: {language}, language: {language}, severity: hint, rule: {{pattern: 'f($A)'}}}}"
        )
    };
    let rules = ["rust", "python", "typescript", "tsx", "javascript"].map(rule).join("\n---\n");
    let mut command = Command::new("ast-grep");
    command.args(["scan", "--inline-rules", &rules, "-j", &threads.to_string()]).arg(tree);
    time(&mut command)
}

/// The files that are parsed, large ones first.
fn sources(tree: &Path) -> Vec<(PathBuf, Language)> {
    let entries = ignore::WalkBuilder::new(tree).require_git(false).build().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let size = entry.metadata().ok().filter(fs::Metadata::is_file)?.len();
            let path = entry.into_path();
            Some((size, language(&path)?, path)).filter(|_| size <= 2 << 20)
        })
        .collect();
    files.sort_by_key(|(size, ..)| std::cmp::Reverse(*size));
    files.into_iter().map(|(_, language, path)| (path, language)).collect()
}

fn language(path: &Path) -> Option<Language> {
    Some(match path.extension()?.to_str()? {
        "rs" => tree_sitter_rust::LANGUAGE.into(),
        "py" | "pyi" => tree_sitter_python::LANGUAGE.into(),
        "ts" | "mts" | "cts" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        "tsx" => tree_sitter_typescript::LANGUAGE_TSX.into(),
        "js" | "jsx" | "mjs" | "cjs" => tree_sitter_javascript::LANGUAGE.into(),
        _ => return None,
    })
}

fn make(folder: &TempDir) -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).unwrap();
    let mut bytes = 0;
    for (number, (path, _)) in
        sources(&home.join("registry/src")).iter().rev().step_by(5).enumerate()
    {
        if number >= FILES || bytes >= BYTES {
            break;
        }
        let name = path.file_name().unwrap().to_string_lossy();
        let copy = folder.path().join(format!("{}/{number}-{name}", number % 50));
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        bytes += fs::copy(path, copy).unwrap();
    }
    folder.path().to_owned()
}

/// Bytes that were resident at most in any process that has ended.
fn peak() -> u64 {
    let kib = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    u64::try_from(kib).unwrap() << 10
}
