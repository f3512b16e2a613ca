//! The built-in ACP client: attached editors, terminals.

mod attach;
mod terminals;
