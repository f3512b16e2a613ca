//! An overlay as the text of a configuration, behind that of the file.

use std::collections::BTreeSet;

use crate::config::errors::code;
use crate::config::{ConfigError, ConfigErrors};

/// An overlay as the text of a configuration.
#[derive(Default)]
pub(in crate::config) struct Layer {
    /// The added agents.
    pub(super) text: String,
    /// The start of each agent's section.
    pub(super) starts: Vec<(usize, String)>,
    pub(super) removed: BTreeSet<String>,
    /// Ids of the added agents that agents asked for.
    pub(super) asked_for: BTreeSet<String>,
}

impl Layer {
    pub(in crate::config) fn removed(&self) -> &BTreeSet<String> {
        &self.removed
    }

    pub(in crate::config) fn asked_for(&self) -> &BTreeSet<String> {
        &self.asked_for
    }

    /// Returns the layer's text, to be appended to the file's.
    pub(in crate::config) fn behind(&self, file: &str) -> String {
        format!("{}\n{}", " ".repeat(file.len()), self.text)
    }

    pub(in crate::config) fn append_to(&self, file: &mut String) {
        // Excerpts of errors show the file unchanged.
        if !self.text.is_empty() {
            file.push('\n');
            file.push_str(&self.text);
        }
    }

    /// Returns a sentence for each error, with its agent.
    pub(in crate::config) fn blame(&self, file: &str, errors: &ConfigErrors) -> Vec<String> {
        let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
        // Lines count from 1, and a line break separates file and layer.
        let first = lines(file) + 2;
        let starts: Vec<(usize, &String)> = self
            .starts
            .iter()
            .map(|(start, id)| (first + lines(&self.text[..*start]), id))
            .collect();
        let sentence = |error: ConfigError| {
            let agent = starts.iter().rev().find(|(line, _)| *line <= error.line);
            let whose = match agent {
                Some((_, id)) if id.is_empty() => "the agent".to_owned(),
                Some((_, id)) => format!("agent {}", code(id)),
                None => format!("line {} of the configuration", error.line),
            };
            let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
            format!("{whose}: {}{help}", error.message)
        };
        errors.list().into_iter().map(sentence).collect()
    }
}
