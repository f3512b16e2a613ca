//! Owns what a method of the port is: its name, its params and result, who may call it, and how a hub asks for it.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::tokens::TokenRight;

/// A method of the port. Its row in `serve::rpc::table` binds it to its handler.
pub trait Method: 'static {
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// A client reads `Result<'static>`.
    type Result<'a>: Serialize + JsonSchema;
    const FACTS: Facts;
}

/// The facts about a method besides its types. No field has a default: a new method has to give each of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub name: &'static str,
    pub port: Right,
    pub web: ByWeb,
    pub token: Opening,
    /// The method may take long, though an agent may call it.
    pub waits: bool,
    /// The method may take minutes: it waits for an agent, or replays.
    pub lasts: bool,
    pub hub: AtHub,
}

impl Facts {
    /// Whether the method acts on agents, and may take as long as they do, or waits otherwise.
    pub fn steers(&self) -> bool {
        self.waits || self.port.steers()
    }
}

/// The right that a method requires on the port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    /// Any client.
    Anyone,
    /// Any client; for sessions of the team's agents, clients with a token that opens them.
    Register,
    /// Any token; an agent's opens its own sessions only.
    Reader,
    /// The orchestrator agent and a person.
    Lead,
    /// A person only: an agent could change the team to leave its zone, or its budget.
    Person,
}

impl Right {
    /// Whether the method requires a token.
    pub fn needs_token(self) -> bool {
        self == Self::Reader || self.steers()
    }

    /// Whether the method acts on agents. It then requires a token, and may take as long as the
    /// agent does.
    pub fn steers(self) -> bool {
        matches!(self, Self::Lead | Self::Person)
    }
}

/// The scope that opens a method to a client of the web.
///
/// A method is `Read` if it changes nothing, and shows what happened in the team. `show_blocked` is not:
/// it reads a file that an agent may not read, and chooses by its attempt. With a `read` token, which
/// stands in the configuration of a Prometheus, an agent could then read any file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByWeb {
    /// Each scope: it shows what happened, and changes nothing.
    Read,
    /// The scope `decide`: it is about what waits for a person.
    Decide,
    /// The scope `control`.
    Control,
    /// Nothing: it gives away credentials, or takes the connection.
    Never,
}

/// The right that a method takes of a token with a scope, and its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// None: no such token opens it.
    pub right: Option<TokenRight>,
    pub limit: Limit,
}

/// How a token for some agents is held to these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The agent that this parameter names; it must be given.
    Named(&'static str),
    /// The agent of the access that `id` names.
    Access,
    /// The answer: a list, of which only the entries of these agents are left.
    Answer,
    /// The token itself: what it gives opens no more.
    Token,
    /// Nothing: it is about the whole team, and not for such a token.
    Team,
}

/// How a hub treats a method that names no host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtHub {
    /// Its port answers: the method is about this port, whatever team that shows.
    Port,
    /// The hub asks all teams, and merges their answers: the method lists, or looks.
    All(Merging),
    /// The hub refuses: the method is about the whole code graph, which a hub has not.
    Graph,
    /// The hub refuses: the method is for one team.
    One,
}

/// How a hub puts the answers of all teams together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merging {
    /// Lists are joined, counts added up.
    Joined,
    /// As that, and files are ordered by heat.
    Hottest,
}

/// Declares a method, as in `Blame = "blame": BlameParams => Blamed; port: …`.
macro_rules! method {
    (
        $(#[$attribute:meta])*
        $method:ident = $name:literal: $params:ty => $result:ty;
        port: $port:ident, web: $web:ident, token: $right:ident$(($limit:expr))?,
        waits: $waits:literal, lasts: $lasts:literal, hub: $hub:expr
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug)]
        pub struct $method;

        impl $crate::wire::Method for $method {
            type Params = $params;
            type Result<'a> = $result;
            const FACTS: $crate::wire::Facts = {
                #[allow(unused_imports)]
                use $crate::wire::{AtHub::*, Limit::*, Merging::*};
                $crate::wire::Facts {
                    name: $name,
                    port: $crate::wire::Right::$port,
                    web: $crate::wire::ByWeb::$web,
                    token: $crate::wire::method::opening!($right$(($limit))?),
                    waits: $waits,
                    lasts: $lasts,
                    hub: $hub,
                }
            };
        }
    };
}

/// The opening of a method by a token: `never`, or a right with its limit.
macro_rules! opening {
    (never) => {
        $crate::wire::Opening { right: None, limit: $crate::wire::Limit::Team }
    };
    ($right:ident($limit:expr)) => {
        $crate::wire::Opening { right: Some($crate::tokens::TokenRight::$right), limit: $limit }
    };
}

pub(crate) use {method, opening};
