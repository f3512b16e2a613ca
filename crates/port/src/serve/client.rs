//! The client side of the port: finds a running team, calls its methods and follows its events.
//! Shares only the wire with the server.

mod answer;
mod connection;
mod target;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;

pub mod attach;

pub use answer::{MethodAnswer, PreparedCall};
pub use connection::{Connection, Message, Refusal, refusal};
pub use target::{Environment, Target, is_aside, reachable};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no team is running; start one with `eisen-core up`")]
    NoTeam,
    #[error("no team listens on port {0}")]
    NoTeamOn(u16),
    #[error("no team `{wanted}` is running{}", also(.running))]
    NotRunning { wanted: String, running: Vec<String> },
    #[error("several teams are running: say which with --team: {}", .0.join(", "))]
    SeveralTeams(Vec<String>),
    #[error(
        "the team of this folder, {}, does not run: `eisen-core up` starts it{}",
        .here.join(" or "),
        also_named(.running)
    )]
    NotHere { here: Vec<String>, running: Vec<String> },
    #[error("EISEN_PORT is `{0}`, which is no port")]
    Port(String),
    #[error("EISEN_ADDRESS is `{0}`, which is no address with a port")]
    Address(String),
    #[error("cannot read the run files: {0}")]
    RunFiles(io::Error),
    #[error("cannot connect to the team at {address}: {cause}")]
    Connect { address: SocketAddr, cause: io::Error },
    #[error("the connection to the team broke: {0}")]
    Broken(io::Error),
    #[error("the team closed the connection: it has ended, or could wait no longer")]
    Closed,
    #[error(
        "`{0}` is no longer there: the agent or its team ended, or this editor was cut off (the \
         team's log says why)"
    )]
    AgentGone(String),
    #[error("standard input or output failed: {0}")]
    Stdio(io::Error),
    #[error("the team's answer can't be read: {0}")]
    Answer(serde_json::Error),
    #[error("{message} (code {code})")]
    Refused { code: u16, message: String },
}

fn also_named(running: &[String]) -> String {
    if running.is_empty() {
        String::new()
    } else {
        format!("; others run, which --team names: {}", running.join(", "))
    }
}

fn also(running: &[String]) -> String {
    if running.is_empty() { String::new() } else { format!("; there are {}", running.join(", ")) }
}
