//! How much of a replaced file a power cut may take back.

/// A promise of [`KeptFile::replace`](super::KeptFile::replace), as a type.
pub trait Durability {
    /// The content is on the disk before it gets its name.
    const SYNCS_FILE: bool;
    /// The name is on the disk before `replace` returns.
    const SYNCS_FOLDER: bool;
}

/// After a power cut the file has the content of the last `replace` that returned, or of a later one.
#[derive(Clone, Copy, Debug)]
pub enum Durable {}

/// After a power cut the file has the content of some `replace`, whole.
#[derive(Clone, Copy, Debug)]
pub enum Whole {}

/// After a power cut the file may be missing or torn: nobody needs it then.
#[derive(Clone, Copy, Debug)]
pub enum Volatile {}

impl Durability for Durable {
    const SYNCS_FILE: bool = true;
    const SYNCS_FOLDER: bool = true;
}

impl Durability for Whole {
    const SYNCS_FILE: bool = true;
    const SYNCS_FOLDER: bool = false;
}

impl Durability for Volatile {
    const SYNCS_FILE: bool = false;
    const SYNCS_FOLDER: bool = false;
}
