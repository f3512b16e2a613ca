//! The top-level help: command groups, examples, and help texts of commands without a file.

use std::fmt::Write as _;

use anstyle::Style;
use clap::CommandFactory;
use clap::builder::StyledStr;

use super::Cli;

/// Every command, grouped by task.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Run a team",
        &["init", "check", "templates", "doctor", "why", "team", "notify", "up", "down", "observe"],
    ),
    ("Run agents for tasks", &["run", "runs", "wait", "result", "kill", "tiers", "batch"]),
    ("Inspect a running team", &["top", "web", "watch", "ps", "logs", "blocked", "conflicts"]),
    (
        "Control a running team",
        &[
            "prompt", "compress", "cancel", "resolve", "budget", "acp", "attach", "mcp", "token",
            "start", "stop", "restart", "reload", "streams",
        ],
    ),
    (
        "Look back",
        &[
            "history", "cost", "diff", "blame", "undo", "redo", "fork", "rewind", "replay",
            "export", "import", "pin", "purge", "gc",
        ],
    ),
    (
        "Other",
        &[
            "hub",
            "connect",
            "snapshot",
            "plugin",
            "scripted-agent",
            "schema",
            "completions",
            "man",
            "help",
        ],
    ),
];

const EXAMPLES: &str = "\
Examples:
  eisen-core init                            write a starter eisen.toml for the agents found here
  eisen-core check -c eisen.toml             validate and explain the configuration
  eisen-core doctor                          look over agents, kernel, ports, disks and remains
  eisen-core up -c eisen.toml                run the team until Ctrl-C
  eisen-core up -d                           run it in the background, until eisen-core down
  eisen-core watch ui                        follow an agent's messages and tool calls
  eisen-core web                             print a link to the team's web page
  eisen-core ps --watch                      follow the state of all agents
  eisen-core prompt ui \"Add a footer\"        send a prompt to an agent
  eisen-core resolve b3 allow                allow a blocked access
  eisen-core history search footer           find what agents said and did, also of earlier runs
  eisen-core cost                            show what the agents spent
  eisen-core undo ui --dry-run               show what taking back an agent's work would change
  eisen-core observe --zone 'src/**' -- opencode acp

A running team is found automatically; if several run, select one with --team or --port.

Environment:
  EISEN_DIR   run files, logs, the registry of sessions (default: ~/.eisen)
  EISEN_LOG   log filter, such as `debug` or `eisen_core::proxy=trace` (else RUST_LOG, else `warn`)
  EISEN_TEAM  the team to use if several run

Exit codes: 0 done, 1 failed while running, 2 wrong usage or configuration; some commands have more.";

pub(super) const OBSERVE: &str = "\
Examples:
  eisen-core observe -- opencode acp
  eisen-core observe --zone 'src/**' --deny '**/.env' -- opencode acp
  eisen-core observe --plugin codex-exec-json -- codex exec --json 'Add a footer'

Exit codes: the agent's own, 128 + n after signal n; 1 failed, 2 wrong usage.";

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
  eisen-core doctor --fix                mend what is safe to mend, and say what was done
  eisen-core doctor --deep               start each installed agent: does it speak ACP?
  eisen-core doctor --json | jq '.[] | select(.state != \"ok\")'

Exit codes: 0 no errors, warnings at most, 1 errors are left, 2 wrong usage.";

pub(super) const SCHEMA: &str = "\
Examples:
  eisen-core schema > wire.schema.json

Exit codes: 0 printed.";

/// The whole command line.
pub(super) fn command() -> clap::Command {
    let command = Cli::command();
    let heading = Style::new().bold().underline();
    let mut help = StyledStr::new();
    let _ = write!(help, "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n");
    for (title, names) in GROUPS {
        let _ = write!(help, "\n{heading}{title}:{heading:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map_or_else(
                || "Print this help, or the help of a command".to_owned(),
                ToString::to_string,
            );
            let bold = Style::new().bold();
            let _ = writeln!(help, "  {bold}{name:<15}{bold:#} {about}");
        }
    }
    let _ = write!(help, "\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    command.help_template(help).after_help(EXAMPLES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn the_definition_is_valid() {
        command().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<_> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut all: Vec<_> =
            command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        all.push("help".to_owned());
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn every_command_has_examples() {
        let plain = ["scripted-agent", "schema"];
        for command in command().get_subcommands().filter(|c| !plain.contains(&c.get_name())) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{}", command.get_name());
        }
    }

    /// `docs/commands.md` is the output of `--help`; `UPDATE_EXPECT=1` rewrites it.
    #[test]
    fn the_document_is_the_help() {
        let mut document =
            "# Commands\n\nThe output of `eisen-core help` and `eisen-core help COMMAND`.\n"
                .to_owned();
        let mut root = command().term_width(100);
        root.build();
        let _ = write!(
            document,
            "\n```text\n{}\n```\n",
            root.render_long_help().to_string().trim_end()
        );
        for (_, names) in GROUPS {
            for name in names.iter().filter(|name| **name != "help") {
                let command = root.find_subcommand_mut(name).unwrap();
                describe(command, &mut document);
                for command in command.get_subcommands_mut().filter(|c| c.get_name() != "help") {
                    describe(command, &mut document);
                }
            }
        }
        expect_file!["../../docs/commands.md"].assert_eq(&document);
    }

    fn describe(command: &mut clap::Command, document: &mut String) {
        let name = command
            .get_display_name()
            .unwrap_or_default()
            .replacen("eisen-core-", "", 1)
            .replace("resolve-", "resolve ");
        let help = command.render_long_help().to_string();
        // The common options are printed once.
        let own = help.split("Options of every command:").next().unwrap_or_default();
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = if own.contains(&after) { own.to_owned() } else { format!("{own}{after}") };
        let lines: Vec<_> = own.lines().map(str::trim_end).collect();
        let _ =
            write!(document, "\n## {}\n\n```text\n{}\n```\n", name, lines.join("\n").trim_end());
    }
}
