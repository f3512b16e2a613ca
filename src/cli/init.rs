//! `init`: writes a starter `eisen.toml`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;

use super::output::{note, plain, print, write};
use crate::config::Starter;
use crate::config::installed::known_agents;
use crate::program::Failure;

/// Write a commented starter eisen.toml, with the agents found on PATH
///
/// At most three agents work on the folder together, those that are logged in first; what `up` runs
/// without a file is the same. With --agents each gets a folder as its zone, and the files that the
/// workspace's builds need. Read it, adjust it, and run `check` to see what it means.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core init                        write ./eisen.toml, unless it exists
  eisen-core init --agents ui,api        an agent for the folder ui, and one for api
  eisen-core init --agents ui=web,api=server/api
  eisen-core init --force                replace an existing file
  eisen-core init --stdout | less        only show it
  eisen-core init -c shop/eisen.toml     for the folder shop

Exit codes: 0 written, 1 could not be written, 2 the file exists already.")]
pub(super) struct Init {
    /// The file to write; `-` prints it instead
    #[arg(short, long, value_name = "FILE", default_value = "eisen.toml")]
    config: PathBuf,
    /// Agents by the names of their folders, or NAME=FOLDER; they share the agent programs found
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    agents: Vec<String>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print the file instead of writing it
    #[arg(long, conflicts_with = "force")]
    stdout: bool,
}

impl Init {
    pub(super) fn run(self, folder: Option<PathBuf>) -> Result<(), Failure> {
        let print_only = self.stdout || self.config == Path::new("-");
        let named =
            if self.config == Path::new("-") { Path::new("eisen.toml") } else { &self.config };
        let file = super::in_folder(folder, named);
        let workspace = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let path = std::env::var("PATH").unwrap_or_default();
        let workspace = workspace.unwrap_or(Path::new("."));
        let variable = |name: &str| std::env::var(name).ok();
        let starter = match &self.agents[..] {
            [] => Starter::look(workspace, &variable),
            agents => Starter::divide(workspace, &path, agents)
                .map_err(|error| Failure::Usage(error.into()))?
                .offering(&variable),
        };
        if print_only {
            write(starter.text().as_bytes())?;
        } else {
            self.save(&file, &starter.text())?;
            print(format_args!("wrote {}", plain(&file.display().to_string())))?;
            for agent in &starter.agents {
                let zone = match &agent.allowed[..] {
                    [] => "the whole folder".to_owned(),
                    allowed => format!("zone {}", allowed.join(", ")),
                };
                print(format_args!(
                    "  {:<12} {}: {}",
                    agent.id,
                    agent.profile.title,
                    plain(&zone)
                ))?;
            }
        }
        for known in &starter.without_adapter {
            note(format_args!(
                "{} is installed, but not its ACP adapter, {}: {}",
                known.title, known.programs, known.install
            ));
        }
        if starter.agents.is_empty() {
            report_no_agents();
        } else if !print_only {
            print("next: `eisen-core check` explains it, `eisen-core up` runs it")?;
        }
        Ok(())
    }

    fn save(&self, file: &Path, text: &str) -> Result<(), Failure> {
        let mut options = std::fs::OpenOptions::new();
        if self.force {
            options.write(true).create(true).truncate(true);
        } else {
            // Fails if another process creates the file at the same time.
            options.write(true).create_new(true);
        }
        match options.open(file) {
            Ok(mut open) => open
                .write_all(text.as_bytes())
                .with_context(|| format!("cannot write {}", file.display()))
                .map_err(Failure::Run),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Failure::Usage(anyhow!(
                    "{} exists already; --force replaces it, --stdout prints the new file instead",
                    file.display()
                )))
            }
            Err(error) => Err(Failure::Run(
                anyhow::Error::new(error).context(format!("cannot write {}", file.display())),
            )),
        }
    }
}

fn report_no_agents() {
    note("no agent was found on PATH; eisen-core looks for these:");
    for known in known_agents() {
        note(format_args!("  {:<20} {:<36} {}", known.title, known.programs, known.install));
    }
    note(
        "any other agent that speaks ACP can be configured by its `command`; `eisen-core \
         scripted-agent` is one that needs no account",
    );
}
