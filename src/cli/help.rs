//! The top-level help: command groups, examples, and help texts of commands without a file.

use std::fmt::Write as _;

use anstyle::Style;
use clap::CommandFactory;
use clap::builder::StyledStr;

use super::{Cli, options};

/// The commands that a first day needs.
const FIRST: [&str; 6] = ["run", "up", "web", "prompt", "inbox", "undo"];

/// Every command that is no group, by task.
const TASKS: [(&str, &[&str]); 5] = [
    ("Run agents", &["run", "runs", "up", "down", "init", "check", "why", "doctor", "observe"]),
    ("Work on branches", &["branches", "review", "merge"]),
    ("See a running team, and decide", &["web", "top", "ps", "prompt", "inbox"]),
    ("Look back", &["history", "diff", "blame", "undo", "redo"]),
    ("Other", &["help"]),
];

/// Commands that do nothing without one of theirs.
const GROUPS: [&str; 5] = ["agent", "session", "journal", "team", "dev"];

/// Columns of the short help.
const COLUMNS: usize = 80;

const EXAMPLES: &str = "\
Examples:
  eisen-core init                         write a starter eisen.toml for the agents found here
  eisen-core check -c eisen.toml          validate and explain the configuration
  eisen-core doctor                       look over agents, kernel, ports, disks and remains
  eisen-core up -c eisen.toml             run the team until Ctrl-C
  eisen-core up -d                        run it in the background, until eisen-core down
  eisen-core run \"Which tests cover it?\"  run one agent for one task; needs no configuration
  eisen-core run --branch fix/cart \"Fix it\"  in a worktree of its own; eisen-core merge fix/cart
  eisen-core agent watch ui               follow an agent's messages and tool calls
  eisen-core web                          print a link to the team's web page
  eisen-core ps --watch                   follow the state of all agents
  eisen-core prompt ui \"Add a footer\"     send a prompt to an agent
  eisen-core inbox allow b3               allow a blocked access
  eisen-core history search footer        find what agents said and did, also of earlier runs
  eisen-core history cost                 show what the agents spent
  eisen-core undo ui --dry-run            show what taking back an agent's work would change
  eisen-core observe --zone 'src/**' -- opencode acp

A running team is found automatically; if several run, select one with --team or --port.

Environment:
  EISEN_DIR   run files, logs, the registry of sessions (default: ~/.eisen)
  EISEN_LOG   log filter, such as `debug` or `eisen_core::proxy=trace` (else RUST_LOG, else `warn`)
  EISEN_TEAM  the team to use if several run

Exit codes: 0 done, 1 failed while running, 2 wrong usage or configuration; some commands have more.";

pub(super) const CHECK: &str = "\
Examples:
  eisen-core check
  eisen-core check -c shop/eisen.toml
  eisen-core check --path src/api/cart.rs --agent ui --action read
  which rule of [[routing]] decides

Exit codes: 0 the configuration is valid, 2 it is not.";

pub(super) const DOCTOR: &str = "\
Examples:
  eisen-core doctor
  eisen-core doctor --fix   mend what is safe to mend, and say what was done
  eisen-core doctor --deep  start each installed agent: does it speak ACP?
  eisen-core doctor --json | jq '.[] | select(.state != \"ok\")'

Exit codes: 0 no errors, warnings at most, 1 errors are left, 2 wrong usage.";

pub(super) const SCHEMA: &str = "\
Examples:
  eisen-core dev schema > wire.schema.json

Exit codes: 0 printed.";

const SHORT: &str = "\
All commands, with examples: `eisen-core --help`. One: `eisen-core COMMAND -h`.";

/// The whole command line. Its own help has all commands, or fits a screen.
pub(super) fn command(has_all: bool) -> clap::Command {
    let command = options::place(Cli::command());
    let help = if has_all { long(&command) } else { short(&command) };
    let after = if has_all { EXAMPLES } else { SHORT };
    command.help_template(help).after_help(after)
}

