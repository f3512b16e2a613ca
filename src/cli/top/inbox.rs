//! The inbox: which card is selected, what is shown of it, and what its keys decide.

use std::time::Duration;

use tokio::time::Instant;

use super::file::ShownFile;
use super::wish::{Asking, PatternSpan, TeamCall};
use crate::cli::output::plain;
use crate::serve::client::PreparedCall;
use crate::view::{CardId, CardKind, TeamView, Undecided, decider};
use crate::wire::{
    AskedDecision, Blocked, Budget, ConflictLine, DecisionParam, GrantScope, RaiseBudget,
    RaiseBudgetParams, ResolveBlocked, ResolveConflict, ResolveConflictParams, ResolveParams,
    ServerLine,
};

/// A card takes no key before a person can have read it.
const UNREAD: Duration = Duration::from_millis(500);

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

/// The reaction to a key of a card.
#[derive(Debug)]
pub(super) enum Reaction {
    Type(Asking),
    /// With a text that can be changed.
    Change(Asking, String),
    Call(TeamCall),
}

impl InboxPane {
    /// Moves the selection off what is gone. `width`: that of a frame that shows the selected card.
    pub(super) fn settle(&mut self, view: &TeamView, now: Instant, width: Option<usize>) {
        let is_there = |card: &CardId| view.waiting().any(|it| it.is(card));
        if !self.card.as_ref().is_some_and(is_there) {
            self.card = view.waiting().next().map(Undecided::name);
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
        self.card = view.waiting().nth(at).map(Undecided::name);
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
            (CardKind::Access, 'a' | 's' | 'm' | 't') | (CardKind::Conflict, 'a') if is_awaited => {
                Err(format!("the file of {name} is on its way"))
            }
            (CardKind::Access, 's') => {
                let allow = DecisionParam::allow(Some(GrantScope::Session));
                Ok(Reaction::Call(self.decide(&card, "allowed for the session", allow)))
            }
            (CardKind::Access | CardKind::Conflict, 'a') => {
                Ok(Reaction::Call(self.decide(&card, "allowed", DecisionParam::allow(None))))
            }
            (CardKind::Access | CardKind::Conflict, 'd') => {
                let deny = DecisionParam::Deny { message: None };
                Ok(Reaction::Call(self.decide(&card, "denied", deny)))
            }
            (CardKind::Access | CardKind::Conflict, 'D') => {
                Ok(Reaction::Type(Asking::Denial(card)))
            }
            (CardKind::Access, 'm' | 't') => {
                let span = if letter == 'm' { PatternSpan::Session } else { PatternSpan::Team };
                match offered(view, &card) {
                    Some(pattern) => Ok(Reaction::Change(Asking::Pattern(card, span), pattern)),
                    None if span == PatternSpan::Session => Err(format!(
                        "of {name} only the path itself can be allowed: `a`, `s` and `t`"
                    )),
                    None => {
                        let allow = span.allowing(None);
                        Ok(Reaction::Call(self.decide(&card, "allowed for the team", allow)))
                    }
                }
            }
            (CardKind::Access, 'r') => Ok(Reaction::Type(Asking::Answer(card))),
            (CardKind::Budget, 'r') => {
                let unit = view.budget(Some(&card.id)).and_then(unit_of);
                let unit = unit.ok_or_else(|| format!("{name} has no total"))?;
                Ok(Reaction::Type(Asking::Total(card, unit)))
            }
            (CardKind::Conflict, _) => Err(format!("{name} takes `a`, `d` and `D`")),
            _ => Err(format!("{name} takes `r`: a new total")),
        }
    }

    /// The decision of a person about an access or a conflict.
    pub(super) fn decide(&mut self, card: &CardId, what: &str, verdict: DecisionParam) -> TeamCall {
        let file = self.file.as_ref().filter(|(of, _)| of == card);
        let version = file.and_then(|(_, file)| file.as_ref()?.version.clone());
        let id = card.id.clone();
        let call = if card.kind == CardKind::Conflict {
            let (decision, message) = match verdict {
                DecisionParam::Allow { .. } => (AskedDecision::Allow, None),
                DecisionParam::Deny { message } => (AskedDecision::Deny, message),
                DecisionParam::Answer { .. } => (AskedDecision::Deny, None),
            };
            let params = ResolveConflictParams { id: id.into(), decision, message, version };
            PreparedCall::of::<ResolveConflict>(&params)
        } else {
            PreparedCall::of::<ResolveBlocked>(&ResolveParams { id: id.into(), version, verdict })
        };
        self.call(card, call, what)
    }

