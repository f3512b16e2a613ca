//! Owns the language of the port: the types of its lines, and of the params and the result of each method.
//! Server and clients write and read the same types.

mod agent;
mod blocked;
mod branch;
mod budget;
mod change;
mod client_line;
mod common;
mod conflict;
mod event;
mod fields;
mod grant;
mod graph;
mod highlight;
mod line;
mod map;
mod merges;
mod method;
mod name_of;
mod names;
mod object;
mod of_model;
mod options;
mod preview;
mod prompts;
mod questions;
mod reloaded;
mod replayed;
pub mod request;
mod review;
mod run;
mod session;
mod spent;
mod stream;
mod task;
mod token;
mod tools;
mod web;

pub use agent::*;
pub use blocked::*;
pub use branch::*;
pub use budget::*;
pub use change::*;
pub use client_line::PlainLine;
pub use common::*;
pub use conflict::*;
pub use event::*;
pub use grant::*;
pub use graph::*;
pub use highlight::*;
pub use line::*;
pub use map::*;
pub use merges::*;
pub use method::{AtHub, ByWeb, Facts, Limit, Merging, Method, Opening, Right};
pub use name_of::{Exact, NameOf};
pub use names::{
    AgentName, Decider, Giver, MethodNames, NameKind, NamePlaces, StreamName, TeamId, UniqueId,
};
pub use object::Object;
pub use of_model::spent;
pub use options::*;
pub use preview::*;
pub use prompts::*;
pub use questions::*;
pub use reloaded::*;
pub use replayed::{add_mark, replayed};
pub use review::*;
pub use run::*;
pub use session::*;
pub use spent::*;
pub use stream::*;
pub use task::*;
pub use token::*;
pub use tools::{
    Audience, PAGE, Parameter, TeamTool, check, schema, take_tools, tool_named, tools, tools_of,
};
pub use web::*;
