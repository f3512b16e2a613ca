//! The facts of one file, independent of all others: the result of parsing, cached by content.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// Lines from 1, inclusive. An empty file has 1 to 1, a folder 0 to 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Lines {
    /// The first line.
    pub start: u32,
    /// The last line.
    pub end: u32,
}

/// The kind of a node of the graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A folder of the workspace; the root itself is no node.
    Folder,
    /// A file of the workspace, also one that is not parsed.
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

/// The facts of one file.
#[derive(Clone, PartialEq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// None: unknown, not text, or too large. Then there are no symbols.
    pub language: Option<Language>,
    /// The number of the last line.
    pub lines: u32,
    /// None: not counted.
    pub tokens: Option<u32>,
    /// The name in code of the library of a manifest's package.
    pub package: Option<Box<str>>,
    /// In order, parents before their children.
    pub symbols: Vec<Symbol>,
    /// In order.
    pub bases: Vec<Base>,
    /// In order.
    pub calls: Vec<Call>,
    /// Names that the file imports, and other names for its own symbols.
    pub imports: Vec<Import>,
}

/// A class, method or function of a file.
#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub struct Symbol {
    /// As written: `open`, not `Shop::open`.
    pub name: Box<str>,
    /// `Class`, `Method` or `Function`.
    pub kind: Kind,
    /// Index of the symbol around it. The parent of an `impl`'s methods is the type, if the file
    /// defines it, else a symbol made for the `impl`.
    pub parent: Option<u32>,
    /// The lines of the whole definition.
    pub lines: Lines,
    /// The tokens of these lines; None: not counted, or there are none.
    pub tokens: Option<NonZeroU32>,
}

/// A class extends another one: `class Till(Shop)`, `class Till extends town.Shop`.
#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub struct Base {
    /// Index of the class's symbol.
    pub class: u32,
    /// The path to the other one, as written. Bases that are no path are left out.
    pub path: Box<str>,
}

/// A call by name, of a function, constructor or macro.
#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The name alone: `open` of `till.open()`.
    pub name: Box<str>,
    /// The text before the name.
    pub on: Receiver,
    /// Index of the innermost symbol around the call; None: the file itself.
    pub within: Option<u32>,
}

/// The text before the name of a call.
#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub enum Receiver {
    /// Nothing: `open()`.
    Nothing,
    /// The object or type of the caller: `self.open()`, `Self::open()`, `this.open()`.
    Own,
    /// Its base: `super().open()`, `super.open()`. A script's `super()` calls `constructor`.
    Base,
    /// A path as written: `a.b` of `a.b.open()`. It may name a module, a type or a variable.
    Named(Box<str>),
    /// `a::b` of `a::b::open()`, which names a module or a type.
    Within(Box<str>),
    /// An expression: `make().open()`.
    Value,
}

/// A name that is imported into this file.
#[derive(Clone, PartialEq, Hash, Debug, Serialize, Deserialize)]
pub struct Import {
    /// The module as written: `crate::shop`, `..shop`, `./shop`, `shop/prices`. Empty: another name
    /// for a symbol of this file: `export default shop` is `shop` as `default`, `export { open as
    /// start }` is `open` as `start`; `export default wrap(shop)` has no name, since it may be
    /// anything.
    pub module: Box<str>,
    /// The name there. None: the module as a whole, or its default export.
    pub name: Option<Box<str>>,
    /// The name here; `*`: everything.
    pub alias: Box<str>,
    /// `pub use`, `export … from`: other files can import it from here.
    pub exported: bool,
}
