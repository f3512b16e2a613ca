//! Sorts the arguments of one program into options, their values, and operands.

use std::slice;

use super::FileRole;
use super::programs::{Operands, Prefix, Program, program};

/// One argument, expanded where the value is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Argument {
    pub(super) text: String,
    /// Whether every expansion in it is known.
    pub(super) known: bool,
    /// Whether it is a pattern for file names.
    pub(super) pattern: bool,
    pub(super) quoted: bool,
}

impl Argument {
    pub(super) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), known: true, pattern: false, quoted: false }
    }

    /// `NAME=VALUE`.
    pub(super) fn assignment(&self) -> Option<(&str, &str)> {
        let (name, value) = self.text.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let is_name = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
            && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
        is_name.then_some((name, value))
    }

    fn with_text(&self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self.clone() }
    }
}

/// An argument that may name a file.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) argument: Argument,
    pub(super) role: FileRole,
    /// The argument is written; if it is a folder, files of these names in it are.
    pub(super) into: Option<Vec<String>>,
}

/// The script that a shell command runs.
pub(super) enum Script<'a> {
    Text(String),
    File(&'a Argument),
    Input,
}

/// Returns the arguments of a program that may name files, and in what role.
pub(super) fn uses(name: &str, args: &[Argument]) -> Vec<Use> {
    let Some(program) = program(name) else {
        return if name == "dd" { dd(args) } else { guesses(args) };
    };
    let takes_target = matches!(program.operands, Operands::Into(_) | Operands::Link)
        && program.valued.contains('t');
    let mut reading = Reading {
        program,
        takes_target,
        uses: Vec::new(),
        operands: Vec::new(),
        target: None,
        in_place: false,
        first_given: false,
    };
    let mut has_options = true;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.text.as_str();
        if !has_options || !text.starts_with('-') || text == "-" {
            reading.operands.push(arg);
        } else if text == "--" {
            has_options = false;
        } else if text.starts_with("--") {
            reading.long_option(arg, &mut rest);
        } else {
            reading.short_options(arg, &mut rest);
        }
    }
    let Reading { program, mut uses, mut operands, target, in_place, first_given, .. } = reading;
    operands.extend(&target);
    sort_operands(program.operands, operands, in_place, first_given, &mut uses);
    uses
}

/// The arguments of a program, as far as they are read.
struct Reading<'a> {
    program: Program,
    /// Has `-t TARGET`, as `cp` has.
    takes_target: bool,
    uses: Vec<Use>,
    operands: Vec<&'a Argument>,
    /// The target of `-t`, in place of the last operand.
    target: Option<Argument>,
    in_place: bool,
    /// An option stands in for the first operand.
    first_given: bool,
}

impl Reading<'_> {
    fn long_option(&mut self, arg: &Argument, rest: &mut slice::Iter<'_, Argument>) {
        let text = arg.text.as_str();
        let (option, value) = text.split_once('=').map_or((text, None), |(o, v)| (o, Some(v)));
        self.in_place |= self.program.in_place.contains(&option);
        self.first_given |= matches!(option, "--regexp" | "--expression" | "--file" | "--files");
        let value = value.map(|value| arg.with_text(value));
        if self.takes_target && option == "--target-directory" {
            self.target = value.or_else(|| rest.next().cloned());
        } else {
            // The option is unknown: its value may be a file.
            self.uses.extend(value.map(guess));
        }
    }

    /// Reads options of one letter that stand together, up to one with a value.
    fn short_options(&mut self, arg: &Argument, rest: &mut slice::Iter<'_, Argument>) {
        for (at, option) in arg.text.char_indices().skip(1) {
            let behind = at + option.len_utf8();
            self.in_place |= self.program.in_place.contains(&&arg.text[at..behind]);
            if let Operands::AllButFirst(_, instead) = self.program.operands {
                self.first_given |= instead.contains(option);
            }
            if self.in_place && option == 'i' {
                // The rest is the suffix of a backup.
                return;
            }
            if self.program.valued.contains(option) {
                let attached = &arg.text[behind..];
                let value = if attached.is_empty() {
                    rest.next().cloned()
                } else {
                    Some(arg.with_text(attached))
                };
                if self.takes_target && option == 't' {
                    self.target = value;
                    return;
                }
                let role = self.program.files.iter().find(|(file, _)| *file == option);
                if let (Some(argument), Some((_, role))) = (value, role) {
                    self.uses.push(Use { argument, role: *role, into: None });
                }
                return;
            }
        }
    }
}