fn long(command: &clap::Command) -> StyledStr {
    let mut help = begun();
    for (title, names) in TASKS.iter().take(TASKS.len() - 1) {
        heading(&mut help, title);
        for name in *names {
            row(&mut help, name, &about(command, name));
        }
    }
    for group in GROUPS {
        let Some(command) = command.find_subcommand(group) else { continue };
        let title = format!("{}, by `{group} COMMAND`", about_of(command));
        heading(&mut help, &title);
        for part in command.get_subcommands() {
            row(&mut help, part.get_name(), &about_of(part));
        }
    }
    for (title, names) in TASKS.iter().skip(TASKS.len() - 1) {
        heading(&mut help, title);
        for name in *names {
            row(&mut help, name, &about(command, name));
        }
    }
    let heading = HEADING;
    let _ = write!(help, "\n\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    help
}

fn short(command: &clap::Command) -> StyledStr {
    let mut help = begun();
    heading(&mut help, "Begin with");
    for name in FIRST {
        row(&mut help, name, &about(command, name));
    }
    heading(&mut help, "Also");
    let others = TASKS.iter().flat_map(|(_, names)| names.iter());
    let mut line = String::new();
    for name in others.filter(|name| !FIRST.contains(name)) {
        if line.len() + name.len() + 3 > COLUMNS {
            let _ = write!(help, "\n {line}");
            line.clear();
        }
        line.push(' ');
        line.push_str(name);
    }
    let _ = write!(help, "\n {line}");
    heading(&mut help, "Groups");
    for group in GROUPS {
        let parts = command.find_subcommand(group).into_iter();
        let parts: Vec<_> = parts.flat_map(clap::Command::get_subcommands).collect();
        let mut names = String::new();
        for part in parts {
            // Beside the names: two columns before the group, one behind it, and one for what is left out.
            if names.len() + part.get_name().len() + NAME_COLUMNS + 5 > COLUMNS {
                names.push('…');
                break;
            }
            names += part.get_name();
            names.push(' ');
        }
        row(&mut help, group, names.trim_end());
    }
    let _ = write!(help, "{{after-help}}");
    help
}

const HEADING: Style = Style::new().bold().underline();

/// Columns of a name in a list of commands.
const NAME_COLUMNS: usize = 15;

fn begun() -> StyledStr {
    let mut help = StyledStr::new();
    let _ = write!(help, "{{about-with-newline}}\n{{usage-heading}} {{usage}}");
    help
}

fn heading(help: &mut StyledStr, title: &str) {
    let heading = HEADING;
    let _ = write!(help, "\n\n{heading}{title}:{heading:#}");
}

fn row(help: &mut StyledStr, name: &str, about: &str) {
    let bold = Style::new().bold();
    let _ = write!(help, "\n  {bold}{name:<NAME_COLUMNS$}{bold:#} {about}");
}

fn about(command: &clap::Command, name: &str) -> String {
    let command = command.find_subcommand(name);
    command.map_or_else(|| "Print this help, or the help of a command".to_owned(), about_of)
}

fn about_of(command: &clap::Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use expect_test::expect_file;

    use super::*;
    use crate::cli::names;

    #[test]
    fn the_definition_is_valid() {
        command(true).debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<_> =
            TASKS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.extend(GROUPS);
        let command = command(true);
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut all: Vec<_> = shown.map(|c| c.get_name().to_owned()).collect();
        all.push("help".to_owned());
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn every_command_has_examples() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_plain = path.ends_with(" scripted-agent") || path.contains(" plugin ");
            let is_plain = is_plain
                || [" streams detach", " history search", " history show"]
                    .iter()
                    .any(|plain| path.ends_with(plain))
                || path.contains(" resolve ");
            assert!(is_plain || help.contains("Examples:"), "{path}");
            for part in command.get_subcommands() {
                check(part, &path);
            }
        }
        for command in command(true).get_subcommands() {
            check(command, "");
        }
    }

    #[test]
    fn the_short_help_is_one_screen() {
        let help = command(false).term_width(COLUMNS).render_help().to_string();
        assert!(help.lines().count() <= 24, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= COLUMNS), "{help}");
        for name in FIRST {
            assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}");
        }
    }

    /// `docs/commands.md` is the output of `--help`; `UPDATE_EXPECT=1` rewrites it.
    #[test]
    fn the_document_is_the_help() {
        let mut document =
            "# Commands\n\nThe output of `eisen-core help` and `eisen-core help COMMAND`. \
             [Names of before](#names-of-before) go on working.\n"
                .to_owned();
        let mut root = command(true).term_width(100);
        root.build();
        let _ = write!(
            document,
            "\n```text\n{}\n```\n",
            root.render_long_help().to_string().trim_end()
        );
        let names = TASKS.iter().flat_map(|(_, names)| names.iter()).chain(&GROUPS);
        for name in names.filter(|name| **name != "help") {
            describe(root.find_subcommand_mut(name).unwrap(), "", &mut document);
        }
        let _ = write!(
            document,
            "\n## Names of before\n\nEach of these commands has a place in a group now. Its old name goes on \
             working, with the same\narguments, output and exit codes; on a terminal a line on standard error says \
             the new one.\n\n{}",
            names::table()
        );
        expect_file!["../../docs/commands.md"].assert_eq(&document);
    }

    fn describe(command: &mut clap::Command, group: &str, document: &mut String) {
        let name = format!("{group}{}", command.get_name());
        let help = command.render_long_help().to_string();
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // As it is written: the help breaks its lines.
        let begins = after.lines().next().unwrap_or_default();
        let own = match help.find(&format!("\n{begins}\n")).filter(|_| !begins.is_empty()) {
            Some(at) => format!("{}\n{after}", &help[..at]),
            None => help,
        };
        let lines: Vec<_> = own.lines().map(str::trim_end).collect();
        let _ = write!(document, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
        let group = format!("{name} ");
        for part in command.get_subcommands_mut().filter(|it| it.get_name() != "help") {
            describe(part, &group, document);
        }
    }
}
