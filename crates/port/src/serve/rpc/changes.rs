//! Owns the methods that read agents' changes of files: a diff, and the author of each line.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::events::{foreign, own, read};
use super::{MethodCall, Reply, reply};
use crate::changes::{
    self, AskError, Asked, BlameError, FilePatch, LeftOut, Provenance, SelectError,
};
use crate::serve::Refused;
use crate::serve::sight::{Sight, WHY};
use crate::wire::{
    Blame, BlameParams, Blamed, BlamedLine, Diff, DiffFile, GetDiff, GetDiffParams, NotInDiff,
};

/// Bytes of patches, or of lines, in one answer.
const MOST_BYTES: usize = 1 << 20;

/// Files, and entries that are left out, in one answer.
const MOST_FILES: usize = 2_000;

/// Bytes of a path.
const LONGEST_PATH: usize = 4_096;

pub(super) async fn get_diff(
    call: MethodCall<'_>,
    params: GetDiffParams,
) -> Result<Reply<GetDiff>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let own = own(caller).map(str::to_owned);
    if let (Some(own), Some(named)) = (&own, &params.agent_id)
        && named != own
    {
        return Err(foreign(own));
    }
    if params.turn.is_some() && params.since.is_some() {
        return Err(Refused::wrong("`turn` and `since` exclude each other"));
    }
    let sight = Sight::of(shared, caller).await;
    read(shared, move |store| {
        let GetDiffParams { agent_id, session_id, turn, since, ignored } = params;
        let asked =
            Asked { agent: own.or(agent_id.map(Into::into)), session: session_id, turn, since };
        let scope = asked.scope(store)?;
        let changes = changes::select(store, &scope)?;
        let mut net = changes::net(&changes, store);
        let mut diff = Diff {
            ignored: if ignored { 0 } else { net.leave_ignored_out() },
            undone: changes.undone,
            unread: changes.skipped,
            ..Diff::default()
        };
        for left_out in changes::not_in_patch(&net) {
            leave_out(&mut diff, left_out);
        }
        let mut bytes = Vec::new();
        for file in &net.files {
            if is_full(&diff, &bytes) {
                leave_out(&mut diff, full(&file.to));
                continue;
            }
            if !sight.opens(&file.from) || !sight.opens(&file.to) {
                leave_out(&mut diff, LeftOut { path: file.to.clone(), why: WHY.to_owned() });
                continue;
            }
            match changes::patch(file, store) {
                Ok(patch) => add(&mut diff, patch, file.contested.clone(), &mut bytes),
                Err(_) if file.is_folder() => {}
                Err(left_out) => leave_out(&mut diff, left_out),
            }
        }
        diff.diff = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                diff.diff_bytes = Some(STANDARD.encode(error.as_bytes()));
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        };
        reply(&diff)
    })
    .await
}

pub(super) async fn blame(
    call: MethodCall<'_>,
    params: BlameParams,
) -> Result<Reply<Blame>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let path = place(&params.path)?;
    let first = params.first_line.unwrap_or(1).max(1);
    let own = own(caller).map(str::to_owned);
    let sight = Sight::of(shared, caller).await;
    read(shared, move |store| {
        sight.permit(&path)?;
        let history = changes::follow(store, &path)?;
        let blame = changes::blame(&path, &history, store, None)?;
        let names = changes::provenance(store, &blame)?;
        let mut blamed = Blamed {
            path: params.path,
            lines: Vec::new(),
            next_line: None,
            unread: history.skipped,
        };
        let lines = blame.iter().zip(&blame.lines).enumerate().skip(first - 1);
        let mut bytes = 0;
        for (at, ((text, _), origin)) in lines {
            let name = &names[*origin];
            let line = blamed_line(at + 1, text, name, own.as_deref());
            // The approximate bytes of its JSON.
            bytes += 400 + text.len() + name.prompt.as_ref().map_or(0, String::len);
            if bytes > MOST_BYTES && !blamed.lines.is_empty() {
                blamed.next_line = Some(at + 1);
                break;
            }
            blamed.lines.push(line);
        }
        reply(&blamed)
    })
    .await
}

fn is_full(diff: &Diff, bytes: &[u8]) -> bool {
    bytes.len() >= MOST_BYTES || diff.files.len() >= MOST_FILES
}

fn add(diff: &mut Diff, added: FilePatch, contested: Vec<String>, bytes: &mut Vec<u8>) {
    if bytes.len() + added.lines.bytes().len() > MOST_BYTES {
        return leave_out(diff, full(&added.path));
    }
    bytes.extend_from_slice(added.lines.bytes());
    let path = added.path.to_string_lossy().into_owned();
    let is_moved = added.from != added.path;
    diff.files.push(DiffFile {
        from: is_moved.then(|| added.from.to_string_lossy().into_owned()),
        path,
        added: added.added,
        removed: added.removed,
        binary: added.binary.is_some(),
        contested: contested.into_iter().map(Into::into).collect(),
    });
    if let Some(why) = added.note {
        leave_out(diff, LeftOut { path: added.path, why });
    }
}

fn leave_out(diff: &mut Diff, left_out: LeftOut) {
    if diff.left_out.len() >= MOST_FILES {
        diff.more_left_out += 1;
        return;
    }
    let path = left_out.path.to_string_lossy().into_owned();
    diff.left_out.push(NotInDiff { path, reason: left_out.why });
}

fn full(path: &Path) -> LeftOut {
    let why =
        "the answer has no room for it: ask for one turn, or use `eisen-core diff`".to_owned();
    LeftOut { path: path.to_owned(), why }
}

fn blamed_line(line: usize, text: &[u8], name: &Provenance, own: Option<&str>) -> BlamedLine {
    let opens = own.is_none_or(|own| name.by == "agent" && name.agent_id.as_deref() == Some(own));
    let content = |text: &Option<String>| text.clone().filter(|_| opens);
    let text = String::from_utf8_lossy(text);
    BlamedLine {
        line,
        by: name.by.into(),
        agent_id: name.agent_id.clone().map(Into::into),
        session_id: name.session_id.clone(),
        turn: name.turn,
        tool_call_id: name.tool_call_id.clone(),
        title: content(&name.title),
        event_id: name.event_id.clone(),
        timestamp: name.timestamp,
        prompt: content(&name.prompt),
        contested: name.contested.iter().map(|agent| agent.clone().into()).collect(),
        text: opens.then(|| text.trim_end_matches(['\n', '\r']).to_owned()),
    }
}

/// A path as events name it.
fn place(path: &str) -> Result<PathBuf, Refused> {
    if path.is_empty() || path.len() > LONGEST_PATH || path.contains('\0') {
        return Err(Refused::wrong(format!(
            "`path` is the path of a file, of at most {LONGEST_PATH} bytes"
        )));
    }
    Ok(Path::new(path).components().collect())
}

impl From<AskError> for Refused {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Name(error) => error.into(),
            AskError::Journal(error) => error.into(),
            AskError::WhoseTurn { .. } => Refused::wrong(error.to_string()),
            AskError::NoAgent { .. } | AskError::NoSession { .. } | AskError::NoTurn { .. } => {
                Self::new(404, error.to_string())
            }
        }
    }
}

impl From<SelectError> for Refused {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Journal(error) => error.into(),
            SelectError::TooMany => Self::new(409, error.to_string()),
        }
    }
}

impl From<BlameError> for Refused {
    fn from(error: BlameError) -> Self {
        Self::new(404, error.to_string())
    }
}
