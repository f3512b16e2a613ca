//! `ps`: a table of the agents, their state and resource usage.

use std::borrow::Cow;
use std::time::Duration;

use clap::Args;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::budget::ListedBudget;
use super::output::{self, is_terminal, plain, print, style, write};
use super::table::{Cell, Table};
use super::team::{Which, failed, read, rows, rows_of};
use super::{Global, format, streams};
use crate::program::Failure;
use crate::serve::client::{Connection, Message, MethodAnswer};
use crate::wire::{
    AgentDetails, Empty, GetJournal, ListAgents, ListBudgets, ListStreams, Tier, ToolsUsed,
};

/// How often `--watch` redraws a terminal: changes of memory and CPU are not published.
const REFRESH: Duration = Duration::from_secs(1);

/// Changes within this time are shown together.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Show the agents of a running team and their resource usage
///
/// ZONE shows how the agent's zone is enforced: `kernel` covers every process of the agent
/// (`kernel*`: this kernel lacks a feature, named by --json and `check`), `protocol` covers only
/// requests to its client, not accesses of its own processes, and `observed` agents are not stopped.
/// SESSIONS counts open sessions, and TOKENS shows how much of their context windows is used. SPENT and COST are what its model calls
/// took since the team began: `~` is estimated, `+` too low, since some turns did not report it
/// (`eisen-core history cost` has more). MEMORY and CPU include all processes of the agent and its
/// terminals. PEAK is the highest memory usage of the current run, or of the last one. TOOLS counts
/// the agent's calls of tools of the team, or shows how far they got: `connected` and `listed` are its
/// client, `seen` is its model; `hidden` are those that the model gets only by a search. OWNER shows who answers for the agent, where the configuration names somebody. Below the
/// table stand the budgets and streams.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core ps
  eisen-core ps --watch
  eisen-core ps --owner ada
  eisen-core ps --json | jq -r '.[] | select(.state != \"ready\") | .agent_id'

Exit codes: 0 done, 1 no such team or it ended, 2 wrong usage.")]
pub(super) struct Ps {
    /// Print the result of `list_agents` as JSON, on one line
    #[arg(long)]
    json: bool,
    /// Keep watching: redraw a terminal each second; otherwise print at each change
    #[arg(short, long)]
    watch: bool,
    /// Show only the agents of this owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    #[command(flatten)]
    which: Which,
}

impl Ps {
    async fn once(&self, team: &mut Connection) -> Result<(), Failure> {
        let agents = self.asked(team.ask::<ListAgents>(&Empty {}).await.map_err(failed)?.json);
        if self.json {
            return print(agents);
        }
        let agents = read(&agents)?;
        print(lines(&agents).join("\n"))?;
        // A team of an earlier version has neither budgets nor a journal.
        if let Ok(budgets) = team.ask::<ListBudgets>(&Empty {}).await {
            for line in budget_lines(rows_of(&budgets.json), &agents) {
                print(line)?;
            }
        }
        // Nor streams.
        if let Ok(streams) = team.ask::<ListStreams>(&Empty {}).await {
            for stream in rows(&streams) {
                print(streams::describe(&stream))?;
            }
        }
        let Ok(journal) = team.call::<GetJournal>(&Empty {}).await else { return Ok(()) };
        for (text, word) in [(journal.trouble, "error"), (journal.notice, "pending")] {
            if let Some(text) = text {
                let style = style(word);
                print(format_args!("{style}{}{style:#}", plain(&text)))?;
            }
        }
        Ok(())
    }

