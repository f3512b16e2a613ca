//! `command` and `env`: how a process is started, in every table that has them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::de::DeValue;

use super::errors::{code, quoted};
use super::fault::Fault;
use super::read::Table;

/// A command with this program stands for the running executable, wherever it is installed.
const SELF: &str = "eisen-core";

/// Reads `command`: a program, resolved against the file's folder if it is a path, and arguments.
pub(super) fn command(table: &Table<'_>) -> Option<Vec<String>> {
    command_at(table, "command")
}

/// Like [`command`], of another key.
pub(super) fn command_at(table: &Table<'_>, key: &'static str) -> Option<Vec<String>> {
    let item = table.get(key)?;
    if let DeValue::String(line) = item.get_ref() {
        // No shell splits the line, so the fault shows the list to write.
        let words: Vec<String> = line.split_whitespace().map(quoted).collect();
        let help = format!("write `{key} = [{}]`", words.join(", "));
        table.wrong(&code(key), item, "an array of strings", &help);
        return None;
    }
    let words = table.texts(key)?;
    let written = item.get_ref().as_array().map_or(0, |array| array.len());
    let Some((program, args)) = words.split_first().filter(|_| words.len() == written) else {
        // Unreadable entries have faults of their own.
        if written > 0 {
            return None;
        }
        table.fault(
            Fault::new(item.span(), "the command is empty")
                .help(format!("write `{key} = [\"PROGRAM\", \"ARG\"]`")),
        );
        return None;
    };
    if program.value.is_empty() {
        table.fault(
            Fault::new(program.span.clone(), "the program's name is empty")
                .help("name a program on PATH, or a path relative to this file"),
        );
        return None;
    }
    let path = if program.value == SELF {
        table.reader.surroundings.program.clone()
    } else if program.value.contains('/') {
        table.reader.path(&program.value)
    } else {
        PathBuf::from(&program.value)
    };
    let Ok(path) = path.into_os_string().into_string() else {
        table.fault(
            Fault::new(program.span.clone(), "the program's path is not UTF-8")
                .help("start it through a link with a plain name"),
        );
        return None;
    };
    Some(std::iter::once(path).chain(args.iter().map(|arg| arg.value.clone())).collect())
}

/// Reads variables: names to strings.
pub(super) fn environment(table: &Table<'_>, key: &'static str) -> BTreeMap<String, String> {
    let Some(item) = table.get(key) else { return BTreeMap::new() };
    let DeValue::Table(entries) = item.get_ref() else {
        let help = format!("write `{key} = {{ NAME = \"value\" }}`");
        table.wrong(&code(key), item, "a table", &help);
        return BTreeMap::new();
    };
    let mut env = BTreeMap::new();
    for (name, value) in entries {
        if name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']) {
            let message = format!("no variable can be called {}", quoted(name.get_ref()));
            table.fault(Fault::new(name.span(), message).help("leave out `=`"));
            continue;
        }
        if let Some(value) = table.text_of(&code(name.get_ref()), value) {
            env.insert(name.get_ref().to_string(), value.value);
        }
    }
    env
}
