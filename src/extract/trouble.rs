//! What an agent's error means for whoever waits for its work: whether time mends it, and how much of
//! it, or a person, or nothing. Knows texts as model services and agents word them, and no protocol.

mod retry;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;

use self::retry::Retry;

/// Bytes of a text that are read; what a maker has to say stands at its beginning.
const READ: usize = 16 * 1024;

/// What is wrong, by the rules' account.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Trouble {
    what: &'static str,
    mends: Recovery,
    retry: Option<Retry>,
}

/// What mends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recovery {
    /// Time.
    Transient,
    /// The same prompt will fail again.
    Terminal,
    /// The user: an account, a key, a setting.
    Users,
}

impl Trouble {
    /// Reads an error's text, JSON or not; None if no rule knows it.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let text = plain(text);
        let (mends, what) = rules::find(&text.to_lowercase())?;
        // Waiting does not mend the others, whatever is suggested.
        let retry = (mends == Recovery::Transient).then(|| Retry::of(&text)).flatten();
        Some(Self { what, mends, retry })
    }

    /// Reads all that an agent said in a turn: some say their error as if it were their answer.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        rules::looks_like_error(&plain(text).to_lowercase()).then(|| Self::of(text)).flatten()
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mends = match self.mends {
            Recovery::Transient => "transient",
            Recovery::Terminal => "terminal",
            Recovery::Users => "user's to mend",
        };
        write!(f, "{} ({mends}", self.what)?;
        if let Some(retry) = &self.retry {
            write!(f, ", {retry}")?;
        }
        f.write_str(")")
    }
}

/// The text without the escapes of JSON in JSON, and in one line.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut escapes = false;
    for c in text[..text.floor_char_boundary(READ)].chars() {
        match c {
            '\\' => escapes = true,
            'n' | 'r' | 't' if escapes => {
                escapes = false;
                plain.push(' ');
            }
            c => {
                escapes = false;
                plain.push(if c.is_whitespace() { ' ' } else { c });
            }
        }
    }
    plain
}
