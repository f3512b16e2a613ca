//! Ends of edges, and the ids that users see for them.

use super::{End, Index, NONE, Place};
use crate::graph::calls::names::{Name, number};

impl Index {
    /// What has that id.
    pub(in crate::graph::calls) fn end(&self, id: &str) -> Option<End> {
        // A path may have `::` of its own.
        let mut cuts = id.match_indices("::").map(|(at, _)| at).chain([id.len()]);
        let file = cuts.find_map(|at| self.file(self.id(&id[..at])?))?;
        let mut text = String::new();
        let ends = std::iter::once(file.end).chain(file.symbols.iter().map(|symbol| symbol.end));
        ends.into_iter().find(|end| {
            text.clear();
            self.write_id(*end, &mut text);
            text == id
        })
    }

    /// Writes the id that the graph has for a file or a symbol.
    pub(in crate::graph::calls) fn write_id(&self, end: End, into: &mut String) {
        let Some(place) = self.places.get(end.0 as usize) else { return };
        if place.parent == end {
            into.push_str(self.names.text(place.name));
            return;
        }
        self.write_id(place.parent, into);
        into.push_str("::");
        into.push_str(self.names.text(place.name));
        if place.nth > 0 {
            into.push('#');
            into.push_str(&(place.nth + 1).to_string());
        }
    }

    pub(super) fn key(&self, end: End) -> (End, Name, u32) {
        let place = &self.places[end.0 as usize];
        (place.parent, place.name, place.nth)
    }

    pub(super) fn add_place(&mut self, parent: Option<End>, nth: u32, name: &str) -> End {
        let name = self.names.add(name);
        let next = self.free.last().copied().unwrap_or(End(number(self.places.len())));
        self.add_symbol(Place { symbol: NONE, parent: parent.unwrap_or(next), name, nth })
    }

    pub(super) fn add_symbol(&mut self, place: Place) -> End {
        if let Some(end) = self.free.pop() {
            self.places[end.0 as usize] = place;
            return end;
        }
        self.places.push(place);
        End(number(self.places.len() - 1))
    }
}
