//! The symbols of a name, in any file.

use super::{Family, FileId, Index, Symbol, within};
use crate::graph::calls::names::Name;
use crate::graph::facts::Kind;

/// Endings of files that declare what other files define.
const DECLARATIONS: [&str; 4] = [".d.ts", ".d.cts", ".d.mts", ".pyi"];

/// A symbol of a name. The order keeps neighbours together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::graph::calls) struct Definition {
    pub(in crate::graph::calls) family: Family,
    pub(in crate::graph::calls) folder: Name,
    pub(in crate::graph::calls) file: FileId,
    pub(in crate::graph::calls) parent: u32,
    pub(in crate::graph::calls) symbol: u32,
    pub(in crate::graph::calls) kind: Kind,
}

impl Definition {
    /// Whether both are overloads of one method. Rust has none.
    pub(in crate::graph::calls) fn is_overload_of(&self, other: &Self) -> bool {
        self.family != Family::Rust && (self.file, self.parent) == (other.file, other.parent)
    }
}

impl Index {
    /// Returns the definitions of a name in a family, ordered by folder and file.
    pub(in crate::graph::calls) fn definitions(&self, family: Family, name: Name) -> &[Definition] {
        within(self.all(name), |definition| definition.family.cmp(&family))
    }

    /// Returns the definitions directly in a folder.
    pub(in crate::graph::calls) fn in_folder(
        &self,
        family: Family,
        folder: Name,
        name: Name,
    ) -> &[Definition] {
        within(self.definitions(family, name), |definition| definition.folder.cmp(&folder))
    }

    /// Returns the definitions in a file.
    pub(in crate::graph::calls) fn in_file(
        &self,
        family: Family,
        folder: Name,
        file: FileId,
        name: Name,
    ) -> &[Definition] {
        within(self.in_folder(family, folder, name), |definition| definition.file.cmp(&file))
    }

    /// Returns the class around a definition.
    pub(in crate::graph::calls) fn holder(&self, definition: &Definition) -> Option<&Symbol> {
        let holder = self.file(definition.file)?.symbols.get(definition.parent as usize)?;
        (holder.kind == Kind::Class).then_some(holder)
    }

    /// Whether it is a method with a body: declaration files have none.
    pub(in crate::graph::calls) fn is_method(&self, definition: &Definition) -> bool {
        let declares = |path: &str| DECLARATIONS.iter().any(|end| path.ends_with(end));
        definition.kind == Kind::Method
            && self.file(definition.file).is_some_and(|file| !declares(&file.path))
    }

    /// Returns the definitions of a name in all families.
    pub(super) fn all(&self, name: Name) -> &[Definition] {
        self.definitions.get(name.0 as usize).map_or(&[], |list| list)
    }
}
