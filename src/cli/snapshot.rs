//! `snapshot`: prints the code graph of a folder.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::{failure, note};
use crate::graph::{self, Kind, Rule, Settings, Snapshot, Work};
use crate::home;
use crate::program::Failure;

/// Delay before the progress bar is shown.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

/// Print the code graph of a folder: files, types, functions, and calls between them
///
/// Ignored and hidden files are left out, and links are not followed. docs/graph.md explains the
/// output and lists the supported languages.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core dev snapshot  the graph of this folder, as JSON
  eisen-core dev snapshot --root shop --stats > graph.json
  eisen-core dev snapshot --format ndjson | grep '\"kind\":\"class\"'
  eisen-core dev snapshot --format dot | dot -Tsvg > graph.svg

Parsed files are cached in $XDG_CACHE_HOME/eisen-core (else ~/.cache/eisen-core). The cache can be
deleted at any time.

Exit codes: 0 printed, 1 could not be printed, 2 the folder cannot be read.")]
pub(super) struct SnapshotArgs {
    /// The folder [default: the working directory]
    #[arg(long, value_name = "PATH")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    format: Format,
    /// Also print counts and the time taken, on standard error
    #[arg(long)]
    stats: bool,
    /// Number of files parsed in parallel [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Don't count tokens, which takes most of the time
    #[arg(long)]
    no_tokens: bool,
    /// Neither read nor write the cache
    #[arg(long)]
    no_cache: bool,
}

#[derive(ValueEnum, Clone, Copy, Default, Debug)]
enum Format {
    /// One JSON object: `seq`, `nodes` by id, `calls`
    #[default]
    Json,
    /// One JSON line for each node and each call
    Ndjson,
    /// The calls as a Graphviz graph
    Dot,
}

impl SnapshotArgs {
    pub(super) fn run(self, folder: Option<PathBuf>) -> Result<(), Failure> {
        let folder = folder.unwrap_or_else(|| PathBuf::from("."));
        let root = self.root.as_ref().map_or_else(|| folder.clone(), |root| folder.join(root));
        let cache = if self.no_cache { None } else { home::cache_folder() };
        let settings = Settings { jobs: self.jobs(), tokens: !self.no_tokens, cache };
        let start = Instant::now();
        let bar = Bar::new();
        let scanned = graph::scan(&root, &settings, &|done, of| {
            bar.show(done, of);
            true
        });
        bar.clear();
        let (graph, snapshot, work) =
            scanned.map_err(|error| Failure::Usage(unreadable(&root, &error)))?;
        let mut stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        self.format.write(&snapshot, &mut stdout).and_then(|()| stdout.flush()).map_err(failure)?;
        if self.stats {
            report(&graph, &snapshot, &work, start.elapsed());
        }
        // The process ends now: freeing the graph would only take time.
        std::mem::forget((graph, snapshot));
        Ok(())
    }

    fn jobs(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, Into::into);
        self.jobs.map_or_else(processors, usize::from)
    }
}

fn unreadable(root: &Path, error: &io::Error) -> anyhow::Error {
    let root = root.display();
    match error.kind() {
        io::ErrorKind::NotFound => anyhow!("there is no folder {root}"),
        io::ErrorKind::NotADirectory => anyhow!("{root} is not a folder"),
        _ => anyhow!("cannot read the folder {root}: {error}"),
    }
}

impl Format {
    fn write(self, snapshot: &Snapshot, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Json => {
                serde_json::to_writer(&mut *out, snapshot)?;
                writeln!(out)
            }
            Self::Ndjson => {
                for (id, node) in &snapshot.nodes {
                    serde_json::to_writer(&mut *out, &SnapshotLine { id, node })?;
                    writeln!(out)?;
                }
                for edge in &snapshot.calls {
                    serde_json::to_writer(&mut *out, edge)?;
                    writeln!(out)?;
                }
                Ok(())
            }
            Self::Dot => {
                writeln!(out, "digraph calls {{\n  rankdir=LR;\n  node [shape=box];")?;
                for edge in &snapshot.calls {
                    writeln!(out, "  {} -> {};", quoted(&edge.from), quoted(&edge.to))?;
                }
                writeln!(out, "}}")
            }
        }
    }
}

#[derive(serde::Serialize)]
struct SnapshotLine<'a> {
    id: &'a str,
    #[serde(flatten)]
    node: &'a graph::Node,
}

/// A Graphviz string.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

fn report(graph: &graph::Graph, snapshot: &Snapshot, work: &Work, took: Duration) {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut languages: BTreeMap<&str, usize> = BTreeMap::new();
    for node in snapshot.nodes.values() {
        *kinds.entry(node.kind).or_default() += 1;
        if node.kind == Kind::File {
            *languages.entry(node.language.unwrap_or("other")).or_default() += 1;
        }
    }
    let rules = graph.rules().into_iter().map(|(rule, count)| (rule_name(rule), count));
    let kinds = kinds.into_iter().map(|(kind, count)| (kind_name(kind), count));
    note(format_args!("files  {}", counts(languages)));
    note(format_args!("nodes  {}", counts(kinds)));
    note(format_args!("calls  {}", counts(rules)));
    note(format_args!(
        "work   {} files read ({} bytes), {} parsed, {:.2} s",
        work.read,
        work.bytes,
        work.parsed,
        took.as_secs_f64()
    ));
}

fn counts(counted: impl IntoIterator<Item = (&'static str, usize)>) -> String {
    let parts: Vec<_> =
        counted.into_iter().map(|(name, count)| format!("{count} {name}")).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn rule_name(rule: Rule) -> &'static str {
    match rule {
        Rule::Scope => "by scope",
        Rule::File => "by file",
        Rule::Import => "by import",
        Rule::Folder => "by folder",
        Rule::Workspace => "by unique name",
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Folder => "folder",
        Kind::File => "file",
        Kind::Class => "class",
        Kind::Method => "method",
        Kind::Function => "function",
    }
}

/// A progress bar on a terminal, shown after [`PROGRESS_DELAY`].
struct Bar {
    drawn: ProgressBar,
    start: Instant,
    shown: OnceLock<()>,
    terminal: bool,
}

impl Bar {
    fn new() -> Self {
        Self {
            drawn: ProgressBar::hidden(),
            start: Instant::now(),
            shown: OnceLock::new(),
            terminal: io::stderr().is_terminal(),
        }
    }

    fn show(&self, done: usize, of: usize) {
        if !self.terminal || self.start.elapsed() < PROGRESS_DELAY {
            return;
        }
        self.shown.get_or_init(|| {
            self.drawn.set_draw_target(ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:40} {pos} of {len} files");
            self.drawn.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        });
        self.drawn.set_length(of as u64);
        self.drawn.set_position(done as u64);
    }

    fn clear(&self) {
        self.drawn.finish_and_clear();
    }
}
