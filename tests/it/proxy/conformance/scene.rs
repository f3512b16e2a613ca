//! A client and an agent with the program between them.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    AgentNotification, AgentRequest, ClientNotification, ClientRequest,
};
use serde_json::{Value, json};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;

use super::ends::{AgentEnd, ClientEnd, agent, answer, client, soon};
use super::methods::{Method, Notice, opening};
use crate::harness::{Port, Puppet, Stage, Team};

/// What stands between the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Middle {
    Observe,
    /// With a zone in which all lies that is asked for.
    Zoned,
    /// A team: its port, and the client host of the agent.
    Attach,
}

/// How the agent's process ends when its end of the protocol is gone.
pub(super) const DIED: i32 = 128 + 15;

pub(super) struct Scene {
    pub(super) client: ClientEnd,
    pub(super) agent: AgentEnd,
    /// What runs beside them.
    pub(super) rest: Rest,
}

pub(super) struct Rest {
    /// The workspace, with a slash behind it.
    pub(super) shop: String,
    /// The program that the client speaks to.
    program: Child,
    middle: Middle,
    team: Option<(Team, Port)>,
    _stage: Stage,
}

impl Scene {
    /// Nothing was said yet.
    pub(super) async fn new(middle: Middle) -> Self {
        Self::with(middle, "").await
    }

    /// The team, if there is one, has these keys.
    pub(super) async fn with(middle: Middle, keys: &str) -> Self {
        let stage = Stage::new();
        let shop = stage.in_shop("");
        let pipes = Puppet::pipes(&stage, "agent");
        let command = Puppet::command(&stage.path(""), "agent");
        let zone: &[&str] =
            if middle == Middle::Zoned { &["--zone", "{src,types}/**"] } else { &[] };
        let (agent, team, mut program) = if middle == Middle::Attach {
            stage.configure(keys, vec![crate::harness::agent("agent").puppet()]);
            let team = stage.up();
            let mut agent = played(pipes).await;
            for result in [opening(&shop)[0].result.clone(), json!({"sessionId": "own"})] {
                agent.any_asked().await.1.respond(result).unwrap();
            }
            let port = team.steer_when_ready(&["agent"]);
            (agent, Some((team, port)), started(&stage, &["attach", "agent"]))
        } else {
            let command: Vec<_> = command.iter().map(String::as_str).collect();
            let args =
                [&["observe", "--port", "0", "--cwd", &shop], zone, &["--"], &command].concat();
            let program = started(&stage, &args);
            (played(pipes).await, None, program)
        };
        let (hears, says) = (program.stdout.take().unwrap(), program.stdin.take().unwrap());
        let client = client(hears, says).await;
        let rest = Rest { shop, program, middle, team, _stage: stage };
        Self { client, agent, rest }
    }

    /// The session `s` is open.
    pub(super) async fn opened(middle: Middle) -> Self {
        let mut scene = Self::new(middle).await;
        scene.open().await;
        scene
    }

    pub(super) async fn open(&mut self) {
        for method in opening(&self.rest.shop) {
            if self.rest.middle == Middle::Attach && method.name == "initialize" {
                // The agent was asked when its team came up.
                let introduced = self.client.ask::<ClientRequest>(method.name, &method.params);
                assert_eq!(answer(introduced).await.unwrap(), method.result);
            } else {
                self.client_asks(&method).await;
            }
        }
    }

    /// What is asked and answered arrives as it is; an error, too.
    pub(super) async fn client_asks(&mut self, method: &Method) {
        let (asked, request) = self.client_begins(method).await;
        request.respond_with_error(refusal()).unwrap();
        assert_eq!(answer(asked).await.unwrap_err(), refusal(), "{}", method.name);
        let (asked, request) = self.client_begins(method).await;
        request.respond(method.result.clone()).unwrap();
        assert_eq!(answer(asked).await.unwrap(), method.result, "{}", method.name);
    }

    pub(super) async fn agent_asks(&mut self, method: &Method) {
        let (asked, request) = self.agent_begins(method).await;
        request.respond_with_error(refusal()).unwrap();
        assert_eq!(answer(asked).await.unwrap_err(), refusal(), "{}", method.name);
        let (asked, request) = self.agent_begins(method).await;
        request.respond(method.result.clone()).unwrap();
        assert_eq!(answer(asked).await.unwrap(), method.result, "{}", method.name);
    }

    /// Lets the client ask; returns the request as both sides have it.
    pub(super) async fn client_begins(&mut self, method: &Method) -> (Sent, Responder) {
        let sent = self.client.ask::<ClientRequest>(method.name, &method.params);
        let request = self.agent.asked(method.name, &method.params).await;
        (sent, request)
    }

    pub(super) async fn agent_begins(&mut self, method: &Method) -> (Sent, Responder) {
        let sent = self.agent.ask::<AgentRequest>(method.name, &method.params);
        let request = self.client.asked(method.name, &method.params).await;
        (sent, request)
    }

    pub(super) async fn client_notifies(&mut self, notice: &Notice) {
        self.client.notify::<ClientNotification>(notice);
        assert_eq!(self.agent.notified().await, (notice.name.to_owned(), notice.params.clone()));
    }

    pub(super) async fn agent_notifies(&mut self, notice: &Notice) {
        self.agent.notify::<AgentNotification>(notice);
        assert_eq!(self.client.notified().await, (notice.name.to_owned(), notice.params.clone()));
    }
}

pub(super) type Sent = agent_client_protocol::v1::SentRequest<Value>;

impl Rest {
    /// The port of the team.
    pub(super) fn port(&mut self) -> &mut Port {
        &mut self.team.as_mut().unwrap().1
    }

    /// Waits for the program that the client speaks to; returns its exit code.
    pub(super) async fn ends(mut self) -> i32 {
        let status = soon(self.program.wait()).await.unwrap();
        status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap()
    }
}

fn refusal() -> agent_client_protocol::Error {
    agent_client_protocol::Error::new(-32042, "Not now: é").data(json!({"why": [1, null]}))
}

fn started(stage: &Stage, args: &[&str]) -> Child {
    let mut command = Command::from(stage.eisen_core(args));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.kill_on_drop(true).spawn().unwrap()
}

/// The agent's end, once its process has opened the pipes.
async fn played([input, output]: [PathBuf; 2]) -> AgentEnd {
    let says = pipe::OpenOptions::new().read_write(true).open_sender(output).unwrap();
    let hears = soon(spawn_blocking(|| File::open(input).unwrap())).await.unwrap();
    agent(pipe::Receiver::from_file(hears).unwrap(), says).await
}
