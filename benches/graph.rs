//! What a snapshot costs, against bare parsing of the same bytes and against ctags in the same run.
//! Ratios, so that the machine cancels out; what else runs on it does not. `EISEN_TREE` names the
//! tree; without it, one of about 2,000 files is made of the sources in cargo's registry.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run is to say so")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use eisen_core::graph::{Settings, scan};
use tempfile::TempDir;
use tree_sitter::{Language, Parser};

const FILES: usize = 2_000;
const BYTES: u64 = 20 << 20;
const ROUNDS: usize = 3;

fn main() {
    let made = tempfile::tempdir().unwrap();
    let tree = std::env::var_os("EISEN_TREE").map_or_else(|| make(&made), PathBuf::from);
    let files = sources(&tree);
    let bytes: u64 = files.iter().map(|(path, _)| fs::metadata(path).unwrap().len()).sum();
    println!("{} files that are parsed, {bytes} bytes", files.len());
    let memory_before = peak();
    let threads = std::thread::available_parallelism().map_or(1, Into::into).min(2);
    let cold = || snapshot(&tree, threads, None);
    println!("cold / bare parsing     {:>8.2}", ratio(cold, || bare(&files, threads)));
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let memory = (peak() - memory_before) as f64 / bytes as f64;
    println!("memory / source bytes   {memory:>8.2}");
    println!(
        "one thread / two        {:>8.2}",
        ratio(|| snapshot(&tree, 1, None), || snapshot(&tree, 2, None))
    );
    let cache = tempfile::tempdir().unwrap();
    // What was written just now is not trusted to stay.
    std::thread::sleep(Duration::from_secs(3));
    snapshot(&tree, threads, Some(cache.path()));
    if ctags(&tree).is_some() {
        let warm = || snapshot(&tree, threads, Some(cache.path()));
        println!("warm / ctags            {:>8.2}", ratio(warm, || ctags(&tree).unwrap()));
    } else {
        println!("warm / ctags            there is no ctags");
    }
}

/// The median of how much longer the one takes, in turns.
fn ratio(one: impl Fn() -> Duration, other: impl Fn() -> Duration) -> f64 {
    let mut ratios: Vec<_> =
        (0..ROUNDS).map(|_| one().as_secs_f64() / other().as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ROUNDS / 2]
}

fn snapshot(tree: &Path, jobs: usize, cache: Option<&Path>) -> Duration {
    let start = Instant::now();
    let settings = Settings { jobs, tokens: false, cache: cache.map(Path::to_owned) };
    let (graph, _) = scan(tree, &settings, &|_, _| true).unwrap();
    serde_json::to_writer(std::io::sink(), &graph.snapshot()).unwrap();
    start.elapsed()
}

fn bare(files: &[(PathBuf, Language)], threads: usize) -> Duration {
    let start = Instant::now();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut parser = Parser::new();
                while let Some((path, language)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    parser.set_language(language).unwrap();
                    parser.parse(fs::read(path).unwrap(), None).unwrap();
                }
            });
        }
    });
    start.elapsed()
}

fn ctags(tree: &Path) -> Option<Duration> {
    let start = Instant::now();
    let mut command = Command::new("ctags");
    command.args(["-R", "-f", "/dev/null"]).arg(tree).stderr(Stdio::null());
    command.status().ok().map(|_| start.elapsed())
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

/// Bytes that were resident at most.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
