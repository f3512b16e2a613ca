//! Who mentions which name, and who is in which folder, so that what a change touches is found without
//! a look at every file.

use std::ops::Bound;

use super::{File, FileId, Index};
use crate::graph::calls::names::Name;

impl Index {
    /// Returns the files in a folder, which is written with a `/` at the end, and below.
    pub(in crate::graph::calls) fn below<'a>(
        &'a self,
        folder: &'a str,
    ) -> impl Iterator<Item = FileId> + use<'a> {
        let from = (Bound::Included(folder), Bound::Unbounded);
        let files = self.ids.range::<str, _>(from);
        files.take_while(move |(path, _)| path.starts_with(folder)).map(|(_, id)| *id)
    }

    /// Returns who mentions a name, in order.
    pub(in crate::graph::calls) fn mentioned_by(&self, name: Name) -> &[FileId] {
        self.mentioned_by.get(name.0 as usize).map_or(&[], |files| files)
    }

    /// Keeps up to date who mentions what.
    pub(super) fn mention(&mut self, id: FileId, before: Option<&File>, now: &[Name]) {
        self.mentioned_by.resize_with(self.names.len(), Vec::new);
        let before = before.map_or(&[][..], |file| &file.mentions);
        for name in before.iter().filter(|name| now.binary_search(name).is_err()) {
            let files = &mut self.mentioned_by[name.0 as usize];
            if let Ok(at) = files.binary_search(&id) {
                files.remove(at);
            }
        }
        for name in now.iter().filter(|name| before.binary_search(name).is_err()) {
            let files = &mut self.mentioned_by[name.0 as usize];
            if let Err(at) = files.binary_search(&id) {
                files.insert(at, id);
            }
        }
    }
}
