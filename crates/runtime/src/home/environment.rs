//! Environment variables: `EISEN_DIR`, the nesting depth, and the variables that agents get.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::client_host::TeamTools;
use crate::config;
use crate::kept::make_folder;
use crate::model::{AgentId, TEAM_SERVER};
use crate::serve::{self, TOOLS_PATH, Tokens};
use crate::telemetry::Traceparent;
use crate::wire::{Audience, tools_of};

/// Says which span a program was started for.
pub(crate) const TRACE_VARIABLE: &str = "TRACEPARENT";

/// Maximum nesting of `eisen-core` in agents of `eisen-core`.
const MAX_DEPTH: u32 = 5;

#[derive(Debug, thiserror::Error)]
pub enum DepthError {
    #[error(
        "eisen-core runs inside an agent of eisen-core, nested {0} levels deep (EISEN_DEPTH); the \
         limit is {MAX_DEPTH}, to stop teams that start themselves"
    )]
    TooDeep(u32),
}

/// Returns how many teams this process is nested in: as many as the kernel sees, or more by the
/// variable, which also counts helpers.
pub(crate) fn depth() -> Result<u32, DepthError> {
    let depth = said_depth().max(depth_of_run());
    if depth >= MAX_DEPTH { Err(DepthError::TooDeep(depth)) } else { Ok(depth) }
}

/// Returns how many teams a run is nested in, by the kernel where that says so.
pub(crate) fn depth_of_run() -> u32 {
    let above = crate::process::commands_above();
    above.map_or_else(said_depth, |above| u32::try_from(above).unwrap_or(u32::MAX))
}

fn said_depth() -> u32 {
    std::env::var("EISEN_DEPTH").ok().and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// Returns `$EISEN_DIR`, else `~/.eisen`. One that others could change is refused: tokens, run files and
/// what agents start by lie in it.
pub fn eisen_dir() -> anyhow::Result<PathBuf> {
    let dir = eisen_place()?;
    check_owned(&dir)?;
    Ok(dir)
}

fn check_owned(dir: &Path) -> anyhow::Result<()> {
    let Ok(found) = dir.metadata() else { return Ok(()) };
    let place = dir.display();
    let own = nix::unistd::geteuid().as_raw();
    anyhow::ensure!(
        found.uid() == own,
        "EISEN_DIR, {place}, is owned by another user, uid {}, and this program runs as {own}: set EISEN_DIR \
         to a folder of yours",
        found.uid()
    );
    anyhow::ensure!(
        found.mode() & OTHERS_WRITE == 0,
        "EISEN_DIR, {place}, can be changed by other users, mode {:04o}: `chmod go-w` it, or set EISEN_DIR to a \
         folder of yours",
        found.mode() & 0o7777
    );
    Ok(())
}

/// The same, whoever can change it.
pub fn eisen_place() -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let dir = match (set("EISEN_DIR"), set("HOME")) {
        (Some(dir), _) => PathBuf::from(dir),
        (None, Some(home)) => PathBuf::from(home).join(".eisen"),
        (None, None) => anyhow::bail!("neither EISEN_DIR nor HOME is set: set EISEN_DIR"),
    };
    let dir = std::path::absolute(dir)?;
    // It may be missing, but a file may not be in its place or above it.
    let is_folder = match dir.metadata() {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => error.kind() == ErrorKind::NotFound && dir.symlink_metadata().is_err(),
    };
    anyhow::ensure!(
        is_folder || dir.metadata().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied),
        "EISEN_DIR, {}, is not a folder: set EISEN_DIR to a folder of yours, or unset it to use \
         ~/.eisen",
        dir.display()
    );
    Ok(dir)
}

/// The bits of a mode that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// Creates `$EISEN_DIR`, and checks that it is writable.
pub(crate) fn prepare(eisen_dir: &Path) -> anyhow::Result<()> {
    let usable = make_folder(eisen_dir).and_then(|()| {
        let access = nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK;
        nix::unistd::access(eisen_dir, access).map_err(std::io::Error::from)
    });
    usable.map_err(|error| {
        anyhow::anyhow!(
            "EISEN_DIR, {}, can't be written: {error}: set EISEN_DIR to a folder of yours",
            eisen_dir.display()
        )
    })
}

/// The environment variables of agents and their terminals.
pub(crate) struct TeamEnvironment {
    team: String,
    address: SocketAddr,
    /// Where the tools are served over HTTP.
    tools_address: Option<SocketAddr>,
    depth: u32,
    tokens: Tokens,
    /// The trace context of the run; None without telemetry.
    traced: Option<Traceparent>,
}

impl TeamEnvironment {
    /// The addresses are those of the port, and of the tools over HTTP.
    pub(crate) fn new(
        team: &str,
        address: SocketAddr,
        tools_address: Option<SocketAddr>,
        depth: u32,
        tokens: &Tokens,
        traced: Option<Traceparent>,
    ) -> Self {
        let (team, tokens) = (team.to_owned(), tokens.clone());
        Self { team, address, tools_address, depth, tokens, traced }
    }

