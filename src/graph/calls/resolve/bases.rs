//! What a class has from others.

use std::rc::Rc;

use super::{Found, Resolver, Target, Walk, Want};
use crate::graph::calls::Rule;
use crate::graph::calls::index::{Call, End, FileId};
use crate::graph::calls::names::{Name, Path};
use crate::graph::facts::Kind;

/// Bases of a class that are looked at; they may go in circles.
const MOST: usize = 128;

impl Resolver<'_> {
    /// Returns the class that a call stands in.
    pub(super) fn class(&self, call: &Call) -> Option<u32> {
        let mut around = self.file.around(call.within);
        around.find(|(_, symbol)| symbol.kind == Kind::Class).map(|(at, _)| at)
    }

    /// Finds what is called on the base of the caller's class, by its name alone if nothing tells the
    /// base.
    pub(super) fn base(&mut self, call: &Call) -> Option<(End, Rule)> {
        if let Some(class) = self.class(call) {
            match self.inherited(class, call.name) {
                Target::Symbol(file, at) => return Some((self.end(file, at)?, self.rule(file))),
                Target::Outside => return None,
                Target::Module(_) | Target::Nowhere => {}
            }
            // What the class has itself is not meant.
            if let Found::One(_) | Found::Many = self.child(self.id, class, call.name) {
                return None;
            }
        }
        self.method(call, None)
    }

    /// Looks for what the bases of a class of this file have. What none has is outside if one of them
    /// is.
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

    /// Returns what a class of this file goes on from, and what that does, depth first, from left to
    /// right; what several go on from, behind all of them.
    fn bases(&mut self, class: u32) -> Rc<[Target]> {
        if let Some(bases) = self.bases.get(&class) {
            return bases.clone();
        }
        let own = Target::Symbol(self.id, class);
        let mut all = Vec::new();
        let mut open = vec![own];
        for _ in 0..=MOST {
            let Some(next) = open.pop() else { break };
            all.retain(|base| *base != next);
            all.push(next);
            if let Target::Symbol(id, class) = next
                && let Some(file) = self.index.file(id)
            {
                let paths: Vec<_> = file.bases(class).take(MOST).collect();
                open.extend(paths.into_iter().rev().map(|path| self.base_at(id, class, path)));
            }
        }
        let bases: Rc<[_]> = all.into_iter().filter(|base| *base != own).collect();
        self.bases.insert(class, bases.clone());
        bases
    }

    fn base_at(&mut self, id: FileId, class: u32, path: Path) -> Target {
        let index = self.index;
        let Some(class) = index.file(id).and_then(|file| file.symbols.get(class as usize)) else {
            return Target::Nowhere;
        };
        self.ask_file(id, class.name);
        let path = index.names.path(path);
        let walk = &mut Walk::default();
        let (mut target, rest) = self.start(id, class.parent, path);
        for name in rest {
            target = self.step(target, *name, Want::Container, walk);
        }
        if let Some(name) = path.last() {
            target = self.called(target, *name, walk);
        }
        if self.is_value(target) { Target::Nowhere } else { target }
    }
}
