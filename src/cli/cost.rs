//! `cost`: what agents' model calls took, from the team's journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::history::{Since, each, event};
use super::journal::WhichJournal;
use super::output::{is_terminal, plain, print};
use super::table::Table;
use super::{Global, format};
use crate::config;
use crate::journal::{self, Event, Filter, MessagePayload};
use crate::model::{FigureSum, Spending, Spent, TokenKind, one_line, turn_name};
use crate::program::Failure;
use crate::wire;

/// Characters of a prompt that are shown.
const LONGEST_PROMPT: usize = 60;

/// Show what the agents of a team spent: tokens and money
///
/// The figures come from the team's journal, also while the team runs and after it has ended. CACHED is
/// what models read from a cache, WRITTEN what they wrote into one, OUTPUT includes REASONING, and
/// TOTAL is all of them. COST is what the agent reports, or else what its model costs by the
/// configuration's prices, or by those that ship, when it was spent. `~` marks what is estimated,
/// at least in part; `+` marks what is too low, since some turns did not report it; `-` is unknown.
/// docs/budgets.md says how it is counted.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core history cost  one line an agent, all runs
  eisen-core history cost --since 24h --by model
  eisen-core history cost ui --by turn
  eisen-core history cost --json | jq .total.cost

Exit codes: 0 done, 1 no such journal, 2 wrong usage.")]
pub(super) struct CostArgs {
    /// Only this agent
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// The subject of a line
    #[arg(long, value_enum, default_value_t)]
    by: By,
    /// Only since then: `90s`, `10m`, `2h`, `3d`, a day or time in UTC such as 2026-11-24T09:30, or
    /// behind the event with this id
    #[arg(long, value_name = "TIME|EVENT")]
    since: Option<Since>,
    /// Print a JSON object, on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: WhichJournal,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
enum By {
    /// An agent
    #[default]
    Agent,
    /// A prompt of a session, with all turns that it was sent in
    Task,
    /// A turn of a session
    Turn,
    /// A model, as its agent names it
    Model,
}

/// The subject of a line, with the fields that it has in JSON.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
struct CostSubject {
    agent: Option<String>,
    session: Option<String>,
    turn: Option<u64>,
    prompt: Option<String>,
    model: Option<String>,
}

/// The session of a turn, and its number there.
type TurnPlace = (Option<String>, Option<u64>);

#[derive(Default)]
struct SpentSums {
    spent: Spent,
    /// Turns that reported something, or ended without.
    turns: BTreeSet<TurnPlace>,
}

impl SpentSums {
    fn add(&mut self, report: &Spending, of: &TurnPlace) {
        self.spent.add(report);
        self.turns.insert(of.clone());
    }
}

impl CostArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let store = self.which.open_settled(global).await?;
        let mut types = vec!["usage.spent", "turn.end", "turn.failed"];
        if self.by == By::Task {
            types.push("message.user");
        }
        let types = types.into_iter().map(str::to_owned).collect();
        let mut filter = Filter { types, agent_id: self.agent.clone(), ..Filter::default() };
        match &self.since {
            Some(Since::Event(id)) => filter.after = Some(event(&store, id)?.id),
            Some(Since::Time(at)) => filter.since = Some(*at),
            None => {}
        }
        let (mut rows, mut total) =
            (IndexMap::<CostSubject, SpentSums>::new(), SpentSums::default());
        let mut prompts = BTreeMap::new();
        // Whether a turn's tokens, and its cost, were reported; if not, they count as unknown at the end, since a report
        // may come after the turn.
        let mut reported = BTreeMap::<_, (bool, bool)>::new();
        let mut ended = IndexMap::new();
        each(&store, &filter, &mut |event| {
            let place = (event.session_id.clone(), event.turn);
            if event.kind == "message.user" {
                prompts.entry(place).or_insert_with(|| prompt_of(event));
                return Ok(());
            }
            if event.kind != "usage.spent" {
                let subject = self.subject(event, None, prompts.get(&place));
                if self.by != By::Model {
                    // The order of rows is that of the journal.
                    rows.entry(subject.clone()).or_default();
                }
                ended.insert(place, subject);
                return Ok(());
            }
            let report = journal::spending(event.payload.get());
            let (has_tokens, has_cost) = reported.entry(place.clone()).or_default();
            *has_tokens |= report.tokens.is_some();
            *has_cost |= report.cost.is_some();
            let model = report.model.as_deref().map(str::to_owned);
            let subject = self.subject(event, model, prompts.get(&place));
            for row in [rows.entry(subject).or_default(), &mut total] {
                row.add(&report, &place);
            }
            Ok(())
        })?;
        for (place, subject) in ended {
            let (has_tokens, has_cost) = reported.get(&place).copied().unwrap_or_default();
            if !has_tokens {
                let report = Spending::unreported(has_cost);
                for row in [rows.entry(subject).or_default(), &mut total] {
                    row.add(&report, &place);
                }
            }
        }
        if self.json {
            let lines: Vec<_> = rows.iter().map(|(subject, row)| json_of(subject, row)).collect();
            let by = self.by.to_possible_value().map(|value| value.get_name().to_owned());
            let total = json_of(&CostSubject::default(), &total);
            let prices = config::prices_date();
            return print(json!({ "by": by, "rows": lines, "total": total, "prices": prices }));
        }
        if rows.is_empty() {
            if is_terminal() {
                print("nothing was spent")?;
            }
            return Ok(());
        }
        let width = is_terminal().then(terminal_size::terminal_size).flatten();
        let lines = table(self.by, &rows, &total).lines(width.map(|(width, _)| width.0.into()));
        print(lines.join("\n"))
    }

    fn subject(
        &self,
        event: &Event,
        model: Option<String>,
        prompt: Option<&String>,
    ) -> CostSubject {
        let (agent, session) = (event.agent_id.clone(), event.session_id.clone());
        match self.by {
            By::Agent => CostSubject { agent, ..CostSubject::default() },
            By::Model => CostSubject { model, ..CostSubject::default() },
            By::Turn => CostSubject { agent, session, turn: event.turn, ..CostSubject::default() },
            By::Task => {
                CostSubject { agent, session, prompt: prompt.cloned(), ..CostSubject::default() }
            }
        }
    }
}

