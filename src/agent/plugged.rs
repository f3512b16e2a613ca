use tokio::sync::watch;

use crate::plugin::{Conversation, Source, Translator};
use crate::process::Launcher;

/// The plugin of an agent that doesn't speak ACP.
#[derive(Clone, Debug)]
pub struct Plugin {
    pub source: Source,
    /// What the agent is to run on.
    pub model: Option<String>,
}

/// Makes an ACP agent of one run, and tells what is wrong with its plugin.
pub(super) type Plugged = (Translator, watch::Receiver<Option<String>>);

impl Plugin {
    /// Makes an instance for a run, which may go on with the conversation of the one before; what it
    /// needs of processes is started by the launcher.
    pub(super) fn plug(
        &self,
        launcher: Launcher,
        conversation: Conversation,
    ) -> Result<Plugged, String> {
        let Self { source, model } = self;
        let reader = source.instance(launcher);
        let reader = reader.map_err(|why| format!("its plugin {}: {why}", source.name))?;
        let (telling, concern) = watch::channel(None);
        let (name, model) = (source.name.clone(), model.clone());
        Ok((Translator::new(name, model, conversation, reader, telling), concern))
    }
}
