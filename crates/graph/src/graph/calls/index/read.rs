//! From the facts of a file to entries of the index.

use super::{Call, Import, Index, NONE, On};
use crate::graph::calls::heuristics;
use crate::graph::calls::names::Path;
use crate::graph::facts::{Facts, Receiver};

impl Index {
    pub(super) fn calls(&mut self, facts: &Facts) -> Vec<Call> {
        let mut calls = Vec::with_capacity(facts.calls.len());
        for call in &facts.calls {
            if heuristics::is_short(&call.name) {
                continue;
            }
            let on = match &call.on {
                Receiver::Nothing => On::Nothing,
                Receiver::Own => On::Own,
                Receiver::Base => On::Base,
                Receiver::Named(path) => On::Named(self.path(path)),
                Receiver::Within(path) => On::Within(self.path(path)),
                Receiver::Value => On::Value,
            };
            let within = call.within.unwrap_or(NONE);
            calls.push(Call { within, on, name: self.names.add(&call.name) });
        }
        calls.sort_unstable();
        calls.dedup();
        calls.shrink_to_fit();
        calls
    }

    pub(super) fn bases(&mut self, facts: &Facts) -> Vec<(u32, Path)> {
        let mut bases: Vec<_> =
            facts.bases.iter().map(|base| (base.class, self.path(&base.path))).collect();
        bases.sort_by_key(|(class, _)| *class);
        bases.shrink_to_fit();
        bases
    }

    pub(super) fn imports(&mut self, facts: &Facts) -> Vec<Import> {
        let mut imports = Vec::with_capacity(facts.imports.len());
        for import in &facts.imports {
            let mut path = self.path(&import.module);
            let name = import.name.as_ref().map(|name| self.names.add(name));
            if let Some(name) = name {
                let whole: Vec<_> = self.names.path(path).iter().copied().chain([name]).collect();
                path = self.names.add_path(&whole);
            }
            let alias = self.path(&import.alias);
            imports.push(Import {
                module: self.names.add(&import.module),
                path,
                name,
                alias,
                known_as: match self.names.path(alias) {
                    [alias] => Some(*alias),
                    _ => None,
                },
                all: &*import.alias == "*",
            });
        }
        imports
    }

    /// Splits a path, however the language writes it.
    fn path(&mut self, text: &str) -> Path {
        let names: Vec<_> = text
            .split([':', '.', '/'])
            .filter(|part| !part.is_empty())
            .map(|part| self.names.add(part.trim()))
            .collect();
        self.names.add_path(&names)
    }
}
