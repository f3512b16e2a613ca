//! The names that commands had before they were put into groups: each goes on working.

use std::ffi::OsString;

use clap::Command;

/// Each name of before, with what is typed in its place. One that the parser has as a hidden command takes its
/// arguments in another order than the new one; the others are replaced before the line is parsed.
pub(super) const OLD_NAMES: [(&str, &str); 42] = [
    ("wait", "runs wait"),
    ("result", "runs show"),
    ("kill", "runs stop"),
    ("batch", "runs batch"),
    ("tiers", "runs tiers"),
    ("blocked", "inbox --all"),
    ("resolve", "inbox allow|deny|answer"),
    ("conflicts", "inbox conflicts"),
    ("cost", "history cost"),
    ("start", "agent start"),
    ("stop", "agent stop"),
    ("restart", "agent restart"),
    ("cancel", "agent cancel"),
    ("compress", "agent compress"),
    ("attach", "agent attach"),
    ("watch", "agent watch"),
    ("logs", "agent logs"),
    ("fork", "session fork"),
    ("rewind", "session rewind"),
    ("replay", "session replay"),
    ("export", "journal export"),
    ("import", "journal import"),
    ("pin", "journal pin"),
    ("purge", "journal purge"),
    ("gc", "journal gc"),
    ("reload", "team reload"),
    ("budget", "team budget"),
    ("token", "team token"),
    ("streams", "team streams"),
    ("hub", "team hub"),
    ("connect", "team connect"),
    ("acp", "team acp"),
    ("mcp", "team mcp"),
    ("notify", "team notify"),
    ("templates", "team templates"),
    ("learn", "team learn"),
    ("schema", "dev schema"),
    ("snapshot", "dev snapshot"),
    ("plugin", "dev plugin"),
    ("scripted-agent", "dev scripted-agent"),
    ("completions", "dev completions"),
    ("man", "dev man"),
];

/// Commands whose standard error a program may take for a part of a conversation.
const SILENT: [&str; 4] = ["mcp", "attach", "acp", "connect"];

/// A line as it is parsed.
pub(super) struct TypedLine {
    pub(super) words: Vec<OsString>,
    /// The old name that was typed, with the new one.
    old: Option<(&'static str, &'static str)>,
    has_command: bool,
}

impl TypedLine {
    /// Puts the new name in the place of an old one, also behind `help`.
    pub(super) fn of(root: &Command, mut words: Vec<OsString>) -> Self {
        let Some(mut at) = command_at(root, &words) else {
            return Self { words, old: None, has_command: false };
        };
        at = options_first(root, &mut words, at);
        let is_help = words[at] == "help";
        at += usize::from(is_help);
        let name = words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
        let Some(old) = OLD_NAMES.into_iter().find(|(old, _)| *old == name) else {
            return Self { words, old: None, has_command: true };
        };
        if root.find_subcommand(name).is_none() {
            words.splice(at..=at, old.1.split(' ').map(OsString::from));
        }
        Self { words, old: Some(old).filter(|_| !is_help), has_command: true }
    }

    /// Whether the help of the whole program has every command: not where it comes by `-h`, or unasked.
    pub(super) fn asks_for_all(&self) -> bool {
        self.has_command || self.words.iter().any(|word| word == "--help")
    }

    /// The line for a person who typed an old name.
    pub(super) fn told(&self) -> Option<String> {
        let (old, new) = self.old.filter(|(old, _)| !SILENT.contains(old))?;
        Some(format!("note: `{old}` is now `eisen-core {new}`"))
    }
}

/// The place of the command in a line, behind the options of every command.
fn command_at(root: &Command, words: &[OsString]) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = words.get(at)?.to_string_lossy();
        let Some(option) = word.strip_prefix('-') else { return Some(at) };
        let name = option.strip_prefix('-').unwrap_or_default();
        at += 1 + usize::from(takes_value(root, name));
    }
}

/// Puts the options of every command that stand behind a command before it: of one that has parts, like `inbox`,
/// the parser takes what comes behind an option for no part. Returns the place of the command.
fn options_first(root: &Command, words: &mut [OsString], mut at: usize) -> usize {
    loop {
        let word = words.get(at + 1).map(|word| word.to_string_lossy()).unwrap_or_default();
        let Some(option) = word.strip_prefix("--") else { return at };
        let name = option.split_once('=').map_or(option, |(name, _)| name);
        let count = 1 + usize::from(name == option);
        // The parser takes the one behind the command, where both are there.
        let is_there = words[1..at].iter().any(|word| {
            word.to_string_lossy().strip_prefix("--").and_then(|it| it.split('=').next())
                == Some(name)
        });
        if !takes_value(root, name) || words.len() <= at + count || is_there {
            return at;
        }
        words[at..=at + count].rotate_left(1);
        at += count;
    }
}

/// Whether it is an option of every command with a value.
fn takes_value(root: &Command, name: &str) -> bool {
    let mut options = root.get_arguments().filter(|arg| arg.get_action().takes_values());
    options.any(|arg| arg.get_long() == Some(name))
}

