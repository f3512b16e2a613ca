//! Shell completions and man pages, generated from the command line's definition.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use clap_complete::Shell;

use super::names::new_name;
use super::output::{print, write};
use crate::program::Failure;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  source <(eisen-core dev completions bash)
  eisen-core dev completions zsh > \"${fpath[1]}/_eisen-core\"
  eisen-core dev completions fish > ~/.config/fish/completions/eisen-core.fish")]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print a man page, or write all man pages to a folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core dev man | man -l -
  eisen-core dev man prompt | man -l -
  eisen-core dev man agent stop | man -l -
  eisen-core dev man --out /usr/local/share/man/man1")]
pub(super) struct Man {
    /// Command to print the page of [default: the page of the whole program]
    command: Vec<String>,
    /// Write the pages of all commands to this folder, created if needed
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

impl Completions {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(true), "eisen-core", &mut script);
        if self.shell == Shell::Bash {
            // Fixes the completion of programs with a hyphen in their name:
            // https://github.com/clap-rs/clap/issues/6421
            let generated = String::from_utf8_lossy(&script);
            script = generated.replace("eisen__subcmd__core", "eisen__core").into_bytes();
        }
        write(&script)
    }
}

impl Man {
    pub(super) fn run(self, folder: Option<PathBuf>) -> Result<(), Failure> {
        let pages = pages().map_err(|error| Failure::Run(error.into()))?;
        if let Some(out) = self.out {
            let out = folder.unwrap_or_default().join(out);
            let written = std::fs::create_dir_all(&out).and_then(|()| {
                pages.iter().try_for_each(|(name, page)| {
                    std::fs::File::create(out.join(format!("{name}.1")))?.write_all(page)
                })
            });
            written
                .with_context(|| format!("cannot write man pages to {}", out.display()))
                .map_err(Failure::Run)?;
            return print(format_args!("wrote {} pages to {}", pages.len(), out.display()));
        }
        let command = self.command.join(" ");
        let Some(page) = page_of(&pages, &command) else {
            let names: Vec<_> =
                pages.iter().filter_map(|(name, _)| name.strip_prefix("eisen-core-")).collect();
            let names: Vec<_> = names.iter().map(|name| name.replace('-', " ")).collect();
            let wanted = format!("eisen-core-{}", command.replace(' ', "-"));
            let message = format!("there is no page `{wanted}`; available: {}", names.join(", "));
            return Err(Failure::Usage(anyhow::anyhow!(message)));
        };
        write(page)
    }
}

/// The page of a command, also by its old name, and by words that are joined as in names of pages. Of the
/// group, where the new name is more than one of a command.
fn page_of<'a>(pages: &'a [(String, Vec<u8>)], command: &str) -> Option<&'a [u8]> {
    let spaced = command.replace('-', " ");
    let renamed = [command, &spaced].into_iter().filter_map(|command| {
        let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
        Some(format!("{} {rest}", new_name(first)?))
    });
    std::iter::once(command.to_owned()).chain(renamed).find_map(|command| {
        let words = command.split_whitespace();
        let words = words.take_while(|word| !word.starts_with('-') && !word.contains('|'));
        let wanted = std::iter::once("eisen-core").chain(words).collect::<Vec<_>>().join("-");
        pages.iter().find(|(name, _)| *name == wanted).map(|(_, page)| page.as_slice())
    })
}

/// The pages of all commands, by name.
fn pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut root = super::command(true).disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    let mut waiting = vec![root];
    while let Some(command) = waiting.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        waiting.extend(command.get_subcommands().filter(|c| !c.is_hide_set()).cloned());
        let mut page = Vec::new();
        let man = clap_mangen::Man::new(command).title(name.to_uppercase());
        man.source(concat!("eisen-core ", env!("CARGO_PKG_VERSION"))).render(&mut page)?;
        pages.push((name, page));
    }
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn old_names_have_pages() {
        let pages = pages().unwrap();
        for (old, new) in [
            ("token-create", "team token create"),
            ("plugin trust", "dev plugin trust"),
            ("streams-attach", "team streams attach"),
            ("scripted-agent", "dev scripted-agent"),
            ("resolve", "inbox"),
        ] {
            assert!(page_of(&pages, new).is_some(), "{new}");
            assert_eq!(page_of(&pages, old), page_of(&pages, new), "{old}");
        }
        assert!(page_of(&pages, "").is_some() && page_of(&pages, "no-such").is_none());
    }
}
