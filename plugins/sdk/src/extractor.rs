//! What a plugin is, as a Rust type.

use crate::Records;

/// Which way a line goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    ToAgent,
    ToClient,
}

/// What a plugin says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// As `eisen.toml` names it.
    pub name: &'static str,
    pub version: &'static str,
    /// What it reads, as its makers call it.
    pub protocols: &'static [&'static str],
}

/// Reads along with one run of one agent. An error is a sentence for whoever runs the team; five in
/// a row are shown beside the agent, and ten end it. A panic counts as an error.
pub trait Extractor: Sized + Send + 'static {
    const DESCRIPTION: Description;

    /// [`Extractor::gate`] and [`Extractor::deny`] hold a zone. Without, only the kernel can.
    const GATES: bool = false;

    /// [`Extractor::start`], [`Extractor::prompt`], [`Extractor::cancel`] and [`Extractor::allow`]
    /// work, so that a team can prompt the agent.
    const DRIVES: bool = false;

    /// `config` is a JSON object: what `eisen.toml` has under `config`.
    fn create(config: &str) -> Result<Self, String>;

    /// Reads a line that the agent said, after [`Extractor::gate`] did, or that was sent to it. It
    /// comes without its line end, and need not be UTF-8.
    fn observe(
        &mut self,
        direction: Direction,
        line: &[u8],
        records: &mut Records<'_>,
    ) -> Result<(), String>;

    /// Reads a line of the agent before anything comes of it: [`Records::ask`] if it asks for
    /// permission, [`Records::line`] for what is answered without asking anybody.
    fn gate(&mut self, _line: &[u8], _records: &mut Records<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Puts the [`Records::line`] that refuses what was asked for under `id`.
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

    /// Puts the lines that cancel the running turn; an agent that gets none is stopped.
    fn cancel(&mut self, _records: &mut Records<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Puts the lines that allow what was asked for under `id`.
    fn allow(&mut self, _id: &str, _records: &mut Records<'_>) -> Result<(), String> {
        Err("this plugin can't answer its agent".to_owned())
    }

    /// Tries the plugin on examples of its own, as [`testing::check`](crate::testing::check) plays
    /// them; `eisen-core plugin check` tells the outcome.
    fn self_test() -> Result<(), String> {
        Ok(())
    }
}
