//! Updates that the team adds to those of a session: what happens in it, and its agent does not say.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::mask::masked_output;

/// Bytes of the output of a terminal that are shown: its end.
pub const MOST_OUTPUT: usize = 16 << 10;

/// Bytes of a cut output in which the beginning of a line is looked for.
const LONGEST_TORN: usize = 1 << 10;

/// Bytes of a prompt that are shown: its beginning.
const MOST_PROMPT: usize = 16 << 10;

/// An `update` object in a `session_update` that the team made, not the agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "sessionUpdate")]
pub enum TeamUpdate<'a> {
    /// The output of a terminal that the team runs for the agent, each time as a whole.
    #[serde(rename = "_eisen/terminal")]
    Terminal(ShownTerminal<'a>),
    /// A prompt that a client sent.
    #[serde(rename = "_eisen/prompt")]
    Prompt(ShownPrompt<'a>),
}

/// The output of a terminal so far, by the names of ACP.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ShownTerminal<'a> {
    /// The id by which the content of a tool call names the terminal.
    pub terminal_id: Cow<'a, str>,
    /// The output, at most [`MOST_OUTPUT`] bytes of its end, without what are secrets by their names.
    pub output: Cow<'a, str>,
    /// Whether the beginning of the output is left out.
    pub truncated: bool,
    /// None: its program runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<TerminalExit>,
}

/// The end of a terminal's program.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TerminalExit {
    /// The exit code; None if a signal ended the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The name of the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}

/// The text of a prompt.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ShownPrompt<'a> {
    /// The beginning of the text, without what are secrets by their names.
    pub text: Cow<'a, str>,
    /// Whether the end of the text is left out.
    pub truncated: bool,
}

impl TeamUpdate<'_> {
    /// The output of a terminal, cut and masked; `truncated` if it lacks its beginning already.
    pub fn terminal(
        id: &str,
        output: &str,
        truncated: bool,
        exit_status: Option<TerminalExit>,
    ) -> Self {
        let end = end_of(output, truncated);
        TeamUpdate::Terminal(ShownTerminal {
            terminal_id: id.to_owned().into(),
            output: masked_output(end).into(),
            truncated: truncated || end.len() < output.len(),
            exit_status,
        })
    }

    /// The text of a prompt, cut and masked.
    pub fn prompt(text: &str) -> Self {
        let begin = &text[..text.floor_char_boundary(MOST_PROMPT)];
        let truncated = begin.len() < text.len();
        TeamUpdate::Prompt(ShownPrompt { text: masked_output(begin).into(), truncated })
    }

    /// The object as JSON.
    #[expect(clippy::expect_used, reason = "plain structs with string keys always serialise")]
    pub fn to_json(&self) -> Arc<str> {
        serde_json::to_string(self).expect("an update serialises").into()
    }
}

/// The last bytes of an output, from the beginning of a line where one is near. Of a torn line, the name that makes the rest
/// a secret may be away; `truncated`: the output begins with one already.
fn end_of(output: &str, truncated: bool) -> &str {
    if !truncated && output.len() <= MOST_OUTPUT {
        return output;
    }
    let end = &output[output.ceil_char_boundary(output.len().saturating_sub(MOST_OUTPUT))..];
    let torn = &end[..end.floor_char_boundary(LONGEST_TORN)];
    torn.find('\n').map_or(end, |at| &end[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_cut_to_its_end_at_a_line() {
        let shown = |output: &str| match TeamUpdate::terminal("t", output, false, None) {
            TeamUpdate::Terminal(shown) => (shown.output.into_owned(), shown.truncated),
            TeamUpdate::Prompt(_) => unreachable!("a terminal"),
        };
        assert_eq!(shown("short"), ("short".to_owned(), false));
        let lines = "a line of an output\n".repeat(10_000);
        let (output, truncated) = shown(&lines);
        assert!(truncated && lines.ends_with(&output) && output.starts_with("a line "));
        assert!(output.len() <= MOST_OUTPUT && output.len() > MOST_OUTPUT - LONGEST_TORN);
        match TeamUpdate::terminal("t", "rest of a secret\nok\n", true, None) {
            TeamUpdate::Terminal(shown) => assert_eq!(shown.output, "ok\n"),
            TeamUpdate::Prompt(_) => unreachable!("a terminal"),
        }
        let (output, truncated) = shown(&"é".repeat(MOST_OUTPUT));
        assert_eq!((output.len(), truncated), (MOST_OUTPUT, true));
    }

    #[test]
    fn an_update_has_the_names_of_the_protocol() {
        let exit = TerminalExit { exit_code: Some(1), signal: None };
        let update = TeamUpdate::terminal("term_1", "no\nAPI_KEY=x\n", false, Some(exit));
        assert_eq!(
            &*update.to_json(),
            r#"{"sessionUpdate":"_eisen/terminal","terminalId":"term_1","output":"no\nAPI_KEY=***\n","truncated":false,"exitStatus":{"exitCode":1}}"#
        );
        assert_eq!(serde_json::from_str::<TeamUpdate<'_>>(&update.to_json()).ok(), Some(update));
        assert_eq!(
            &*TeamUpdate::prompt("Do it").to_json(),
            r#"{"sessionUpdate":"_eisen/prompt","text":"Do it","truncated":false}"#
        );
    }
}