    /// `depth`: levels of helpers above the agent.
    pub(crate) fn of(&self, agent: &AgentId, depth: u32) -> BTreeMap<String, String> {
        let mut environment = BTreeMap::from([
            ("EISEN_TEAM".to_owned(), self.team.clone()),
            ("EISEN_AGENT_ID".to_owned(), agent.to_string()),
            ("EISEN_DEPTH".to_owned(), (self.depth + 1 + depth).to_string()),
            ("EISEN_PORT".to_owned(), self.address.port().to_string()),
            ("EISEN_ADDRESS".to_owned(), serve::client::reachable(self.address).to_string()),
            ("EISEN_TOKEN".to_owned(), self.tokens.of(agent)),
        ]);
        let traced = self.traced.map(|context| (TRACE_VARIABLE.to_owned(), context.to_string()));
        environment.extend(traced);
        environment
    }

    /// The MCP server with the tools of the team, in the form of ACP, for an agent's sessions.
    pub(crate) fn tools(&self, agent: &config::Agent, audience: Audience) -> TeamTools {
        let (profile, environment, agent) = (&agent.profile, &agent.env, &agent.id);
        let variables = [
            ("EISEN_TEAM", self.team.clone()),
            ("EISEN_ADDRESS", serve::client::reachable(self.address).to_string()),
            ("EISEN_TOOL_TOKEN", self.tokens.of_tools(agent)),
        ];
        let env = variables.map(|(name, value)| json!({ "name": name, "value": value }));
        let args = json!(["team", "mcp", "--agent", agent.as_str()]);
        let program =
            json!({ "name": TEAM_SERVER, "command": program(), "args": args, "env": env });
        let http = self.tools_address.filter(|_| !is_proxied(environment)).map(|address| {
            let token = format!("Bearer {}", self.tokens.of_tools(agent));
            json!({
                "type": "http",
                "name": TEAM_SERVER,
                "url": format!("http://{address}{TOOLS_PATH}"),
                "headers": [{ "name": "Authorization", "value": token }],
            })
        });
        let hint = profile.hides_tools.filter(|hides| *hides).map(|_| {
            let names: Vec<_> = tools_of(audience).map(|tool| tool.name).collect();
            let names = names.join(", ");
            format!(
                "The tools of your team are those of the MCP server `{TEAM_SERVER}`; where you don't see them, \
                 search for them by name: {names}.\n"
            )
        });
        let shown = profile.hides_tools.map(|hides| !hides);
        TeamTools { program, http, first: profile.tools_form, hint, shown }
    }

    /// Like `of`, with the folder of `eisen-core` first on `path`, else on our own PATH.
    pub(crate) fn of_orchestrator(
        &self,
        agent: &AgentId,
        depth: u32,
        path: Option<&String>,
    ) -> BTreeMap<String, String> {
        let mut environment = self.of(agent, depth);
        let path = path.map(OsString::from).or_else(|| std::env::var_os("PATH"));
        if let Some(path) = with_this_program(&path.unwrap_or_default()) {
            environment.insert("PATH".to_owned(), path);
        }
        environment
    }
}

/// Whether a client with this environment may send requests for this machine elsewhere.
fn is_proxied(environment: &BTreeMap<String, String>) -> bool {
    ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].iter().any(|name| {
        environment.contains_key(*name)
            || std::env::var_os(name).is_some_and(|proxy| !proxy.is_empty())
    })
}

/// The path of this program, else its name.
pub(crate) fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("eisen-core"))
}

fn with_this_program(path: &OsStr) -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let folders = std::iter::once(program.parent()?.to_owned()).chain(std::env::split_paths(path));
    std::env::join_paths(folders).ok()?.into_string().ok()
}

/// Returns the command a user types for this program: its name if it is on PATH, else its path.
pub fn own_command() -> String {
    const NAME: &str = "eisen-core";
    let Ok(program) = std::env::current_exe() else { return NAME.to_owned() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(NAME)).find(|it| it.is_file());
    if found.and_then(|found| found.canonicalize().ok()) == program.canonicalize().ok() {
        return NAME.to_owned();
    }
    let folder = std::env::current_dir().unwrap_or_default();
    let shown = match program.strip_prefix(&folder) {
        Ok(beneath) => Path::new(".").join(beneath),
        Err(_) => program,
    };
    let shown = shown.display().to_string();
    shell_word(&shown)
}

/// Returns a text as one word of a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    let is_word = !text.is_empty() && text.chars().all(is_plain);
    if is_word { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The user's cache folder of the code graph.
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(folder.join("eisen-core/graph"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;

    #[test]
    fn a_folder_that_others_could_change_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("eisen");
        assert!(check_owned(&folder).is_ok(), "it is made");
        std::fs::create_dir(&folder).unwrap();
        let set = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode));
        for (mode, is_right) in [(0o700, true), (0o755, true), (0o770, false), (0o1777, false)] {
            set(mode).unwrap();
            assert_eq!(check_owned(&folder).is_ok(), is_right, "{mode:o}");
        }
        set(0o700).unwrap();
        let foreign = if nix::unistd::geteuid().is_root() {
            chown(&folder, Some(12_345), None).unwrap();
            folder.as_path()
        } else {
            Path::new("/")
        };
        let refused = check_owned(foreign).unwrap_err().to_string();
        assert!(refused.contains("another user") && refused.contains("set EISEN_DIR"), "{refused}");
    }
}
