//! The last line of each answer, sent to observers of the team.

use tokio::sync::mpsc;

use crate::model::{AgentId, SessionId, SessionKey};

/// Bytes of an answer's last line that are sent.
const LONGEST_LINE: usize = 500;

/// Sends the last line of each of an agent's answers.
#[derive(Clone, Debug)]
pub struct Answers {
    pub agent: AgentId,
    pub sender: mpsc::Sender<TurnAnswer>,
}

/// The last line of the agent's message in a completed turn of the host's own sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnAnswer {
    pub key: SessionKey,
    /// The last line that is not empty, cut if it is long; None without one.
    pub last_line: Option<String>,
}

impl Answers {
    /// Sends the last line of the message `text`. Never waits: if the channel is full, the answer
    /// is dropped.
    pub(super) fn publish(&self, session: &SessionId, text: &str) {
        let key = SessionKey::new(self.agent.clone(), session.clone());
        let _ = self.sender.try_send(TurnAnswer { key, last_line: last_line(text) });
    }
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let cut = line.floor_char_boundary(LONGEST_LINE);
    let more = if cut < line.len() { "…" } else { "" };
    Some(format!("{}{more}", &line[..cut]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_one_with_words() {
        for (text, line) in [
            ("", None),
            (" \n\t\n", None),
            ("Done.", Some("Done.")),
            ("First.\n  The total is there. \n\n", Some("The total is there.")),
        ] {
            assert_eq!(last_line(text).as_deref(), line, "{text:?}");
        }
        let long = last_line(&"é".repeat(LONGEST_LINE)).unwrap_or_default();
        assert_eq!(long, "é".repeat(LONGEST_LINE / 2) + "…");
    }
}
