//! The port: its stream, its requests, and the registry behind it.

mod helpers;
mod options;
mod port;
mod prompts;
mod registry;
mod stream;
mod tasks;
pub(crate) mod tools;
mod tools_http;
