//! The tracker as a whole, compared with a plain rendering of its rules.

mod properties;
