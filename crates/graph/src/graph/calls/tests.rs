//! Resolution of calls in small workspaces.

mod bases;
mod edits;
mod notation;
mod paths;
mod rules;
mod scripts;
mod values;
mod worlds;
