//! Members that a class inherits.

use std::rc::Rc;

use super::{Found, Resolver, Target, Walk, Want};
use crate::graph::calls::Rule;
use crate::graph::calls::ids::{FileId, NodeId};
use crate::graph::calls::index::Call;
use crate::graph::calls::names::{Name, Path};
use crate::graph::facts::Kind;

/// Bases of a class that are looked at.
const MAX_BASES: usize = 64;

impl Resolver<'_> {
    /// Returns the class around a call.
    pub(super) fn class(&self, call: &Call) -> Option<u32> {
        let mut around = self.file.around(call.within);
        around.find(|(_, symbol)| symbol.kind == Kind::Class).map(|(at, _)| at)
    }

    /// Resolves a call on the base of the caller's class; by the name alone if the base is unknown.
    pub(super) fn base(&mut self, call: &Call) -> Option<(NodeId, Rule)> {
        if let Some(class) = self.class(call) {
            match self.inherited(class, call.name) {
                Target::Symbol(file, at) => return Some((self.node(file, at)?, self.rule(file))),
                Target::Outside => return None,
                Target::Module(_) | Target::Nowhere => {}
            }
            // The class's own method is not the base's.
            if let Found::One(_) | Found::Many = self.child(self.id, class, call.name) {
                return None;
            }
        }
        self.method(call, None)
    }

    /// Looks for a member in the bases of a class of this file. Outside, if no base has it and one is
    /// outside.
    pub(super) fn inherited(&mut self, class: u32, name: Name) -> Target {
        let mut found = Target::Nowhere;
        for base in self.bases(class).iter() {
            match *base {
                Target::Symbol(id, class) => {
                    if let Found::One((file, at)) = self.child(id, class, name) {
                        return Target::Symbol(file, at);
                    }
                }
                Target::Outside => found = Target::Outside,
                Target::Module(_) | Target::Nowhere => {}
            }
        }
        found
    }

    /// Returns all bases of a class of this file, depth first from left to right; a shared base comes
    /// behind all classes that have it.
    fn bases(&mut self, class: u32) -> Rc<[Target]> {
        if let Some(bases) = self.bases.get(&class) {
            return bases.clone();
        }
        let (mut seen, mut last_first) = (Vec::new(), Vec::new());
        self.visit(Target::Symbol(self.id, class), &mut seen, &mut last_first);
        // The class itself comes last.
        last_first.pop();
        last_first.reverse();
        let bases: Rc<[_]> = last_first.into();
        self.bases.insert(class, bases.clone());
        bases
    }

    /// Appends the bases of a class, then the class.
    fn visit(&mut self, class: Target, seen: &mut Vec<Target>, last_first: &mut Vec<Target>) {
        if seen.len() > MAX_BASES || seen.contains(&class) {
            return;
        }
        seen.push(class);
        if let Target::Symbol(id, at) = class
            && let Some(file) = self.index.file(id)
        {
            let mut paths: Vec<_> = file.bases(at).take(MAX_BASES).collect();
            paths.dedup();
            for path in paths.into_iter().rev() {
                let base = self.base_at(id, at, path);
                self.visit(base, seen, last_first);
            }
        }
        last_first.push(class);
    }

    fn base_at(&mut self, id: FileId, class: u32, path: Path) -> Target {
        let index = self.index;
        let Some(class) = index.file(id).and_then(|file| file.symbols.get(class as usize)) else {
            return Target::Nowhere;
        };
        self.depend_on_name(id, class.name);
        let key = (id, class.parent, path);
        if let Some(target) = self.named_bases.get(&key) {
            return *target;
        }
        let path = index.names.path(path);
        let walk = &mut Walk::default();
        let (mut target, rest) = self.start(id, class.parent, path);
        for name in rest {
            target = self.step(target, *name, Want::Container, walk);
        }
        if let Some(name) = path.last() {
            target = self.called(target, *name, walk);
        }
        if self.is_value(target) {
            target = Target::Nowhere;
        }
        self.named_bases.insert(key, target);
        target
    }
}