    /// The agents that are asked for, of all.
    fn asked(&self, mut agents: Value) -> MethodAnswer<ListAgents> {
        if let (Some(owner), Some(all)) = (&self.owner, agents.as_array_mut()) {
            all.retain(|agent| {
                let agent = AgentDetails::deserialize(agent);
                agent.is_ok_and(|agent| agent.owner.as_deref() == Some(owner))
            });
        }
        MethodAnswer::new(agents)
    }

    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut team = self.which.connect(global).await?;
        if !self.watch {
            return self.once(&mut team).await;
        }
        output::end_with_reader();
        let terminal = is_terminal() && !self.json;
        let mut shown = None;
        let mut request = Some(team.send::<ListAgents>(&Empty {}));
        let (mut changed, mut last) = (false, Instant::now());
        if terminal {
            write(b"\x1b[H\x1b[2J")?;
        }
        loop {
            let next = last + if changed { DEBOUNCE } else { REFRESH };
            tokio::select! {
                message = team.next() => match message.map_err(failed)? {
                    Message::Answer { id, outcome } if request == Some(id) => {
                        request = None;
                        let agents = outcome.map_err(|refusal| failed(refusal.into()))?;
                        let agents = self.asked(agents);
                        if terminal {
                            redraw(&lines(&read(&agents)?))?;
                        } else if shown.as_ref() != Some(&without_usage(&agents.json)) {
                            shown = Some(without_usage(&agents.json));
                            self.print(&agents)?;
                        }
                    }
                    Message::Changed
                    | Message::Turn { .. }
                    | Message::Blocked(_)
                    | Message::Lagged => changed = true,
                    _ => {}
                },
                () = sleep_until(next), if request.is_none() && (terminal || changed) => {
                    request = Some(team.send::<ListAgents>(&Empty {}));
                    (changed, last) = (false, Instant::now());
                }
            }
        }
    }

    /// Prints one array, or one of several tables.
    fn print(&self, agents: &MethodAnswer<ListAgents>) -> Result<(), Failure> {
        if self.json {
            return print(agents);
        }
        print(lines(&read(agents)?).join("\n") + "\n")
    }
}

