//! `terminal/*`: the terminals of one agent, each a task that owns its process.

mod screen;
mod shell;
mod tail;
mod terminal;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{CreateTerminalRequest, EnvVariable, Error};
use eisen_base::task::TaskSet;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::unix::pipe;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::rpc;
use crate::model::{AgentMemory, SessionId, code};
use crate::process::Command;
use crate::zone::Permit;
use tail::Tail;
use terminal::Terminal;

pub use screen::Screens;
pub(super) use shell::{Launch, Shell};

/// Terminals open at once; one more is refused until one is released.
const MAX_TERMINALS: usize = 64;

/// Output kept by default, and at most. (A byte takes up to six in JSON, and the answer must fit a
/// line.) Longer output loses its beginning, and the answer says so.
const DEFAULT_OUTPUT: u64 = 1 << 20;
const MAX_OUTPUT: u64 = 8 << 20;

#[derive(Debug)]
pub(super) struct Terminals {
    launcher: Arc<dyn Launch>,
    env: BTreeMap<String, String>,
    last_id: u64,
    open: HashMap<String, Terminal>,
    tasks: TaskSet,
    places: Arc<Semaphore>,
    memory: AgentMemory,
}

/// A started process without a terminal.
#[derive(Debug)]
pub(super) struct Started {
    session: SessionId,
    shell: Box<dyn Shell>,
    output: pipe::Receiver,
    tail: Tail,
    place: OwnedSemaphorePermit,
}

impl Terminals {
    /// The kept outputs count to `memory`.
    pub(super) fn new(
        launcher: Arc<dyn Launch>,
        env: BTreeMap<String, String>,
        memory: AgentMemory,
    ) -> Self {
        Self {
            launcher,
            env,
            last_id: 0,
            open: HashMap::new(),
            tasks: TaskSet::default(),
            places: Arc::new(Semaphore::new(MAX_TERMINALS)),
            memory,
        }
    }

    /// Starts the process of a terminal in the folder of the request's first permit.
    pub(super) fn create(
        &self,
        request: CreateTerminalRequest,
        permits: Option<Vec<Permit>>,
    ) -> Result<impl Future<Output = Result<Started, Error>> + Send + use<>, Error> {
        let Some(cwd) = permits.and_then(|permits| permits.into_iter().next()) else {
            let why = "Refused: this terminal was not judged by the agent's zone";
            return Err(rpc::failure(code::INTERNAL_ERROR, why));
        };
        if let Some(why) = cwd.moved() {
            return Err(rpc::failure(code::INTERNAL_ERROR, format!("Refused: {why}")));
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let why = format!("More than {MAX_TERMINALS} terminals at once: release some");
            return Err(rpc::failure(code::INTERNAL_ERROR, why));
        };
        let limit = request.output_byte_limit.unwrap_or(DEFAULT_OUTPUT).min(MAX_OUTPUT);
        let memory = self.memory.take(0);
        let memory = memory.map_err(|why| rpc::failure(code::INTERNAL_ERROR, why.to_string()))?;
        let tail = Tail::new(usize::try_from(limit).unwrap_or(usize::MAX), memory);
        let env = environment(&self.env, request.env)?;
        let session = SessionId::new(&*request.session_id.0);
        let (program, args) = program(request.command, request.args);
        let command = Command { program, args, cwd: cwd.real, env };
        let starting = self.launcher.start(command);
        Ok(async move {
            let started = starting.await;
            let (shell, output) =
                started.map_err(|e| rpc::failure(code::INTERNAL_ERROR, e.to_string()))?;
            Ok(Started { session, shell, output, tail, place })
        })
    }