fn table(by: By, rows: &IndexMap<CostSubject, SpentSums>, total: &SpentSums) -> Table {
    let title = match by {
        By::Agent => "AGENT",
        By::Task => "TASK",
        By::Turn => "TURN",
        By::Model => "MODEL",
    };
    let figures =
        [">TURNS", ">INPUT", ">CACHED", ">WRITTEN", ">OUTPUT", ">REASONING", ">TOTAL", ">COST"];
    let least = &["REASONING", "WRITTEN", "CACHED", "TURNS", "OUTPUT", "INPUT", "TOTAL"];
    let mut table = Table::new(&[&[title][..], &figures].concat()).leaving_out(least);
    let mut add = |name: String, row: &SpentSums| {
        let mut cells = vec![plain(&name).into(), row.turns.len().to_string().into()];
        cells.extend(TokenKind::ALL.map(|kind| tokens(row.spent.tokens.get(kind)).into()));
        cells.push(cost(&row.spent).into());
        table.row(cells);
    };
    rows.iter().for_each(|(subject, row)| add(subject.name(), row));
    if rows.len() > 1 {
        add("total".to_owned(), total);
    }
    table
}

impl CostSubject {
    /// In one cell.
    fn name(&self) -> String {
        let mut name = String::new();
        if let Some(agent) = &self.agent {
            name.push_str(agent);
        }
        if let Some(session) = &self.session {
            // The end of an id tells sessions of one start apart.
            let start = session.floor_char_boundary(session.len().saturating_sub(6));
            let _ = write!(name, "/{}", &session[start..]);
        }
        match (&self.prompt, self.turn) {
            (Some(prompt), _) => {
                let _ = write!(name, " {prompt}");
            }
            (None, Some(turn)) => {
                let _ = write!(name, " {}", turn_name(turn));
            }
            (None, None) => {}
        }
        if let Some(model) = &self.model {
            name.push_str(model);
        }
        if name.is_empty() { "-".to_owned() } else { name }
    }
}

