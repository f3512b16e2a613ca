//! The inbox: which card is selected, what is shown of it, and what its keys decide.

use std::time::Duration;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::file::ShownFile;
use super::wish::{Asking, TeamCall};
use crate::cli::output::plain;
use crate::view::{CardId, CardKind, Fields, TeamView};

/// A card takes no key before a person can have read it.
const UNREAD: Duration = Duration::from_millis(500);

/// What budgets limit.
const UNITS: [&str; 4] = ["tokens", "cost", "turns", "minutes"];

#[derive(Default)]
pub(super) struct InboxPane {
    pub(super) card: Option<CardId>,
    /// Since when this card is shown as the selected one, as it is shown now.
    shown: Option<(CardId, Instant)>,
    /// The card whose decision is on its way.
    sent: Option<CardId>,
    /// The file of this access or write; None: it is on its way.
    file: Option<(CardId, Option<ShownFile>)>,
}

/// What a key of a card asks for.
#[derive(Debug)]
pub(super) enum Reaction {
    Type(Asking),
    Call(TeamCall),
}

impl InboxPane {
    /// Moves the selection off what is gone. `width`: that of a frame that shows the selected card.
    pub(super) fn settle(&mut self, view: &TeamView, now: Instant, width: Option<usize>) {
        let is_there = |card: &CardId| view.waiting().any(|it| it.is(card));
        if !self.card.as_ref().is_some_and(is_there) {
            self.card = view.waiting().next().map(|it| it.name());
        }
        let visible = self.card.as_ref().filter(|_| width.is_some());
        if self.shown.as_ref().map(|(card, _)| card) != visible {
            self.shown = visible.map(|card| (card.clone(), now));
        }
        if self.file.as_ref().is_some_and(|(of, _)| Some(of) != self.card.as_ref()) {
            self.file = None;
        }
        if let (Some(width), Some((_, Some(file)))) = (width, &mut self.file) {
            file.fit(width);
        }
    }

    /// Selects the card `by` places behind the selected one.
    pub(super) fn step(&mut self, view: &TeamView, by: isize) {
        let at = self.card.as_ref().and_then(|card| view.waiting().position(|it| it.is(card)));
        let Some(last) = view.waiting().count().checked_sub(1) else { return };
        let at = at.unwrap_or(0).saturating_add_signed(by).min(last);
        self.card = view.waiting().nth(at).map(|it| it.name());
    }

    pub(super) fn scroll(&mut self, by: isize) {
        if let Some((_, Some(file))) = &mut self.file {
            file.scroll(by);
        }
    }

    /// The card whose file is to be asked for.
    pub(super) fn wanted(&self) -> Option<&CardId> {
        let (card, _) = self.shown.as_ref().filter(|(card, _)| has_file(card.kind))?;
        self.file.as_ref().is_none_or(|(of, _)| of != card).then_some(card)
    }

    pub(super) fn asked(&mut self, card: CardId) {
        self.file = Some((card, None));
    }

    /// Takes the file of a card, if it still is the one that is awaited.
    pub(super) fn take_file(&mut self, card: &CardId, file: ShownFile, now: Instant) {
        let Some((of, awaited @ None)) = &mut self.file else { return };
        if of == card {
            *awaited = Some(file);
            self.unread(now);
        }
    }

    /// The file of the selected card, once it is there.
    pub(super) fn file(&self) -> Option<&ShownFile> {
        self.file.as_ref().and_then(|(_, file)| file.as_ref())
    }

    /// The selected card shows something else than before.
    fn unread(&mut self, now: Instant) {
        if let Some((_, since)) = &mut self.shown {
            *since = now;
        }
    }

    /// Takes a key of the selected card; an error says why it does nothing.
    pub(super) fn key(
        &mut self,
        letter: char,
        view: &TeamView,
        now: Instant,
    ) -> Result<Reaction, String> {
        let Some((card, since)) = self.shown.clone() else {
            return Err(match self.card {
                Some(_) => "no card is shown: the terminal is too small".to_owned(),
                None => "nothing waits for a decision".to_owned(),
            });
        };
        let name = named(&card);
        if self.sent.as_ref() == Some(&card) {
            return Err(format!("the decision of {name} is on its way"));
        }
        if now.duration_since(since) < UNREAD {
            // A key that is held decides nothing.
            self.unread(now);
            return Err(format!("{name} has just come up: read it first"));
        }
        let is_awaited = matches!(&self.file, Some((_, None))) || self.wanted().is_some();
        match (card.kind, letter) {
            (CardKind::Access, 'a' | 's') | (CardKind::Conflict, 'a') if is_awaited => {
                Err(format!("the file of {name} is on its way"))
            }
            (CardKind::Access, 's') => {
                let params = json!({ "decision": "allow", "scope": "session" });
                Ok(Reaction::Call(self.decide(&card, "allowed for the session", params)))
            }
            (CardKind::Access | CardKind::Conflict, 'a') => {
                let params = json!({ "decision": "allow" });
                Ok(Reaction::Call(self.decide(&card, "allowed", params)))
            }
            (CardKind::Access | CardKind::Conflict, 'd') => {
                let params = json!({ "decision": "deny" });
                Ok(Reaction::Call(self.decide(&card, "denied", params)))
            }
            (CardKind::Access | CardKind::Conflict, 'D') => {
                Ok(Reaction::Type(Asking::Denial(card)))
            }
            (CardKind::Access, 'r') => Ok(Reaction::Type(Asking::Answer(card))),
            (CardKind::Budget, 'r') => {
                let budget = view.budget(Some(&card.id)).unwrap_or(&Value::Null);
                let unit = unit_of(budget).ok_or_else(|| format!("{name} has no total"))?;
                Ok(Reaction::Type(Asking::Total(card, unit)))
            }
            (CardKind::Conflict, _) => Err(format!("{name} takes `a`, `d` and `D`")),
            _ => Err(format!("{name} takes `r`: a new total")),
        }
    }

