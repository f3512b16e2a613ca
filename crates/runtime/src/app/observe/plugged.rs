//! The extractor plugin of an observed agent that doesn't speak ACP.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use eisen_base::task;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::config::{self, Isolation};
use crate::extract::{Acp, DiskWorkspace, Extractor};
use crate::plugin::{AgentInfo, ExtractorHost, Hosting, News, PluginSource};
use crate::process::Launcher;
use crate::proxy::RelayHandle;
use crate::team_file::plugins;

/// The plugin options of `observe`.
#[derive(Clone, Debug)]
pub struct ObservePlugin {
    /// Its library, or its name in the folder of plugins.
    pub file: PathBuf,
    /// A JSON object.
    pub config: String,
}

/// A plugin that passed its test.
pub(super) struct Plugged {
    source: PluginSource,
    /// Whether it can enforce a zone.
    pub(super) gates: bool,
}

/// The task that runs the plugin behind the relay's extractor.
pub(super) struct PluginTask {
    news: News,
    /// Ends with an error if the plugin was given up.
    task: AbortOnDropHandle<Result<(), String>>,
    has_zone: bool,
    problem: watch::Sender<Option<String>>,
}

/// Creates the agent's extractor, by its plugin or for ACP. `problem` receives problems of the
/// plugin.
pub(super) fn extractor(
    plugin: Option<Plugged>,
    launcher: &Launcher,
    workspace: PathBuf,
    session: Option<String>,
    has_zone: bool,
    problem: watch::Sender<Option<String>>,
) -> anyhow::Result<(Box<dyn Extractor>, Option<PluginTask>)> {
    let on_disk = Arc::new(DiskWorkspace::new(workspace.clone()));
    let acp = Acp::new(on_disk, workspace.clone());
    let Some(Plugged { source, gates }) = plugin else { return Ok((Box::new(acp), None)) };
    let reader = source.instance(launcher.clone()).map_err(anyhow::Error::msg)?;
    // The agent's lines wait for a plugin that enforces its zone.
    let gated = has_zone && gates;
    let subject = AgentInfo { name: source.name, cwd: workspace, session, gated };
    let (host, extractor, news) =
        ExtractorHost::new(subject, reader, Box::new(acp.with_reasons()), problem.clone());
    let task = AbortOnDropHandle::new(task::spawn(host.run()));
    Ok((Box::new(extractor), Some(PluginTask { news, task, has_zone, problem })))
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
        Ok(Self {
            source: PluginSource { name, config, place: Hosting::Child(path, approval) },
            gates,
        })
    }
}

impl PluginTask {
    /// Forwards the plugin's results to the relay. Returns the plugin's failure if the agent must
    /// stop for it, because it has a zone.
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
            tracing::error!(why, "stopping the agent: its activity is no longer observed");
            return why;
        }
        this.problem.send_replace(Some(format!("its activity is no longer observed: {why}")));
        std::future::pending().await
    }
}

/// The library of `--plugin`: a path, or a name, looked up in the plugin folder first.
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