fn sort_operands(
    kind: Operands,
    mut operands: Vec<&Argument>,
    in_place: bool,
    first_given: bool,
    uses: &mut Vec<Use>,
) {
    let taken = |argument: &Argument, role| {
        let role = if in_place { FileRole::Write } else { role };
        Use { argument: argument.clone(), role, into: None }
    };
    match kind {
        Operands::None => {}
        Operands::All(role) => uses.extend(operands.iter().map(|arg| taken(arg, role))),
        Operands::AllButFirst(role, _) => {
            // `sed -i ''`, as BSD has it, is followed by the script.
            if in_place && operands.first().is_some_and(|arg| arg.text.is_empty()) {
                operands.remove(0);
            }
            let skipped = usize::from(!first_given);
            uses.extend(operands.iter().skip(skipped).map(|arg| taken(arg, role)));
        }
        Operands::Into(role) => into(&operands, role, uses),
        Operands::Link if !in_place => into(&operands, FileRole::Read, uses),
        Operands::Link => {
            let (begun, here) = (uses.len(), Argument::plain("./"));
            let mut operands = operands;
            if operands.len() == 1 {
                operands.push(&here);
            }
            into(&operands, FileRole::Argument, uses);
            let folder = operands.last().map_or("", |link| link_folder(&link.text));
            for link in uses[begun..].iter_mut().filter(|link| link.into.is_none()) {
                if !link.argument.text.starts_with('/') {
                    link.argument.text.insert_str(0, folder);
                }
            }
        }
    }
}

/// Uses all operands but the last in a role, and writes the last.
fn into(operands: &[&Argument], role: FileRole, uses: &mut Vec<Use>) {
    let Some((target, sources)) = operands.split_last() else { return };
    let names = sources.iter().filter_map(|arg| arg.text.trim_end_matches('/').rsplit('/').next());
    let names = names.map(str::to_owned).collect();
    let sources = sources.iter().map(|arg| (*arg).clone());
    uses.extend(sources.map(|argument| Use { argument, role, into: None }));
    uses.push(Use { argument: (*target).clone(), role: FileRole::Write, into: Some(names) });
}

/// The folder of a new link, with its slash.
fn link_folder(link: &str) -> &str {
    &link[..link.rfind('/').map_or(0, |slash| slash + 1)]
}

/// Returns the command after a prefix (`env`, `sudo`), and a text to split (`env -S`).
pub(super) fn behind_prefix<'a>(
    args: &'a [Argument],
    prefix: &Prefix,
) -> (&'a [Argument], Option<String>) {
    let mut at = 0;
    let mut split = None;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with('-') && arg.assignment().is_none() {
            break;
        }
        at += 1;
        let takes_next = prefix.long_valued.contains(&text)
            || (!text.starts_with("--")
                && text.starts_with('-')
                && text.ends_with(|c| prefix.valued.contains(c)));
        if takes_next {
            if text.ends_with('S') || text == "--split-string" {
                split = args.get(at).map(|arg| arg.text.clone());
            }
            at += 1;
        }
    }
    (args.get(at + prefix.operands..).unwrap_or_default(), split)
}

/// Finds the script of `sh`, `bash`, ….
pub(super) fn shell_script(args: &[Argument]) -> Script<'_> {
    let mut gives_text = false;
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        let is_option = text.len() > 1 && text.starts_with(['-', '+']);
        if !is_option || text == "--" {
            at += usize::from(text == "--");
            break;
        }
        if !text.starts_with("--") {
            gives_text |= text.starts_with('-') && text.contains('c');
            // `-o pipefail`, `-O extglob`.
            at += usize::from(text.ends_with(['o', 'O']));
        } else if matches!(text, "--rcfile" | "--init-file") {
            at += 1;
        }
        at += 1;
    }
    match args.get(at) {
        Some(script) if gives_text => Script::Text(script.text.clone()),
        Some(file) => Script::File(file),
        None => Script::Input,
    }
}

/// Returns the command that `find -exec` runs.
pub(super) fn executed(args: &[Argument]) -> Option<&[Argument]> {
    let is_exec = |arg: &Argument| matches!(arg.text.as_str(), "-exec" | "-execdir" | "-ok" | "-x");
    let start = args.iter().position(is_exec)? + 1;
    let end = args[start..].iter().position(|arg| matches!(arg.text.as_str(), ";" | "+"));
    Some(&args[start..end.map_or(args.len(), |end| start + end)])
}

/// `dd if=FILE of=FILE`.
fn dd(args: &[Argument]) -> Vec<Use> {
    let used = |arg: &Argument| {
        let (name, value) = arg.text.split_once('=')?;
        let role = match name {
            "if" => FileRole::Read,
            "of" => FileRole::Write,
            _ => return None,
        };
        Some(Use { argument: arg.with_text(value), role, into: None })
    };
    args.iter().filter_map(used).collect()
}

/// Arguments of an unknown program: each may be a file, and so may an option's value.
fn guesses(args: &[Argument]) -> Vec<Use> {
    let guessed = |arg: &Argument| {
        let text = arg.text.as_str();
        let Some(option) = text.strip_prefix('-') else { return guess(arg.clone()) };
        let value = match option.split_once('=') {
            Some((_, value)) => value,
            // `-I/usr/include`, `-C../x`.
            None if !option.starts_with('-') => option.get(1..).unwrap_or_default(),
            None => "",
        };
        guess(arg.with_text(value))
    };
    args.iter().map(guessed).collect()
}

fn guess(argument: Argument) -> Use {
    Use { argument, role: FileRole::Argument, into: None }
}
