//! Connects `[[streams]]` of the configuration with the room `streams`; keeps which streams were attached
//! and detached over the port.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::app::rooms::Wiring;
use crate::config::{AgentTable, Config, MOST_STREAMS, stream_of};
use crate::home::journals::team_folder;
use crate::journal::NameError;
use crate::kept::{Durable, KeptFile};
use crate::model::{StreamReplay, StreamReport, StreamSpec, StreamState, StreamTarget, now_ms};
use crate::serve::Refused;
use crate::streams::{ReplayError, Streams};

/// The folder of cursors in a team's folder, and that of files in it.
const FOLDER: &str = "streams";
const FILES: &str = "files";

/// The file of the streams that were attached and detached.
const KEPT: &str = "streams.json";

/// Bytes of that file: each of the streams may have a long command or URL.
const MOST_BYTES: u64 = 4 << 20;

/// The streams of a team.
#[derive(Clone)]
pub(crate) struct TeamStreams {
    /// None: no journal is kept.
    streams: Option<Streams>,
    in_file: Arc<[StreamSpec]>,
    folder: PathBuf,
    eisen_dir: PathBuf,
    changes: Arc<Mutex<KeptStreams>>,
}

/// Over restarts of the team.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct KeptStreams {
    /// The tables of streams that are not in the file; their variables are not replaced.
    attached: Vec<AgentTable>,
    /// Names of streams of the file.
    detached: Vec<String>,
}

/// Starts the streams of a configuration, and those that were attached.
pub(crate) async fn start(config: &Config, wiring: &mut Wiring, eisen_dir: &Path) -> TeamStreams {
    let folder = team_folder(eisen_dir, &config.team.name).join(FOLDER);
    let mut kept = KeptStreams::read(&folder).unwrap_or_else(|error| {
        tracing::warn!(
            "cannot read {}, which streams were attached: {error}",
            folder.join(KEPT).display()
        );
        KeptStreams::default()
    });
    let in_file: Arc<[StreamSpec]> = config.streams.as_slice().into();
    kept.detached.retain(|name| in_file.iter().any(|stream| stream.name == *name));
    let streams = wiring.deliver(&config.team.name, folder.clone());
    let eisen_dir = eisen_dir.to_owned();
    let all =
        TeamStreams { streams, in_file, folder, eisen_dir, changes: Arc::new(Mutex::new(kept)) };
    all.begin().await;
    all
}

impl TeamStreams {
    async fn begin(&self) {
        let Some(streams) = &self.streams else { return };
        let kept = self.changes.lock().await;
        for stream in self.in_file.iter().filter(|it| !kept.detached.contains(&it.name)) {
            streams.start(stream).await;
        }
        for table in &kept.attached {
            let name = name(table);
            match self.compile(table) {
                Ok(stream) if self.of_file(name).is_none() => streams.start(&stream).await,
                Ok(_) => tracing::warn!(stream = name, "the file has a stream of this name now"),
                Err(why) => tracing::warn!(stream = name, "cannot attach the stream again: {why}"),
            }
        }
    }

    pub(crate) fn reports(&self) -> Vec<StreamReport> {
        let mut running = self.streams.as_ref().map(Streams::reports).unwrap_or_default();
        let of_file = self.in_file.iter().map(|stream| {
            let at = running.iter().position(|it| *it.name == *stream.name);
            let detached = || stream.report(StreamState::Detached, now_ms());
            at.map_or_else(detached, |at| running.remove(at))
        });
        let mut all: Vec<_> = of_file.collect();
        all.append(&mut running);
        all
    }