/// The new name of a command; None for one that has its name.
pub(super) fn new_name(old: &str) -> Option<&'static str> {
    OLD_NAMES.into_iter().find(|(name, _)| *name == old).map(|(_, new)| new)
}

/// The table of docs/commands.md.
#[cfg(test)]
pub(super) fn table() -> String {
    use std::fmt::Write as _;
    let mut table = "| before | now |\n| --- | --- |\n".to_owned();
    for (old, new) in OLD_NAMES {
        let _ = writeln!(table, "| `{old}` | `{}` |", new.replace('|', "`, `inbox "));
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::FromArgMatches as _;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::help::command;

    /// The meaning of a line for the program.
    fn meaning(line: &str) -> String {
        let words = ["eisen-core"].into_iter().chain(line.split(' ')).map(OsString::from);
        let line = TypedLine::of(&command(false), words.collect());
        let matches = command(false).try_get_matches_from(line.words);
        format!("{:?}", Cli::from_arg_matches(&matches.unwrap()).unwrap())
    }

    #[test]
    fn each_old_name_means_what_its_new_one_means() {
        let arguments = [
            ("wait", "--any 01M8 01M9"),
            ("result", "--json 01M8"),
            ("kill", "--tree 01M8"),
            ("batch", "tasks.toml --dry-run"),
            ("tiers", "--json"),
            ("conflicts", "--status pending"),
            ("cost", "ui --by turn"),
            ("start", "--all --team x"),
            ("stop", "ui api"),
            ("restart", "ui --json"),
            ("cancel", "ui --session s"),
            ("compress", "ui"),
            ("attach", "ui --team x"),
            ("watch", "ui"),
            ("logs", "-f -n 3 ui"),
            ("fork", "ui/s1 --at 0199"),
            ("rewind", "ui/s1 --to 0199 --files"),
            ("replay", "shop --speed max --port 0"),
            ("export", "--team shop"),
            ("import", "shop.ndjson --team monday"),
            ("pin", "ui/s1 --remove"),
            ("purge", "--matching text --dry-run"),
            ("gc", "--dry-run"),
            ("reload", "--json"),
            ("budget", "--json"),
            ("token", "revoke 3fa9"),
            ("streams", "detach turns"),
            ("hub", "--nats nats://127.0.0.1:4222 --web"),
            ("connect", "ws://127.0.0.1:1/acp"),
            ("acp", "-c eisen.toml"),
            ("mcp", "--agent ui"),
            ("notify", "test -c night.toml"),
            ("templates", "reviewer"),
            ("learn", "ui --since 2026-11-24 --write"),
            ("schema", "--cwd x"),
            ("snapshot", "--stats"),
            ("plugin", "trust --list"),
            ("scripted-agent", "play.toml"),
            ("completions", "bash"),
            ("man", "prompt"),
        ];
        let other_order = ["blocked", "resolve"];
        let tried: Vec<_> = arguments.iter().map(|(old, _)| *old).chain(other_order).collect();
        for (old, _) in OLD_NAMES {
            assert!(tried.contains(&old), "{old} is not tried");
        }
        for (old, arguments) in arguments {
            let new = new_name(old).unwrap();
            let before = meaning(&format!("--cwd . {old} {arguments} --session-id s"));
            assert_eq!(before, meaning(&format!("--cwd . {new} {arguments} --session-id s")));
        }
        for old in ["blocked -f --status denied", "resolve b1 allow --scope session --team x"] {
            assert!(!meaning(old).is_empty());
        }
    }

    #[test]
    fn only_the_place_of_the_command_is_a_name() {
        let line = |line: &str| {
            let words = ["eisen-core"].into_iter().chain(line.split(' ')).map(OsString::from);
            TypedLine::of(&command(false), words.collect())
        };
        let words = |of: &str| {
            let words = line(of).words.into_iter().skip(1).collect::<Vec<_>>();
            words.join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(words("--team stop stop start"), "--team stop agent stop start");
        assert_eq!(words("inbox --team x --port=1 allow b1"), "--team x --port=1 inbox allow b1");
        assert_eq!(words("inbox --all --team x"), "inbox --all --team x");
        assert_eq!(words("inbox --team"), "inbox --team");
        assert_eq!(words("--port=7 kill 01"), "--port=7 runs stop 01");
        assert_eq!(words("run wait"), "run wait");
        assert_eq!(words("help token create"), "help team token create");
        assert_eq!(words("observe -- wait"), "observe -- wait");
        assert!(!line("--team x -h").asks_for_all() && line("--help").asks_for_all());
        let told = line("kill 01").told().unwrap();
        assert_eq!(told, "note: `kill` is now `eisen-core runs stop`");
        for silent in ["mcp", "connect x", "observe -- x", "help kill", "runs stop 01", "acp"] {
            assert_eq!(line(silent).told(), None, "{silent}");
        }
    }
}
