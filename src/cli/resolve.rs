use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};

use crate::app::{self, Failure};
use crate::serve::client::{Environment, Target, resolve};

/// Decides a blocked access of a running team.
///
/// The orchestrator agent finds its team by itself; elsewhere it is the one that runs, or the one
/// named by --team.
#[derive(Args, Debug)]
pub(super) struct Resolve {
    /// The blocked access, as `blocked` lines and briefings name it: b3
    id: String,
    #[command(subcommand)]
    decision: Decision,
    /// The team, if several run
    #[arg(long, global = true, value_name = "NAME")]
    team: Option<String>,
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
    /// `port` picks the team that listens there; a file is looked for in `folder`.
    pub(super) async fn run(
        self,
        port: Option<u16>,
        folder: Option<PathBuf>,
    ) -> Result<(), Failure> {
        let verdict = self.decision.verdict(&folder.unwrap_or_default()).map_err(Failure::Usage)?;
        let environment = Environment::of_process();
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        let outcome = async {
            let target = Target::find(&environment, &eisen_dir, self.team.as_deref(), port)?;
            resolve::resolve(&target, &self.id, verdict).await
        };
        let sentence = outcome.await.map_err(|error| Failure::Run(error.into()))?;
        writeln!(std::io::stdout(), "{sentence}").map_err(|error| Failure::Run(error.into()))
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