    pub(crate) async fn attach(&self, table: AgentTable) -> Result<StreamReport, Refused> {
        let Some(streams) = &self.streams else {
            let message = "the team keeps no journal: set `enabled = true` in `[journal]`";
            return Err(Refused::new(409, message));
        };
        let name = name(&table).to_owned();
        let mut kept = self.changes.lock().await;
        let reports = self.reports();
        let is_there = |report: &&StreamReport| *report.name == *name;
        let is_running = |report: &StreamReport| report.state != StreamState::Detached;
        if reports.iter().find(is_there).is_some_and(is_running) {
            return Err(Refused::new(409, format!("there is a stream `{name}` already")));
        }
        let mut next = kept.clone();
        let stream = if table.len() == 1 && table.contains_key("name") {
            let Some(stream) = self.of_file(&name) else { return Err(self.unknown(&name)) };
            next.detached.retain(|detached| *detached != name);
            stream.clone()
        } else if self.of_file(&name).is_some() {
            let message = format!("the configuration has a stream `{name}`: attach it by its name");
            return Err(Refused::new(409, message));
        } else if reports.len() >= MOST_STREAMS {
            return Err(Refused::new(409, format!("there are {MOST_STREAMS} streams already")));
        } else {
            let stream = self.compile(&table).map_err(Refused::wrong)?;
            let mut others = next.attached.iter().filter_map(|it| self.compile(it).ok());
            if let Some(other) = others.find(|other| writes_one_file(other, &stream)) {
                let message = format!("the stream `{}` writes this file", other.name);
                return Err(Refused::new(409, message));
            }
            next.attached.push(table);
            stream
        };
        self.keep(&next)?;
        *kept = next;
        streams.start(&stream).await;
        let attached = streams.reports().into_iter().find(|report| *report.name == *name);
        attached.ok_or_else(|| Refused::new(409, "the team is stopping"))
    }

    pub(crate) async fn detach(&self, name: &str) -> Result<StreamReport, Refused> {
        let mut kept = self.changes.lock().await;
        let report = self.reports().into_iter().find(|report| *report.name == *name);
        let Some(report) = report else { return Err(self.unknown(name)) };
        let mut next = kept.clone();
        let is_of_file = self.of_file(name).is_some();
        if is_of_file && !next.detached.iter().any(|detached| detached == name) {
            next.detached.push(name.to_owned());
        }
        next.attached.retain(|table| self::name(table) != name);
        self.keep(&next)?;
        *kept = next;
        if let Some(streams) = &self.streams {
            streams.end(name, !is_of_file).await;
        }
        Ok(StreamReport { state: StreamState::Detached, timestamp_ms: now_ms(), ..report })
    }

    pub(crate) async fn replay(
        &self,
        session: &str,
        stream: &str,
    ) -> Result<StreamReplay, Refused> {
        let Some(streams) = &self.streams else { return Err(self.unknown(stream)) };
        streams.replay(stream, session).await.map_err(|error| {
            let code = match &error {
                ReplayError::NoStream(_) | ReplayError::Session(NameError::NoSession { .. }) => 404,
                ReplayError::Session(NameError::Open(_)) => 500,
                ReplayError::Session(_) => 400,
                ReplayError::Many | ReplayError::Ended => 409,
            };
            Refused::new(code, error.to_string())
        })
    }

    fn of_file(&self, name: &str) -> Option<&StreamSpec> {
        self.in_file.iter().find(|stream| stream.name == name)
    }

    fn compile(&self, table: &AgentTable) -> Result<StreamSpec, String> {
        stream_of(table, &self.folder.join(FILES), &self.eisen_dir)
    }

    fn unknown(&self, name: &str) -> Refused {
        let known: Vec<_> = self.reports().iter().map(|it| it.name.to_string()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Refused::new(404, format!("there is no stream `{name}`; there are: {known}"))
    }

    fn keep(&self, kept: &KeptStreams) -> Result<(), Refused> {
        let failed = |error: io::Error| {
            let file = self.folder.join(KEPT);
            Refused::new(500, format!("cannot write {}: {error}", file.display()))
        };
        kept.write(&self.folder).map_err(failed)
    }
}

fn writes_one_file(a: &StreamSpec, b: &StreamSpec) -> bool {
    match (&a.target, &b.target) {
        (StreamTarget::File(a), StreamTarget::File(b)) => a.collides(b),
        _ => false,
    }
}

fn name(table: &AgentTable) -> &str {
    table.get("name").and_then(serde_json::Value::as_str).unwrap_or_default()
}

impl KeptStreams {
    fn read(folder: &Path) -> io::Result<Self> {
        Ok(Self::file(folder).read_json()?.unwrap_or_default())
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        Self::file(folder).replace(&serde_json::to_vec(self)?)
    }

    /// The file, which has what a person decided.
    fn file(folder: &Path) -> KeptFile<Durable> {
        KeptFile::new(folder.join(KEPT), MOST_BYTES)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kept::power_cut::survives;

    #[test]
    fn a_detached_stream_stays_detached_after_a_power_cut() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("streams").join(KEPT);
        let folder = file.parent().unwrap();
        let kept = KeptStreams { attached: Vec::new(), detached: vec!["audit".to_owned()] };
        survives(&file, || kept.write(folder).unwrap());
        assert_eq!(KeptStreams::read(folder).unwrap().detached, ["audit"]);
    }
}