    /// The decision of a person about an access or a conflict.
    pub(super) fn decide(&mut self, card: &CardId, what: &str, decision: Value) -> TeamCall {
        let file = self.file.as_ref().filter(|(of, _)| of == card);
        let version = file.and_then(|(_, file)| file.as_ref()?.version.as_deref());
        let params = json!(DecidedCard { decision, id: &card.id, version });
        let is_conflict = card.kind == CardKind::Conflict;
        let method = if is_conflict { "resolve_conflict" } else { "resolve_blocked" };
        self.call(card, method, params, what)
    }

    /// A new total of a budget, as typed.
    pub(super) fn raise(
        &mut self,
        card: &CardId,
        unit: &'static str,
        typed: &str,
    ) -> Result<TeamCall, String> {
        let typed = typed.trim();
        let total = match unit {
            "cost" => typed.parse::<f64>().ok().filter(|it| it.is_finite()).map(Value::from),
            _ => typed.parse::<u64>().ok().map(Value::from),
        };
        let wrong = || format!("`{}` is no total of {unit}: type a number", plain(typed));
        let total = total.ok_or_else(wrong)?;
        let params = match card.id.as_str() {
            "" => json!({ unit: total }),
            agent => json!({ unit: total, "agent_id": agent }),
        };
        Ok(self.call(card, "raise_budget", params, &format!("{unit} up to {total}")))
    }

    fn call(&mut self, card: &CardId, method: &'static str, params: Value, what: &str) -> TeamCall {
        self.sent = Some(card.clone());
        let what = format!("{}: {what}", named(card));
        TeamCall { method, params, what, card: Some(card.clone()) }
    }

    /// Takes how the decision of a card went.
    pub(super) fn answered(&mut self, card: &CardId, is_error: bool) {
        self.sent.take_if(|sent| sent == card);
        if is_error {
            // Perhaps something else would be shown by now.
            self.file.take_if(|(of, _)| of == card);
        }
    }

    /// Nothing that was asked for is answered any more.
    pub(super) fn joined(&mut self) {
        (self.sent, self.file) = (None, None);
    }

    /// Takes a line of an access or a conflict: what there is to say if somebody else decided the
    /// selected one.
    pub(super) fn decided(&self, kind: CardKind, line: &Value) -> Option<String> {
        let line = Fields::of(line);
        let id = line.id.as_deref()?;
        let is_of = |card: &CardId| card.kind == kind && card.id == id;
        let (is_selected, is_own) =
            (self.card.as_ref().is_some_and(is_of), self.sent.as_ref().is_some_and(is_of));
        let status = Some(&line.status).filter(|status| *status != "pending")?;
        let by = line.decider().map(|by| format!(" by {}", plain(by))).unwrap_or_default();
        (is_selected && !is_own).then(|| format!("{}: {}{by}", plain(id), plain(status)))
    }
}

/// Whether a card is about a file, which is shown below it.
pub(super) fn has_file(kind: CardKind) -> bool {
    kind != CardKind::Budget
}

/// A card in words.
pub(super) fn named(card: &CardId) -> String {
    match (card.kind, card.id.as_str()) {
        (CardKind::Budget, "") => "the team's budget".to_owned(),
        (CardKind::Budget, agent) => format!("the budget of {}", plain(agent)),
        (CardKind::Access | CardKind::Conflict, id) => plain(id),
    }
}

#[derive(Serialize)]
struct DecidedCard<'a> {
    #[serde(flatten)]
    decision: Value,
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

/// The used part of one unit of a budget.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UnitUsed {
    used: Option<f64>,
    limit: Option<f64>,
}

/// What a budget is used up of, or limits.
fn unit_of(budget: &Value) -> Option<&'static str> {
    let of = |unit: &str| -> UnitUsed {
        let units = IndexMap::<String, Value>::deserialize(budget).unwrap_or_default();
        units.get(unit).and_then(|unit| UnitUsed::deserialize(unit).ok()).unwrap_or_default()
    };
    let limit = |unit: &&str| of(unit).limit;
    let is_used_up = |unit: &&str| {
        let UnitUsed { used, limit } = of(unit);
        limit.is_some_and(|limit| used.unwrap_or_default() >= limit)
    };
    let mut units = UNITS.into_iter().filter(|unit| limit(unit).is_some());
    UNITS.into_iter().find(is_used_up).or_else(|| units.next())
}
