//! What one file says of itself, whoever else is there: the product of parsing, kept by content.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// Lines from 1, both ends counted. A file without any line has 1 to 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Lines {
    pub start: u32,
    pub end: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Folder,
    File,
    /// A class, struct, trait, interface or enum, or the type of an `impl`.
    Class,
    /// A function of a class.
    Method,
    /// A function, constant, type alias or module.
    Function,
}

/// A row of the table of languages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Language(pub(super) u8);

#[derive(Clone, PartialEq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// None: no row of the table, not text, or too large. Then there are no symbols.
    pub language: Option<Language>,
    /// The number of the last line.
    pub lines: u32,
    /// None where they are not counted.
    pub tokens: Option<u32>,
    /// What a manifest has code call the library of its package.
    pub package: Option<Box<str>>,
    /// In order of appearance, what holds others before what it holds.
    pub symbols: Vec<Symbol>,
    /// In order of appearance.
    pub bases: Vec<Base>,
    /// In order of appearance.
    pub calls: Vec<Call>,
    pub imports: Vec<Import>,
}

#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub struct Symbol {
    /// As written: `open`, not `Shop::open`.
    pub name: Box<str>,
    pub kind: Kind,
    /// Index of the symbol that it stands in. The methods of an `impl` stand in the file's own
    /// symbol of that type, if there is one, else in one that stands for the `impl`.
    pub parent: Option<u32>,
    pub lines: Lines,
    pub tokens: Option<NonZeroU32>,
}

/// A class of the file goes on from another one: `class Till(Shop)`, `class Till extends town.Shop`.
#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub struct Base {
    /// Index of the class's symbol.
    pub class: u32,
    /// The names that lead to the other one, as written. One that is not named like that is left out.
    pub path: Box<str>,
}

/// Something is called (or made, or used as a macro) by its name.
#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub struct Call {
    pub name: Box<str>,
    pub on: Receiver,
    /// Index of the innermost symbol that the call stands in; None: the file itself.
    pub within: Option<u32>,
}

/// What stands before the name of a call.
#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub enum Receiver {
    /// Nothing: `open()`.
    Nothing,
    /// The object or type that the caller belongs to: `self.open()`, `Self::open()`, `this.open()`.
    Own,
    /// Its base: `super().open()`, `super.open()`. What a script writes `super()` is `constructor`.
    Base,
    /// A path of names as written: `a.b` of `a.b.open()`. May name a module, a type or a variable.
    Named(Box<str>),
    /// `a::b` of `a::b::open()`, which names a module or a type.
    Within(Box<str>),
    /// A value of which nothing is known: `make().open()`.
    Value,
}

/// A name of another file that is brought into this one.
#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub struct Import {
    /// Where from, as the language writes it: `crate::shop`, `..shop`, `./shop`, `shop/prices`.
    /// Empty: this file itself, which has the name under another name too: `export default shop` is
    /// `shop` as `default`, `export { open as start }` is `open` as `start`; without a name it may be
    /// anything of it, as in `export default wrap(shop)`.
    pub module: Box<str>,
    /// The name there. None: the module as a whole, or its default export.
    pub name: Option<Box<str>>,
    /// The name here; `*`: all that it has.
    pub alias: Box<str>,
    /// `pub use`, `export … from`: who imports from this file gets it too.
    pub exported: bool,
}
