//! The options of every command: which of them the help of each command shows.

use clap::{ArgMatches, Command, CommandFactory as _};

use super::Cli;

/// Where an option means something that is not about a running team. All commands take all of them.
const SHOWN: [(&str, &[&str]); 4] = [
    ("agent_id", &["observe", "agent observe"]),
    ("session_id", &["observe", "agent observe"]),
    ("port", &["up", "observe", "agent observe", "team hub"]),
    (
        "cwd",
        &[
            "up",
            "run",
            "runs batch",
            "runs tiers",
            "init",
            "check",
            "why",
            "doctor",
            "observe",
            "agent observe",
            "team templates",
            "team notify test",
            "team trust-place",
            "dev snapshot",
            "dev plugin check",
            "dev plugin list",
            "dev plugin trust",
            "dev scripted-agent",
            "dev model-server",
            "dev man",
        ],
    ),
];

/// Gives each command the options of every command, shown in its help where they mean something.
pub(super) fn place(root: Command) -> Command {
    let options: Vec<_> = root.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    root.mut_subcommands(|command| place_in(command, "", false, &options))
}

fn place_in(command: Command, group: &str, has_team: bool, options: &[clap::Arg]) -> Command {
    let path = format!("{group}{}", command.get_name());
    let has_team = has_team || names_a_team(&command);
    let missing: Vec<_> = options
        .iter()
        // The parser hands it on from the command above.
        .filter(|option| !(has_team && option.get_id() == "team"))
        .filter(|option| command.get_arguments().all(|own| own.get_id() != option.get_id()))
        .map(|option| {
            let id = option.get_id().as_str();
            let is_of = SHOWN.iter().any(|(name, paths)| *name == id && paths.contains(&&*path));
            let shown = is_of || has_team && id == "port";
            option.clone().hide(!shown).help_heading(None::<&str>)
        })
        .collect();
    let group = format!("{path} ");
    command.args(missing).mut_subcommands(|command| place_in(command, &group, has_team, options))
}

/// Whether a command has `--team` as its own, in place of what it takes and does not need.
fn names_a_team(command: &Command) -> bool {
    command.get_arguments().any(|arg| arg.get_id() == "team")
}

/// The command that was typed, if it is about no team.
pub(super) fn without_team(matches: &ArgMatches) -> Option<String> {
    let (mut command, mut matches, mut path) = (&Cli::command(), matches, Vec::new());
    while let Some((name, part)) = matches.subcommand() {
        let next = command.find_subcommand(name)?;
        if names_a_team(next) {
            return None;
        }
        path.push(name);
        (command, matches) = (next, part);
    }
    Some(path.join(" "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::FromArgMatches as _;

    use super::*;
    use crate::cli::Command as Meant;
    use crate::cli::help::command;

    fn help(path: &[&str]) -> String {
        let mut root = command(true);
        root.build();
        let mut command = &mut root;
        for name in path {
            command = command.find_subcommand_mut(name).unwrap();
        }
        command.render_long_help().to_string()
    }

    #[test]
    fn help_shows_the_options_that_mean_something() {
        for (path, shown, hidden) in [
            (&["ps"][..], &["--team", "--port"][..], &["--agent-id", "--session-id", "--cwd"][..]),
            (&["init"], &["--cwd"], &["--team", "--port", "--agent-id"]),
            (
                &["agent", "observe"],
                &["--agent-id", "--session-id", "--port", "--cwd"],
                &["--team"],
            ),
            (&["team", "token", "list"], &["--team", "--port"], &["--cwd"]),
            (&[], &["--team", "--cwd"], &["--agent-id", "--session-id", "--port"]),
        ] {
            let help = help(path);
            for option in shown {
                assert!(help.contains(&format!("{option} <")), "{path:?} {option}: {help}");
            }
            for option in hidden {
                assert!(!help.contains(&format!("{option} <")), "{path:?} {option}: {help}");
            }
        }
    }

    #[test]
    fn every_path_is_one_of_a_command() {
        for path in SHOWN.iter().flat_map(|(_, paths)| paths.iter()) {
            help(&path.split(' ').collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_team_stands_at_any_place() {
        for line in [&["--team", "x", "ps"][..], &["ps", "--team", "x"]] {
            let line = ["eisen-core"].iter().chain(line);
            let matches = command(true).try_get_matches_from(line).unwrap();
            let cli = Cli::from_arg_matches(&matches).unwrap();
            let Meant::Ps(ps) = cli.command else { panic!("ps") };
            assert!(format!("{ps:?}").contains("team: Some(\"x\")"), "{ps:?}");
            assert_eq!(without_team(&matches), None);
        }
        let line = ["eisen-core", "--team", "x", "journal", "gc"];
        let matches = command(true).try_get_matches_from(line).unwrap();
        assert_eq!(without_team(&matches).unwrap(), "journal gc");
    }
}
