//! Where the key of a provider comes from.

use std::fmt;

use super::address::is_loopback;
use crate::config::command::command_at;
use crate::config::errors::{code, quoted};
use crate::config::fault::Fault;
use crate::config::kept_keys::kept_keys;
use crate::config::key_owner::variable;
use crate::config::read::{Table, Text};
use crate::model::{ProviderKind, SecretText};

/// Bytes of a key: those of clouds are signed tokens.
const LONGEST_KEY: usize = 8192;

/// Where a key comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProviderKey {
    /// A variable of the environment, which no agent and no terminal gets.
    Variable {
        name: String,
        /// None: it is not set, or empty.
        value: Option<SecretText>,
    },
    /// The first line that this program prints: program and arguments, never empty.
    Command(Vec<String>),
}

impl ProviderKey {
    /// The variable that has it.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable { name, .. } => Some(name),
            Self::Command(_) => None,
        }
    }
}

impl fmt::Display for ProviderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable { name, value: Some(_) } => write!(f, "of ${name}"),
            Self::Variable { name, value: None } => write!(f, "of ${name}, which is not set"),
            Self::Command(words) => {
                let program = words.first().map_or("", String::as_str);
                write!(f, "by the command `{}`", program.rsplit('/').next().unwrap_or(program))
            }
        }
    }
}

/// Reads `key` and `key_command`; `is_users` says that it is the user's file. None: a mistake, which is recorded.
#[expect(clippy::option_option, reason = "a mistake, and no key at all")]
pub(super) fn key(
    table: &Table<'_>,
    kind: Option<ProviderKind>,
    provider: &str,
    url: Option<&str>,
    is_users: bool,
) -> Option<Option<ProviderKey>> {
    let command = command_at(table, "key_command");
    let written = table.verbatim("key");
    match (table.place_of("key"), table.place_of("key_command")) {
        (Some(_), Some(place)) => {
            let fault = Fault::new(place, "`key` and `key_command` can't both be given");
            table.fault(fault.help("keep one"));
            None
        }
        (Some(_), None) => of_variable(table, written?, kind, provider, is_users).map(Some),
        (None, Some(_)) => Some(Some(ProviderKey::Command(command?))),
        (None, None) if url.is_some_and(is_of_this_machine) => Some(None),
        (None, None) => {
            let help = format!(
                "write `key = \"{}\"`, a variable of your environment, or `key_command = [\"pass\", \
                 \"show\", {}]`",
                reference(kind),
                quoted(provider)
            );
            table.lacks("this provider has no `key`", help);
            None
        }
    }
}

fn is_of_this_machine(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest).to_ascii_lowercase();
    is_loopback(rest.split('/').next().unwrap_or_default())
}

/// The reference that a key of this kind usually is.
fn reference(kind: Option<ProviderKind>) -> String {
    let name = kind.map_or("PROVIDER_API_KEY", ProviderKind::key_variable);
    format!("${{{name}}}")
}

fn of_variable(
    table: &Table<'_>,
    written: Text,
    kind: Option<ProviderKind>,
    provider: &str,
    is_users: bool,
) -> Option<ProviderKey> {
    // What is written may be a key: no message, and no excerpt, shows it.
    let fault = |message: String, help: String| {
        table.fault(Fault::new(written.span.clone(), message).help(help).secret());
        None
    };
    let Some(name) = variable(&written.value) else {
        let raw = &written.value;
        let start = raw.strip_prefix("${").and_then(|rest| rest.split_once(":-"));
        if let Some((name, _)) =
            start.filter(|(name, _)| variable(&format!("${{{name}}}")).is_some())
        {
            let message = "`key` can't have a default: that would be a key in the file".to_owned();
            return fault(message, format!("write `key = \"${{{name}}}\"`"));
        }
        if raw.contains("${") {
            let message = "`key` must be one variable, and nothing beside it".to_owned();
            let help = format!(
                "write `key = \"{}\"`; `key_command` makes a key of parts",
                reference(kind)
            );
            return fault(message, help);
        }
        let message = "`key` must be a reference to a variable, not the key itself".to_owned();
        let help = format!(
            "set a variable, and write `key = \"{}\"`; or `key_command = [\"pass\", \"show\", {}]`. A key in a \
             file is read by whoever reads the file",
            reference(kind),
            quoted(provider)
        );
        return fault(message, help);
    };
    if let Some(owner) = table.reader.key_owner(name).filter(|owner| owner.of_user && !is_users) {
        let message = owner.refusal(name);
        let help =
            format!("leave it out: agents can name the provider {}", quoted(&owner.provider));
        table.fault(Fault::new(written.span, message).help(help));
        return None;
    }
    let value = (table.reader.surroundings.variable)(name);
    let kept = || kept_keys().get(name).map(|key| key.reveal().to_owned());
    let value = value.or_else(kept);
    // What a shell or a file of variables leaves at the end.
    let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    if value.as_deref().is_some_and(|key| !is_key(key)) {
        let message = format!("the variable {} has no key", code(name));
        let help = format!("a key has up to {LONGEST_KEY} visible ASCII characters, and no spaces");
        table.fault(Fault::new(written.span, message).help(help));
        return None;
    }
    Some(ProviderKey::Variable { name: name.to_owned(), value: value.map(SecretText::new) })
}

/// Whether a text can be sent as a key.
fn is_key(text: &str) -> bool {
    (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