/// One line for each budget: the team's, and those of the agents.
fn budget_lines(budgets: Vec<ListedBudget>, agents: &[AgentDetails<'_>]) -> Vec<String> {
    let is_shown = |budget: &ListedBudget| {
        let whose = budget.of.agent_id.as_ref();
        whose.is_none_or(|whose| agents.iter().any(|agent| agent.status.agent_id == *whose))
    };
    let line = |budget: ListedBudget| {
        let (whose, used) = (budget.whose(), budget.used());
        let state = budget.of.state.as_str();
        let style = style(match state {
            "exceeded" => "error",
            "warned" => "pending",
            _ => "ready",
        });
        format!("budget of {whose}: {style}{}{style:#}, {used}", plain(state))
    };
    budgets.into_iter().filter(is_shown).map(line).collect()
}

/// Columns that are left out where the terminal is too narrow, the first one first.
const LEAST: &[&str] = &[
    "PEAK", "CPU", "RESTARTS", "MEMORY", "PID", "SESSIONS", "TOOLS", "PROVIDER", "OWNER", "ZONE",
    "SPENT", "TOKENS",
];

fn lines(agents: &[AgentDetails<'_>]) -> Vec<String> {
    let width = is_terminal().then(terminal_size::terminal_size).flatten();
    table(agents).lines(width.map(|(width, _)| width.0.into()))
}

fn table(agents: &[AgentDetails<'_>]) -> Table {
    let has_owner = agents.iter().any(|agent| agent.owner.is_some());
    let has_provider = agents.iter().any(|agent| agent.provider.is_some());
    let has_reason = agents.iter().any(|agent| agent.status.reason.is_some());
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
        ">SPENT",
        ">COST",
        "TOOLS",
    ];
    titles.extend(has_provider.then_some("PROVIDER"));
    titles.extend(has_owner.then_some("OWNER"));
    titles.extend(has_reason.then_some("REASON"));
    let mut table = Table::new(&titles).leaving_out(LEAST);
    for agent in agents {
        let mut row = AgentFigures(agent).cells();
        let or = |known: Option<&str>, none: &str| known.map_or(none.into(), |it| plain(it).into());
        row.extend(has_provider.then(|| or(agent.provider.as_deref(), "-")));
        row.extend(has_owner.then(|| or(agent.owner.as_deref(), "-")));
        row.extend(has_reason.then(|| or(agent.status.reason.as_deref(), "")));
        table.row(row);
    }
    table
}

/// The shown part of an agent.
pub(super) struct AgentFigures<'a>(pub(super) &'a AgentDetails<'a>);

impl AgentFigures<'_> {
    /// Whether a turn runs.
    pub(super) fn is_running(&self) -> bool {
        self.0.sessions.iter().any(|session| session.running)
    }

    pub(super) fn memory(&self) -> Option<String> {
        self.0.memory_bytes.map(format::bytes)
    }

    fn cells(&self) -> Vec<Cell> {
        let or_dash = |known: Option<String>| known.unwrap_or_else(|| "-".to_owned()).into();
        let AgentDetails { status, sessions, cpu_ms, peak_memory_bytes, .. } = self.0;
        let state = status.state.as_str();
        let cpu = cpu_ms.map(|ms| format::duration(Duration::from_millis(ms)));
        vec![
            plain(&status.agent_id).into(),
            Cell::styled(&plain(state), style(state)),
            or_dash(status.pid.map(|pid| pid.to_string())),
            or_dash(self.zone()),
            sessions.iter().filter(|session| session.open).count().to_string().into(),
            status.restarts.to_string().into(),
            or_dash(self.memory()),
            or_dash(peak_memory_bytes.map(format::bytes)),
            or_dash(cpu),
            or_dash(self.tokens()),
            or_dash(self.spent()),
            or_dash(self.cost()),
            or_dash(self.tools()),
        ]
    }

    /// The use of the team's tools by the agent's client.
    fn tools(&self) -> Option<String> {
        let tools = &self.0.tools;
        match tools {
            ToolsUsed { calls: 1.., .. } => Some(tools.calls.to_string()),
            ToolsUsed { listed: true, seen: Some(true), .. } => Some("seen".to_owned()),
            ToolsUsed { listed: true, seen: Some(false), .. } => Some("hidden".to_owned()),
            ToolsUsed { listed: true, .. } => Some("listed".to_owned()),
            ToolsUsed { connected: true, .. } => Some("connected".to_owned()),
            _ => None,
        }
    }

    /// The tier; `*` marks a kernel that lacks a feature. An agent that nothing stops has none.
    pub(super) fn zone(&self) -> Option<String> {
        let AgentDetails { zone, zone_missing, zone_observed, .. } = self.0;
        if *zone_observed {
            return Some("observed".to_owned());
        }
        let mark = if *zone == Tier::Kernel && !zone_missing.is_empty() { "*" } else { "" };
        let zone = Some(plain(zone.as_str())).filter(|zone| !zone.is_empty())?;
        Some(format!("{zone}{mark}"))
    }

    /// The tokens of the open sessions that report them.
    pub(super) fn tokens(&self) -> Option<String> {
        let open = self.0.sessions.iter().filter(|session| session.open);
        let reported = open.filter_map(|session| Some((session.used?, session.size?)));
        let (used, size) =
            reported.reduce(|a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1)))?;
        // A size of 0 is unknown.
        match (used, size) {
            (0, 0) => None,
            (_, 0) => Some(format::tokens(used)),
            _ => Some(format!("{}/{}", format::tokens(used), format::tokens(size))),
        }
    }

    /// The tokens that were spent since the team began.
    pub(super) fn spent(&self) -> Option<String> {
        let all = self.0.sessions.iter().filter_map(|session| session.spent.as_ref()?.total);
        let sum = all.reduce(u64::saturating_add).map(format::tokens);
        self.marked(sum, "total")
    }

    /// The cost since the team began, by currency.
    pub(super) fn cost(&self) -> Option<String> {
        let mut sums = std::collections::BTreeMap::<_, f64>::new();
        for session in &self.0.sessions {
            let spent = session.spent.iter().flat_map(|spent| &spent.cost);
            // A team of an earlier version only has what its agents report.
            let reported = session.cost.iter().filter(|_| session.spent.is_none());
            for cost in spent.chain(reported) {
                *sums.entry(plain(&cost.currency)).or_default() += cost.amount;
            }
        }
        let sums: Vec<_> =
            sums.iter().map(|(currency, sum)| format::money(*sum, currency)).collect();
        self.marked((!sums.is_empty()).then(|| sums.join(" + ")), "cost")
    }

    /// `~`: estimated, `+`: too low, since some turns did not report it.
    fn marked(&self, sum: Option<String>, figure: &str) -> Option<String> {
        let spent = || self.0.sessions.iter().filter_map(|session| session.spent.as_ref());
        let has = |names: &[Cow<'_, str>]| names.iter().any(|name| name == figure);
        let before = if spent().any(|spent| has(&spent.estimated)) { "~" } else { "" };
        let after = if spent().any(|spent| has(&spent.incomplete)) { "+" } else { "" };
        sum.map(|sum| format!("{before}{sum}{after}"))
    }
}