    /// Creates the terminal of a started process, which `screens` show; returns its id.
    pub(super) fn register(&mut self, started: Started, screens: Option<&Screens>) -> String {
        // Removes the finished tasks.
        while self.tasks.try_join_next().is_some() {}
        let Started { session, shell, output, tail, place } = started;
        self.last_id += 1;
        let id = format!("term_{}", self.last_id);
        let screen = screens.map(|screens| screens.of(session, id.clone()));
        let (terminal, task) = Terminal::new(shell, output, tail, screen);
        self.tasks.spawn(async move {
            task.await;
            drop(place);
        });
        self.open.insert(id.clone(), terminal);
        id
    }

    /// Returns the terminal that a request names.
    pub(super) fn find(&self, params: Option<&RawValue>) -> Result<&Terminal, Error> {
        let id = terminal_id(params)?;
        self.open.get(&id).ok_or_else(|| unknown(&id))
    }

    /// Removes the terminal that a request names.
    pub(super) fn remove(&mut self, params: Option<&RawValue>) -> Result<Terminal, Error> {
        let id = terminal_id(params)?;
        self.open.remove(&id).ok_or_else(|| unknown(&id))
    }

    /// Kills all processes and waits for their end.
    pub(super) async fn end(&mut self) {
        self.open.clear();
        while self.tasks.join_next().await.is_some() {}
    }
}

fn terminal_id(params: Option<&RawValue>) -> Result<String, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct About {
        terminal_id: String,
    }
    rpc::decode(params).map(|About { terminal_id }| terminal_id)
}

fn unknown(id: &str) -> Error {
    rpc::failure(
        code::RESOURCE_NOT_FOUND,
        format!("Resource not found: there is no terminal `{id}`"),
    )
}

/// Without arguments the command is a shell line: agents send whole lines, and the protocol does
/// not separate an empty list from a missing one.
fn program(command: String, args: Vec<String>) -> (OsString, Vec<OsString>) {
    if args.is_empty() {
        return ("/bin/sh".into(), vec!["-c".into(), command.into()]);
    }
    (command.into(), args.into_iter().map(OsString::from).collect())
}

/// Returns the agent's environment with the request's on top. `EISEN_` variables, which identify
/// the agent, stay as they are.
fn environment(
    ours: &BTreeMap<String, String>,
    wanted: Vec<EnvVariable>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut env = ours.clone();
    for EnvVariable { name, value, .. } in wanted {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(rpc::failure(
                code::INVALID_PARAMS,
                format!("Invalid params: variable {name:?}"),
            ));
        }
        if !name.starts_with("EISEN_") {
            env.insert(name, value);
        }
    }
    Ok(env)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_command_without_arguments_is_a_shell_line() {
        let run = |command: &str, args: &[&str]| {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            let (program, args) = program(command.to_owned(), args);
            let words = std::iter::once(program).chain(args);
            words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(run("ls -l; exit 3", &[]), ["/bin/sh", "-c", "ls -l; exit 3"]);
        assert_eq!(run("ls", &["-l; exit 3"]), ["ls", "-l; exit 3"]);
    }

    #[test]
    fn a_request_adds_to_the_environment_but_cannot_change_who_it_is() {
        let ours = [("A", "1"), ("EISEN_DEPTH", "2")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let ours = BTreeMap::from(ours);
        let wanted = |name: &str, value: &str| vec![EnvVariable::new(name, value)];
        let joined = |name, value| {
            let env = environment(&ours, wanted(name, value))?;
            let pairs: Vec<_> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
            Ok::<_, Error>(pairs.join(" "))
        };
        assert_eq!(joined("B", "x=y").unwrap(), "A=1 B=x=y EISEN_DEPTH=2");
        assert_eq!(joined("A", "").unwrap(), "A= EISEN_DEPTH=2");
        assert_eq!(joined("EISEN_DEPTH", "0").unwrap(), "A=1 EISEN_DEPTH=2");
        assert_eq!(joined("EISEN_TOKEN", "0").unwrap(), "A=1 EISEN_DEPTH=2");
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "\0")] {
            assert_eq!(i32::from(joined(name, value).unwrap_err().code), -32602);
        }
    }
}
