//! Keeps a person's words on a branch, and which hunks of it they have seen.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::now_ms;

/// Bytes of a comment, and comments of a branch.
const LONGEST: usize = 16 << 10;
const MOST: usize = 500;

/// A sentence on a hunk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Comment {
    /// The id of the hunk.
    pub on: String,
    pub path: String,
    /// The place of the hunk, as git says it.
    pub place: String,
    pub text: String,
    pub said_at_ms: u64,
    /// Whether the agent has got it.
    pub is_sent: bool,
}

/// The reviews of a branch so far.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ReviewNotes {
    /// How often a person has looked.
    #[serde(default)]
    pub round: u64,
    /// Hunks that they saw at the last look.
    #[serde(default)]
    pub seen: BTreeSet<String>,
    #[serde(default)]
    pub accepted: BTreeSet<String>,
    #[serde(default)]
    pub comments: Vec<Comment>,
    /// How the checks ended the last time.
    #[serde(default)]
    pub checks: Option<ChecksEnd>,
}

/// The end of the checks of a branch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChecksEnd {
    pub passed: bool,
    /// The commit that they ran on.
    pub commit: String,
    /// Whether they ran on that commit alone, and not with what was not committed.
    pub is_clean: bool,
    pub at_ms: u64,
}

impl ReviewNotes {
    /// Notes that a person has looked at these hunks.
    pub fn look(&mut self, seen: BTreeSet<String>) {
        self.accepted.retain(|id| seen.contains(id));
        self.seen = seen;
        self.round += 1;
    }

    /// Adds a comment; the error says which bound it is past.
    pub fn comment(&mut self, on: &str, path: &str, place: &str, text: &str) -> Result<(), String> {
        if text.trim().is_empty() || text.len() > LONGEST {
            return Err(format!("a comment is text of at most {LONGEST} bytes"));
        }
        if self.comments.iter().filter(|comment| !comment.is_sent).count() >= MOST {
            return Err(format!("at most {MOST} comments wait: send them"));
        }
        let sent = self.comments.iter().position(|comment| comment.is_sent);
        if let Some(oldest) = sent.filter(|_| self.comments.len() >= 2 * MOST) {
            self.comments.remove(oldest);
        }
        let [on, path, place, text] = [on, path, place, text].map(str::to_owned);
        self.comments.push(Comment { on, path, place, text, said_at_ms: now_ms(), is_sent: false });
        Ok(())
    }

    /// The comments that the agent has not got, as one prompt; None: there is none.
    pub fn prompt(&self) -> Option<String> {
        let mut waiting = self.comments.iter().filter(|comment| !comment.is_sent).peekable();
        waiting.peek()?;
        let mut prompt =
            "A review of your branch. Change what these comments ask for:\n".to_owned();
        for Comment { path, place, text, .. } in waiting {
            prompt.push_str("\n- ");
            prompt.push_str(path);
            if !place.is_empty() {
                prompt.push(' ');
                prompt.push_str(place);
            }
            prompt.push_str(":\n  ");
            prompt.push_str(&text.trim().replace('\n', "\n  "));
            prompt.push('\n');
        }
        Some(prompt)
    }

    /// Notes that the agent has got the comments of a prompt, which was made of `told`. What was said since waits.
    pub fn sent(&mut self, told: &[Comment]) {
        for comment in self.comments.iter_mut().filter(|comment| told.contains(comment)) {
            comment.is_sent = true;
        }
    }
}