/// `agents` without the measured values, which change all the time.
fn without_usage(agents: &Value) -> Value {
    let mut agents = agents.clone();
    for agent in agents.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        agent.shift_remove("memory_bytes");
        for measured in ["cpu_ms", "peak_memory_bytes", "peak_processes"] {
            agent.shift_remove(measured);
        }
    }
    agents
}

/// Draws the table over the previous one, up to the terminal's height.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_it_costs_is_whole_in_a_narrow_terminal() {
        let agent = |id: &str, state: &str, reason: Option<&str>| {
            let cost = json!([{ "currency": "USD", "amount": 0.0512 }]);
            let spent = json!({ "total": 12_400, "cost": cost });
            let session = json!({
                "session_id": "s1", "open": true, "used": 14_000, "size": 200_000, "spent": spent,
            });
            json!({
                "agent_id": id, "state": state, "reason": reason, "pid": 481_516, "zone": "kernel",
                "restarts": 2, "memory_bytes": 212_000_000, "peak_memory_bytes": 430_000_000,
                "cpu_ms": 71_000, "sessions": [session],
            })
        };
        let agents = [
            agent("orchestrator", "ready", None),
            agent("ui", "error", Some("its program ended with status 1: no such model")),
        ];
        let shown = |agents: &[Value], width: usize| {
            let agents = agents.iter().map(|agent| AgentDetails::deserialize(agent).unwrap());
            let lines = table(&agents.collect::<Vec<_>>()).lines(Some(width)).join("\n");
            format!("{}\n", anstream::adapter::strip_str(&lines))
        };
        let all = [
            shown(&agents[..1], 100),
            shown(&agents[..1], 80),
            shown(&agents, 100),
            shown(&agents, 80),
        ];
        expect![[r#"
            AGENT         STATE     PID  ZONE    SESSIONS     MEMORY        TOKENS  SPENT      COST  TOOLS
            orchestrator  ready  481516  kernel         1  202.2 MiB  14.0k/200.0k  12.4k  0.05 USD  -
            AGENT         STATE  ZONE    SESSIONS        TOKENS  SPENT      COST  TOOLS
            orchestrator  ready  kernel         1  14.0k/200.0k  12.4k  0.05 USD  -
            AGENT         STATE     PID  ZONE    SESSIONS        TOKENS  SPENT      COST  TOOLS  REASON
            orchestrator  ready  481516  kernel         1  14.0k/200.0k  12.4k  0.05 USD  -
            ui            error  481516  kernel         1  14.0k/200.0k  12.4k  0.05 USD  -      its program en…
            AGENT         STATE  ZONE          TOKENS  SPENT      COST  TOOLS  REASON
            orchestrator  ready  kernel  14.0k/200.0k  12.4k  0.05 USD  -
            ui            error  kernel  14.0k/200.0k  12.4k  0.05 USD  -      its program …
        "#]].assert_eq(&all.concat());
    }
}
