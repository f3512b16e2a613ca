use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::output::{self, is_terminal, plain, print, style, write};
use super::table::{Cell, Table};
use super::team::{Which, failed};
use super::{Global, format};
use crate::app::Failure;
use crate::serve::client::Message;

/// On a terminal, `--watch` looks again after this time: memory and CPU announce no change.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Changes that come together are shown together.
const GATHER: Duration = Duration::from_millis(100);

/// Show the agents of a running team, and what they use
///
/// ZONE is what really holds an agent inside its zone: `kernel` holds every process of it (`kernel*`
/// where the kernel lacks a part, which --json and `check` name), `protocol` judges what it asks its
/// client for, and nothing that its own process does. SESSIONS counts the open ones, and TOKENS is
/// what they hold of what they can hold. MEMORY and CPU are of all processes of the agent and its
/// terminals, PEAK is the most memory that its run was seen to use (its last run, if it does not
/// run), COST of all its sessions, those of earlier runs too.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core ps
  eisen-core ps --watch
  eisen-core ps --json | jq -r '.[] | select(.state != \"ready\") | .agent_id'

Exit codes: 0 done, 1 no such team or it ended, 2 wrong usage.")]
pub(super) struct Ps {
    /// Print the array that `list_agents` of the port answers, on one line
    #[arg(long)]
    json: bool,
    /// Go on: on a terminal drawn anew each second, elsewhere printed at each change
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    which: Which,
}

impl Ps {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut team = self.which.connect(global).await?;
        if !self.watch {
            let agents = team.call("list_agents", &json!({})).await.map_err(failed)?;
            return if self.json { print(agents) } else { print(lines(&agents)?.join("\n")) };
        }
        output::end_with_reader();
        let terminal = is_terminal() && !self.json;
        let mut shown = None;
        let mut asked = Some(team.send("list_agents", &json!({})));
        let (mut changed, mut last) = (false, Instant::now());
        if terminal {
            write(b"\x1b[H\x1b[2J")?;
        }
        loop {
            let next = last + if changed { GATHER } else { LOOK_AGAIN };
            tokio::select! {
                message = team.next() => match message.map_err(failed)? {
                    Message::Answer { id, outcome } if asked == Some(id) => {
                        asked = None;
                        let agents = outcome.map_err(|refusal| failed(refusal.into()))?;
                        if terminal {
                            redraw(&lines(&agents)?)?;
                        } else if shown.as_ref() != Some(&without_use(&agents)) {
                            shown = Some(without_use(&agents));
                            self.print(&agents)?;
                        }
                    }
                    Message::Changed
                    | Message::Turn { .. }
                    | Message::Blocked(_)
                    | Message::Lagged => changed = true,
                    _ => {}
                },
                () = sleep_until(next), if asked.is_none() && (terminal || changed) => {
                    asked = Some(team.send("list_agents", &json!({})));
                    (changed, last) = (false, Instant::now());
                }
            }
        }
    }

    /// One table of several, or one array.
    fn print(&self, agents: &Value) -> Result<(), Failure> {
        if self.json {
            return print(agents);
        }
        print(lines(agents)?.join("\n") + "\n")
    }
}

