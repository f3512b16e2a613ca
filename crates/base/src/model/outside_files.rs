//! The record that is kept of files outside the workspace.

use super::named::named;

named! {
    /// The record that the journal keeps of changes of files outside the workspace: agents' own settings,
    /// sessions and logins.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub enum OutsideFiles {
        /// Which file changed, its mode and hash.
        #[default]
        Hash = "hash",
        /// Also the contents, so that an undo can take changes back.
        Content = "content",
        /// Nothing: such changes make no events.
        Nothing = "none",
    }
}
