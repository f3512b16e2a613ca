//! The plugin of an agent, and its instance for one run.

use tokio::sync::watch;

use crate::plugin::{Conversation, PluginSource, Translator};
use crate::process::Launcher;

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
