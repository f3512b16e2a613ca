//! The plugin that reads along with an observed agent that doesn't speak ACP.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::app::plugins;
use crate::config::{self, Isolation};
use crate::extract::{Acp, DiskWorkspace, Extractor};
use crate::plugin::{AgentInfo, ExtractorHost, Hosting, News, Source};
use crate::process::Launcher;
use crate::proxy::RelayHandle;

/// Which plugin, and how it is configured.
#[derive(Clone, Debug)]
pub struct ObservePlugin {
    /// Its library, or its name in the folder of plugins.
    pub file: PathBuf,
    /// A JSON object.
    pub config: String,
}

/// A plugin that was tried, and can be used.
pub(super) struct Plugged {
    source: Source,
    /// Whether it can hold a zone by what its agent asks for.
    pub(super) gates: bool,
}

/// What stands behind the relay's extractor, if that is a plugin's.
pub(super) struct Overhearing {
    news: News,
    /// Ends with why the plugin was given up.
    task: AbortOnDropHandle<Result<(), String>>,
    has_zone: bool,
    concern: watch::Sender<Option<String>>,
}

/// Reads along with an agent by its plugin, or as ACP. `concern` hears what is wrong with the plugin.
pub(super) fn extractor(
    plugin: Option<Plugged>,
    launcher: &Launcher,
    workspace: PathBuf,
    session: Option<String>,
    has_zone: bool,
    concern: watch::Sender<Option<String>>,
) -> anyhow::Result<(Box<dyn Extractor>, Option<Overhearing>)> {
    let on_disk = Arc::new(DiskWorkspace::new(workspace.clone()));
    let acp = Acp::new(on_disk, workspace.clone());
    let Some(Plugged { source, gates }) = plugin else { return Ok((Box::new(acp), None)) };
    let reader = source.instance(launcher.clone()).map_err(anyhow::Error::msg)?;
    // The agent's lines wait for a plugin that can hold its zone.
    let gated = has_zone && gates;
    let subject = AgentInfo { name: source.name, cwd: workspace, session, gated };
    let (overhearer, extractor, news) =
        ExtractorHost::new(subject, reader, Box::new(acp.with_reasons()), concern.clone());
    let task = AbortOnDropHandle::new(tokio::spawn(overhearer.run()));
    Ok((Box::new(extractor), Some(Overhearing { news, task, has_zone, concern })))
}

impl Plugged {
    pub(super) fn find(options: &ObservePlugin, eisen_dir: &Path) -> anyhow::Result<Self> {
        let ObservePlugin { file, config } = options;
        let is_object = serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(config);
        is_object.context("--plugin-config takes a JSON object, such as '{\"ask\": \"own\"}'")?;
        let path = library(file, eisen_dir)?;
        let plugin = config::Plugin {
            name: config::plugin_name(&path).unwrap_or_else(|| "plugin".to_owned()),
            path,
            isolation: Isolation::Process,
            config: config.clone(),
            gates: false,
        };
        let failed = |why| anyhow::anyhow!("--plugin {}: {why}", file.display());
        let gates = plugins::tried(&plugin, eisen_dir).map_err(failed)?;
        let config::Plugin { name, path, config, .. } = plugin;
        let approval = plugins::approval(&path, eisen_dir).map_err(failed)?;
        Ok(Self { source: Source { name, config, place: Hosting::Child(path, approval) }, gates })
    }
}

impl Overhearing {
    /// Passes on what the plugin finds out. Returns why the agent has to end: it has a zone, and nobody
    /// sees any more what it does.
    pub(super) async fn serve(this: Option<Self>, relay: &RelayHandle) -> String {
        let Some(mut this) = this else { return std::future::pending().await };
        let outcome = loop {
            tokio::select! {
                () = this.news.next() => relay.catch_up().await,
                outcome = &mut this.task => break outcome,
            }
        };
        let why = match outcome {
            // The relay has ended.
            Ok(Ok(())) => return std::future::pending().await,
            Ok(Err(why)) => why,
            Err(error) => error.to_string(),
        };
        relay.catch_up().await;
        if this.has_zone {
            tracing::error!(why, "stops the agent: nobody sees any more what it does");
            return why;
        }
        this.concern.send_replace(Some(format!("what it does is not seen any more: {why}")));
        std::future::pending().await
    }
}

/// A name is that of one in the folder of plugins first.
fn library(file: &Path, eisen_dir: &Path) -> anyhow::Result<PathBuf> {
    if file.components().nth(1).is_some() {
        return Ok(file.to_owned());
    }
    let folder = config::plugin_folder(eisen_dir);
    let name = file.to_string_lossy();
    config::plugin_named(&folder, &name).or_else(|there| {
        if file.is_file() {
            return Ok(file.to_owned());
        }
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        let folder = folder.display();
        anyhow::bail!("--plugin {name}: there is no such file, nor a plugin of that name in {folder} (there: {there})")
    })
}
