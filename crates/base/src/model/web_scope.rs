//! How much of a team a credential of the web opens.

use super::named::named;

named! {
    /// The rights of the holder of a credential of the web; each scope includes those before it.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum WebScope {
        /// See everything, and change nothing.
        Read = "read",
        /// Also decide what waits for a person.
        Decide = "decide",
        /// All that a person may.
        Control = "control",
    }
}
