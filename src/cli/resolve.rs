use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};

use super::Global;
use super::output::print;
use super::team::{Which, failed};
use crate::app::Failure;
use crate::serve::client::resolve;

/// Decide a blocked access
///
/// The orchestrator agent finds its team by itself; elsewhere it is the one that runs, or the one
/// named by --team. Undecided ones of the same agent, path and action are settled with it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core blocked --status pending              what waits for a decision
  eisen-core resolve b1 allow                      this once
  eisen-core resolve b1 allow --scope session      this path, until the session ends
  eisen-core resolve b1 answer \"total() includes the discount\"
  eisen-core resolve b2 deny --message \"ask api\"

Exit codes: 0 decided, 1 refused or no such team, 2 wrong usage.")]
pub(super) struct Resolve {
    /// The blocked access, as `blocked` lines and briefings name it: b3
    id: String,
    #[command(subcommand)]
    decision: Decision,
    #[command(flatten)]
    which: Which,
}

#[derive(Subcommand, Debug)]
enum Decision {
    /// Let it through; one that was denied already may be tried again
    Allow {
        /// How long it holds: for this access, or for the path until the session ends
        #[arg(long, default_value = "once")]
        scope: Scope,
        /// Seconds after which it no longer holds
        #[arg(long, value_name = "S")]
        ttl: Option<f64>,
    },
    /// Refuse it
    Deny {
        /// What the agent is told beside the refusal
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
    },
    /// Give the content of a read yourself
    Answer {
        /// The content; `-` reads standard input
        #[arg(required_unless_present = "file")]
        text: Option<String>,
        /// A file with the content
        #[arg(long, value_name = "PATH", conflicts_with = "text")]
        file: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Scope {
    Once,
    Session,
}

impl Resolve {
    /// A file is looked for in the folder to work in.
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let folder = global.cwd.clone().unwrap_or_default();
        let verdict = self.decision.verdict(&folder).map_err(Failure::Usage)?;
        let target = self.which.find(global)?;
        print(resolve::resolve(&target, &self.id, verdict).await.map_err(failed)?)
    }
}

impl Decision {
    fn verdict(self, folder: &Path) -> anyhow::Result<resolve::Verdict> {
        Ok(match self {
            Self::Allow { scope, ttl } => {
                resolve::Verdict::Allow { session: scope == Scope::Session, ttl_s: ttl }
            }
            Self::Deny { message } => resolve::Verdict::Deny { message },
            Self::Answer { text, file } => resolve::Verdict::Answer {
                content: content(text, file.map(|file| folder.join(file)))?,
            },
        })
    }
}

fn content(text: Option<String>, file: Option<PathBuf>) -> anyhow::Result<String> {
    match (text, file) {
        (_, Some(file)) => std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read the content from {}", file.display())),
        (Some(text), None) if text != "-" => Ok(text),
        _ => {
            let mut content = String::new();
            std::io::stdin()
                .read_to_string(&mut content)
                .context("cannot read the content from standard input")?;
            Ok(content)
        }
    }
}