/// The first line of a prompt.
fn prompt_of(event: &Event) -> String {
    let text = event.read::<MessagePayload>().text.unwrap_or_default();
    let line = one_line(text.trim().lines().next().unwrap_or_default());
    match line.char_indices().nth(LONGEST_PROMPT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn json_of(subject: &CostSubject, row: &SpentSums) -> Value {
    let mut line = json!({});
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            line[name] = value;
        }
    };
    set("agent_id", json!(subject.agent));
    set("session_id", json!(subject.session));
    set("turn", json!(subject.turn));
    set("prompt", json!(subject.prompt));
    set("model", json!(subject.model));
    set("turns", json!(row.turns.len()));
    for (name, value) in wire::spent(&row.spent).as_object().into_iter().flatten() {
        line[name] = value.clone();
    }
    line
}

/// `~`: estimated, `+`: some reports lack it, `-`: all do.
pub(super) fn tokens(sum: FigureSum) -> String {
    marked(sum.known.map(format::tokens), sum.is_estimated, sum.unknown > 0)
}

/// The cost by currency, marked in the same way.
pub(super) fn cost(spent: &Spent) -> String {
    let sums: Vec<_> =
        spent.cost.iter().map(|(currency, sum)| format::money(*sum, &plain(currency))).collect();
    let known = (!sums.is_empty()).then(|| sums.join(" + "));
    marked(known, spent.cost_is_estimated, spent.cost_unknown > 0)
}

fn marked(known: Option<String>, is_estimated: bool, is_incomplete: bool) -> String {
    let Some(known) = known else { return "-".to_owned() };
    let (before, after) =
        (if is_estimated { "~" } else { "" }, if is_incomplete { "+" } else { "" });
    format!("{before}{known}{after}")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_is_not_known_is_marked() {
        let sum = |known, is_estimated, unknown| tokens(FigureSum { known, is_estimated, unknown });
        assert_eq!(sum(None, false, 3), "-");
        assert_eq!(sum(Some(0), false, 0), "0");
        assert_eq!(sum(Some(1500), true, 0), "~1.5k");
        assert_eq!(sum(Some(1500), true, 1), "~1.5k+");
        assert_eq!(cost(&Spent::default()), "-");
    }

    #[test]
    fn the_cost_is_whole_in_a_narrow_terminal() {
        let subject = CostSubject {
            agent: Some("orchestrator".to_owned()),
            session: Some("01JDXB1".to_owned()),
            prompt: Some("Round the totals of the cart to cents".to_owned()),
            ..CostSubject::default()
        };
        let mut row = SpentSums::default();
        row.spent.add(&journal::spending(
            r#"{"tokens":{"input":120400,"cached_read":96000,"output":2000},"cost":{"amount":12.06,"currency":"USD"}}"#,
        ));
        let table = table(By::Task, &IndexMap::from([(subject, row)]), &SpentSums::default());
        let shown = [100, 80, 60].map(|width| table.lines(Some(width)).join("\n")).join("\n");
        expect![[r#"
            TASK                             TURNS   INPUT  CACHED  WRITTEN  OUTPUT  REASONING  TOTAL       COST
            orchestrator/1JDXB1 Round the …      0  120.4k   96.0k        -    2.0k          -      -  12.06 USD
            TASK                    TURNS   INPUT  CACHED  WRITTEN  OUTPUT  TOTAL       COST
            orchestrator/1JDXB1 R…      0  120.4k   96.0k        -    2.0k      -  12.06 USD
            TASK                 TURNS   INPUT  OUTPUT  TOTAL       COST
            orchestrator/1JDXB…      0  120.4k    2.0k      -  12.06 USD"#]].assert_eq(&anstream::adapter::strip_str(&shown).to_string());
    }
}