    /// A new total of a budget, as typed.
    pub(super) fn raise(
        &mut self,
        card: &CardId,
        unit: &'static str,
        typed: &str,
    ) -> Result<TeamCall, String> {
        let typed = typed.trim();
        let wrong = || format!("`{}` is no total of {unit}: type a number", plain(typed));
        let count = || typed.parse::<u64>().map_err(|_| wrong());
        let agent_id = Some(card.id.clone()).filter(|agent| !agent.is_empty());
        let mut params = RaiseBudgetParams {
            agent_id: agent_id.map(Into::into),
            ..RaiseBudgetParams::default()
        };
        match unit {
            "cost" => {
                let cost = typed.parse().ok().filter(|it: &f64| it.is_finite());
                params.cost = Some(cost.ok_or_else(wrong)?);
            }
            "tokens" => params.tokens = Some(count()?),
            "turns" => params.turns = Some(count()?),
            _ => params.minutes = Some(count()?),
        }
        let call = PreparedCall::of::<RaiseBudget>(&params);
        Ok(self.call(card, call, &format!("{unit} up to {typed}")))
    }

    fn call(&mut self, card: &CardId, call: PreparedCall, what: &str) -> TeamCall {
        self.sent = Some(card.clone());
        let what = format!("{}: {what}", named(card));
        TeamCall { call, what, card: Some(card.clone()) }
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
    pub(super) fn decided(&self, line: &ServerLine<'_>) -> Option<String> {
        let (kind, id, status, by) = match line {
            ServerLine::Blocked(Blocked { id, status, decided_by, .. }) => {
                (CardKind::Access, id, status.as_str(), decided_by)
            }
            ServerLine::Conflict(ConflictLine { id, status, decided_by, .. }) => {
                (CardKind::Conflict, id, status.as_str(), decided_by)
            }
            _ => return None,
        };
        let is_of = |card: &CardId| card.kind == kind && card.id == **id;
        let (is_selected, is_own) =
            (self.card.as_ref().is_some_and(is_of), self.sent.as_ref().is_some_and(is_of));
        let by = by.as_deref().map(|by| format!(" by {}", plain(decider(by)))).unwrap_or_default();
        (is_selected && !is_own && status != "pending")
            .then(|| format!("{}: {}{by}", plain(id), plain(status)))
    }
}

/// The pattern that is offered for an access.
fn offered(view: &TeamView, card: &CardId) -> Option<String> {
    match view.waiting().find(|it| it.is(card))? {
        Undecided::Access(access) => access.offered.as_ref().map(ToString::to_string),
        Undecided::Conflict(_) | Undecided::Budget(_) => None,
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

/// The unit that a budget is used up of, or else the first unit that it limits.
fn unit_of(Budget { tokens, cost, turns, minutes, .. }: &Budget<'_>) -> Option<&'static str> {
    #[expect(clippy::cast_precision_loss, reason = "only compared")]
    let float = |count: u64| count as f64;
    let units = [
        ("tokens", tokens.used.map(float), tokens.limit.map(float)),
        ("cost", cost.used, cost.limit),
        ("turns", Some(float(turns.used)), turns.limit.map(float)),
        ("minutes", Some(minutes.used), minutes.limit.map(float)),
    ];
    let limited = units.into_iter().filter_map(|(unit, used, limit)| Some((unit, used, limit?)));
    let mut limited = limited.collect::<Vec<_>>().into_iter();
    let is_used_up = |(_, used, limit): &(_, Option<f64>, f64)| used.unwrap_or_default() >= *limit;
    let found = limited.clone().find(is_used_up).or_else(|| limited.next());
    found.map(|(unit, ..)| unit)
}
