//! The plugin of an agent, and its instance for one run, between the agent and the relay.

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::watch;

use crate::plugin::{Conversation, PluginSource, Translator};
use crate::process::Launcher;

/// Bytes buffered between relay and client host, each way; the writer waits when they are full.
pub(super) const DUPLEX: usize = 256 * 1024;

/// The agent's output and input.
pub(super) type Wires = (Box<dyn AsyncRead + Unpin + Send>, Box<dyn AsyncWrite + Unpin + Send>);

/// The plugin of an agent that doesn't speak ACP.
#[derive(Clone, Debug)]
pub struct Plugin {
    pub source: PluginSource,
    /// The model for the agent.
    pub model: Option<String>,
}

/// The translator of one run, and the current problem of its plugin.
pub(super) type Plugged = (Translator, watch::Receiver<Option<String>>);

impl Plugin {
    /// Creates the plugin's instance for a run, which may resume `conversation`. The launcher
    /// starts the plugin's processes.
    pub(super) fn plug(
        &self,
        launcher: Launcher,
        conversation: Conversation,
    ) -> Result<Plugged, String> {
        let Self { source, model } = self;
        let reader = source.instance(launcher);
        let reader = reader.map_err(|why| format!("its plugin {}: {why}", source.name))?;
        let (sender, concern) = watch::channel(None);
        let (name, model) = (source.name.clone(), model.clone());
        Ok((Translator::new(name, model, conversation, reader, sender), concern))
    }
}

/// A translator with the agent's wires, and the end of its own.
pub(super) type Translation = (Translator, Wires, DuplexStream);

/// Puts the translator of a plugin, if there is one, between the agent and the relay. Returns the
/// relay's wires, the current problem of the plugin, and the translator to run.
pub(super) fn translated(
    agent: Wires,
    plugged: Option<Plugged>,
) -> (Wires, watch::Receiver<Option<String>>, Option<Translation>) {
    let Some((translator, concern)) = plugged else {
        return (agent, watch::channel(None).1, None);
    };
    let (near, far) = tokio::io::duplex(DUPLEX);
    let (from_translator, to_translator) = tokio::io::split(near);
    let relay: Wires = (Box::new(from_translator), Box::new(to_translator));
    (relay, concern, Some((translator, agent, far)))
}