/// An agent as `list_agents` has it; what another version leaves out is not known.
#[derive(Deserialize)]
struct AgentRow {
    agent_id: String,
    state: String,
    pid: Option<u32>,
    reason: Option<String>,
    #[serde(default)]
    restarts: u64,
    zone: Option<String>,
    #[serde(default)]
    zone_missing: Vec<String>,
    #[serde(default)]
    sessions: Vec<SessionRow>,
    memory_bytes: Option<u64>,
    cpu_ms: Option<u64>,
    peak_memory_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct SessionRow {
    #[serde(default)]
    open: bool,
    used: Option<u64>,
    size: Option<u64>,
    cost: Option<CostRow>,
}

#[derive(Deserialize)]
struct CostRow {
    amount: f64,
    currency: String,
}

fn lines(agents: &Value) -> Result<Vec<String>, Failure> {
    let agents = Vec::<AgentRow>::deserialize(agents);
    let agents = agents.map_err(|error| Failure::Run(error.into()))?;
    let has_reason = agents.iter().any(|agent| agent.reason.is_some());
    let mut titles = vec![
        "AGENT",
        "STATE",
        ">PID",
        "ZONE",
        ">SESSIONS",
        ">RESTARTS",
        ">MEMORY",
        ">PEAK",
        ">CPU",
        ">TOKENS",
        ">COST",
    ];
    titles.extend(has_reason.then_some("REASON"));
    let mut table = Table::new(&titles);
    for agent in &agents {
        let mut row = agent.cells();
        row.extend(
            has_reason.then(|| agent.reason.as_deref().map_or("".into(), |why| plain(why).into())),
        );
        table.row(row);
    }
    let width = is_terminal().then(terminal_size::terminal_size).flatten();
    Ok(table.lines(width.map(|(width, _)| width.0.into())))
}

impl AgentRow {
    fn cells(&self) -> Vec<Cell> {
        let or_dash = |known: Option<String>| known.unwrap_or_else(|| "-".to_owned()).into();
        let cpu = self.cpu_ms.map(|ms| format::duration(Duration::from_millis(ms)));
        vec![
            plain(&self.agent_id).into(),
            Cell::styled(&plain(&self.state), style(&self.state)),
            or_dash(self.pid.map(|pid| pid.to_string())),
            or_dash(self.zone()),
            self.sessions.iter().filter(|session| session.open).count().to_string().into(),
            self.restarts.to_string().into(),
            or_dash(self.memory_bytes.map(format::bytes)),
            or_dash(self.peak_memory_bytes.map(format::bytes)),
            or_dash(cpu),
            or_dash(self.tokens()),
            or_dash(self.cost()),
        ]
    }

    /// The tier, with a mark where it has a gap.
    fn zone(&self) -> Option<String> {
        let zone = plain(self.zone.as_deref()?);
        let mark = if zone == "kernel" && !self.zone_missing.is_empty() { "*" } else { "" };
        Some(format!("{zone}{mark}"))
    }

    /// Of the open sessions that told.
    fn tokens(&self) -> Option<String> {
        let open = self.sessions.iter().filter(|session| session.open);
        let told = open.filter_map(|session| Some((session.used?, session.size?)));
        let (used, size) =
            told.reduce(|a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)))?;
        // Nobody knows how many fit, or not even how many there are.
        match (used, size) {
            (0, 0) => None,
            (_, 0) => Some(format::tokens(used)),
            _ => Some(format!("{}/{}", format::tokens(used), format::tokens(size))),
        }
    }

    /// Of all sessions that told, by currency.
    fn cost(&self) -> Option<String> {
        let mut sums = std::collections::BTreeMap::<_, f64>::new();
        for cost in self.sessions.iter().filter_map(|session| session.cost.as_ref()) {
            *sums.entry(plain(&cost.currency)).or_default() += cost.amount;
        }
        let sums: Vec<_> =
            sums.iter().map(|(currency, sum)| format::money(*sum, currency)).collect();
        (!sums.is_empty()).then(|| sums.join(" + "))
    }
}

/// The same without what changes all the time.
fn without_use(agents: &Value) -> Value {
    let mut agents = agents.clone();
    for agent in agents.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        agent.shift_remove("memory_bytes");
        for measured in ["cpu_ms", "peak_memory_bytes", "peak_processes"] {
            agent.shift_remove(measured);
        }
    }
    agents
}

/// Draws the table over the one before, as far as the terminal is high.
fn redraw(lines: &[String]) -> Result<(), Failure> {
    let height = terminal_size::terminal_size().map_or(usize::MAX, |(_, height)| height.0.into());
    let colors = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    let mut screen = "\x1b[H".to_owned();
    for line in lines.iter().take(height.saturating_sub(1)) {
        if colors {
            screen += line;
        } else {
            screen += &anstream::adapter::strip_str(line).to_string();
        }
        screen += "\x1b[K\n";
    }
    write((screen + "\x1b[J").as_bytes())
}
