//! The trait that a plugin implements.

use crate::Records;

/// The direction of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    ToAgent,
    ToClient,
}

/// Name, version and protocols of a plugin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// The name in `eisen.toml`.
    pub name: &'static str,
    pub version: &'static str,
    /// The protocols that it reads.
    pub protocols: &'static [&'static str],
}

/// Reads the lines of one run of an agent. An error is a sentence for the user; after five in a row it
/// is shown beside the agent, and ten end the agent. A panic counts as an error.
pub trait Extractor: Sized + Send + 'static {
    const DESCRIPTION: Description;

    /// [`Extractor::gate`] and [`Extractor::deny`] enforce a zone. Without them, only the kernel can.
    const GATES: bool = false;

    /// [`Extractor::start`], [`Extractor::prompt`], [`Extractor::cancel`] and [`Extractor::allow`]
    /// work, so that a team can prompt the agent.
    const DRIVES: bool = false;

    /// `config` is a JSON object: what `eisen.toml` has under `config`.
    fn create(config: &str) -> Result<Self, String>;

    /// Reads a line of the agent, after [`Extractor::gate`], or a line sent to the agent. It comes
    /// without its line end, and need not be UTF-8.
    fn observe(
        &mut self,
        direction: Direction,
        line: &[u8],
        records: &mut Records<'_>,
    ) -> Result<(), String>;

    /// Reads a line of the agent before it has any effect. Puts [`Records::ask`] if the line asks for
    /// permission, [`Records::line`] for an answer that needs no permission.
    fn gate(&mut self, _line: &[u8], _records: &mut Records<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Puts the [`Records::line`] that denies the request `id`.
    fn deny(&mut self, _id: &str, _why: &str, _records: &mut Records<'_>) -> Result<(), String> {
        Err("this plugin can't deny anything".to_owned())
    }

    /// Puts the lines that begin a conversation. `settings` is a JSON object with `cwd`, and `model`
    /// and `resume` where they are known. `resume` is the [`Records::session`] of an earlier run: put
    /// it here again if the agent goes on with it; otherwise a new session begins.
    fn start(&mut self, _settings: &str, _records: &mut Records<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Puts the lines that prompt the agent.
    fn prompt(&mut self, _text: &str, _records: &mut Records<'_>) -> Result<(), String> {
        Err("this plugin can't prompt its agent".to_owned())
    }

    /// Puts the lines that cancel the running turn; without any, the agent is stopped.
    fn cancel(&mut self, _records: &mut Records<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Puts the lines that allow the request `id`.
    fn allow(&mut self, _id: &str, _records: &mut Records<'_>) -> Result<(), String> {
        Err("this plugin can't answer its agent".to_owned())
    }

    /// Tries the plugin on examples of its own, as [`testing::check`](crate::testing::check) plays
    /// them; `eisen-core dev plugin check` reports the outcome.
    fn self_test() -> Result<(), String> {
        Ok(())
    }
}
