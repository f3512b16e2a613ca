//! A session and its turn: when a turn has ended, and with what. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::shapes::{
    Info, MessagePart, Permission, Role, ServerMessage, SessionFailure, TokenCount,
};
use super::show::Shows;
use super::tasks::{Opened, Settings};

/// How often, once a second, the messages of a session that is idle are read until they have the answer to
/// a prompt; where events were lost, the server may have begun anew, and won't go on with it.
const MOST_CHECKS: u32 = 60;
const MOST_CHECKS_TORN: u32 = 5;

/// Why a message ends that waits for its tools.
const TOOL_CALLS: &str = "tool-calls";

const INTERNAL: i64 = -32603;

#[derive(Debug)]
pub(super) struct BridgedSession {
    pub(super) cwd: String,
    pub(super) settings: Arc<Settings>,
    pub(super) mode: String,
    /// As the client chose it; None: the server's own choice.
    pub(super) model: Option<String>,
    pub(super) shows: Shows,
    pub(super) turn: Option<PromptTurn>,
    /// Requests for permission whose call is not known yet.
    pub(super) unread: Vec<Permission>,
    last_user: Option<String>,
    cost: f64,
}

#[derive(Debug)]
pub(super) struct PromptTurn {
    /// The id of the client's request.
    pub(super) id: Value,
    pub(super) number: u64,
    pub(super) is_cancelled: bool,
    /// The last message of a user before the turn.
    user_before: Option<String>,
    /// The answer's last message is not complete.
    is_open: bool,
    /// Events of it were lost.
    is_torn: bool,
    failure: Option<String>,
    finish: Option<String>,
    /// The tokens of each message that is complete.
    tokens: HashMap<String, TokenCount>,
    checks: u32,
}

/// How a turn stands by the messages of a session that is idle.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum TurnStanding {
    Ended,
    /// The turn may not have begun.
    Open,
}

impl BridgedSession {
    /// `messages`: what was said in it before.
    pub(super) fn new(cwd: String, opened: Opened, messages: &[ServerMessage]) -> Self {
        let Opened { session, settings, .. } = opened;
        let mode = settings.modes.first().map(|mode| mode.name.clone()).unwrap_or_default();
        let mut new = Self {
            cwd,
            settings,
            mode,
            model: None,
            shows: Shows::default(),
            turn: None,
            unread: Vec::new(),
            last_user: None,
            cost: session.cost,
        };
        for ServerMessage { info, .. } in messages {
            new.message(info);
        }
        new
    }

    pub(super) fn begin(&mut self, id: Value, number: u64) {
        self.shows.begin();
        self.unread.clear();
        self.turn = Some(PromptTurn {
            id,
            number,
            is_cancelled: false,
            user_before: self.last_user.clone(),
            is_open: true,
            is_torn: false,
            failure: None,
            finish: None,
            tokens: HashMap::new(),
            checks: 0,
        });
    }

    /// Events may have been lost.
    pub(super) fn tear(&mut self) {
        self.shows.hold();
        if let Some(turn) = &mut self.turn {
            turn.is_torn = true;
        }
    }

    /// Takes news of a message; returns the update that tells what it took.
    pub(super) fn message(&mut self, info: &Info) -> Option<Value> {
        if !self.shows.message(info) {
            return None;
        }
        if info.role == Role::User {
            self.last_user = Some(info.id.clone());
        }
        if info.role != Role::Assistant {
            return None;
        }
        let turn = self.turn.as_mut()?;
        if info.parent.is_some() && info.parent == turn.user_before {
            // It answers the prompt before.
            return None;
        }
        if let Some(failure) = &info.error {
            turn.fail(failure);
        }
        turn.is_open = info.time.completed.is_none() && !turn.tokens.contains_key(&info.id);
        info.time.completed?;
        turn.finish.clone_from(&info.finish);
        if turn.tokens.insert(info.id.clone(), info.tokens).is_some() {
            return None;
        }
        self.cost += info.cost;
        let used = TokenSum::of(&[info.tokens].iter());
        let id = format!("{}/{}", info.provider.as_deref()?, info.model.as_deref()?);
        let size = self.settings.models.iter().find(|model| model.id == id)?.context;
        (used.total() > 0).then(|| {
            json!({
                "sessionUpdate": "usage_update",
                "used": used.total(),
                "size": size,
                "cost": { "amount": self.cost, "currency": "USD" },
            })
        })
    }

    /// Takes the news that the session's work failed. Before the prompt of the turn was seen, an abort is of
    /// the turn before, which may have ended by what was read of it.
    pub(super) fn failed(&mut self, failure: &SessionFailure) {
        let Some(turn) = &mut self.turn else { return };
        if !failure.is_abort() || self.last_user != turn.user_before {
            turn.fail(failure);
        }
    }

    /// Whether a session that says it is idle has ended its turn. If not, the news may be of the turn before,
    /// or some was lost.
    pub(super) fn ends_when_idle(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| {
            let is_whole = !turn.is_open && turn.finish.as_deref() != Some(TOOL_CALLS);
            turn.is_cancelled || turn.failure.is_some() || is_whole
        })
    }

    /// Takes messages that were read again; returns the updates of what was missed.
    pub(super) fn catch_up(&mut self, messages: Vec<ServerMessage>) -> Vec<Value> {
        let Some(turn) = &self.turn else { return Vec::new() };
        let is_user = |message: &ServerMessage| message.info.role == Role::User;
        let known = |before: &String| messages.iter().position(|it| it.info.id == *before);
        let begin = match turn.user_before.as_ref().map(known) {
            None => 0,
            Some(Some(at)) => at + 1,
            // There are too many since then.
            Some(None) => messages.iter().rposition(is_user).unwrap_or(messages.len()),
        };
        let mut updates = Vec::new();
        // What comes before the next message of a user answers the one before.
        let of_turn = messages.into_iter().skip(begin).skip_while(|message| !is_user(message));
        for ServerMessage { info, parts } in of_turn {
            updates.extend(self.message(&info));
            updates.extend(parts.into_iter().flat_map(|part| self.shows.part(part, false)));
        }
        updates
    }

    /// How the turn stands in an idle session that has these messages.
    pub(super) fn standing(&mut self, messages: &[ServerMessage]) -> TurnStanding {
        let Some(turn) = &mut self.turn else { return TurnStanding::Ended };
        if turn.is_cancelled || turn.failure.is_some() {
            return TurnStanding::Ended;
        }
        let asked = messages.iter().rposition(|message| message.info.role == Role::User);
        let answer = asked.and_then(|asked| {
            let is_new = Some(&messages[asked].info.id) != turn.user_before.as_ref();
            let mut answers = messages[asked..].iter().rev();
            answers.find(|message| message.info.role == Role::Assistant).filter(|_| is_new)
        });
        // A server that began anew does not go on with it.
        let is_whole = answer.is_some_and(|answer| {
            let info = &answer.info;
            let ends_early = turn.is_torn && info.finish.as_deref() == Some(TOOL_CALLS);
            info.error.is_some() || info.time.completed.is_some() && !ends_early
        });
        if is_whole {
            return TurnStanding::Ended;
        }
        turn.checks += 1;
        if turn.checks >= if turn.is_torn { MOST_CHECKS_TORN } else { MOST_CHECKS } {
            let why = "the server has ended its work on this prompt before the answer was complete";
            turn.failure = Some(why.to_owned());
            return TurnStanding::Ended;
        }
        TurnStanding::Open
    }

    /// Ends the turn; returns the answer to its request.
    pub(super) fn end(&mut self) -> Option<Value> {
        let turn = self.turn.take()?;
        if let (Some(failure), false) = (&turn.failure, turn.is_cancelled) {
            return Some(error(&turn.id, INTERNAL, failure));
        }
        let reason = match turn.finish.as_deref() {
            _ if turn.is_cancelled => "cancelled",
            Some("length") => "max_tokens",
            Some("content-filter") => "refusal",
            _ => "end_turn",
        };
        let counted = TokenSum::of(&turn.tokens.values());
        let mut result = json!({ "stopReason": reason });
        if counted.total() > 0 {
            result["usage"] = counted.usage();
        }
        Some(answer(&turn.id, &result))
    }
}

impl PromptTurn {
    fn fail(&mut self, failure: &SessionFailure) {
        if failure.is_abort() {
            self.is_cancelled = true;
        } else {
            self.failure = Some(failure.text().to_owned());
        }
    }
}

/// Tokens, as whole numbers.
struct TokenSum {
    input: u64,
    output: u64,
    thought: u64,
    read: u64,
    written: u64,
}

impl TokenSum {
    fn of<'a>(all: &(impl Iterator<Item = &'a TokenCount> + Clone)) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast keeps to the bounds"
        )]
        let sum = |of: fn(&TokenCount) -> f64| all.clone().map(of).sum::<f64>() as u64;
        Self {
            input: sum(|tokens| tokens.input),
            output: sum(|tokens| tokens.output),
            thought: sum(|tokens| tokens.reasoning),
            read: sum(|tokens| tokens.cache.read),
            written: sum(|tokens| tokens.cache.write),
        }
    }

    fn total(&self) -> u64 {
        let all = [self.input, self.output, self.thought, self.read, self.written];
        all.into_iter().fold(0, u64::saturating_add)
    }

    fn usage(&self) -> Value {
        json!({
            "inputTokens": self.input,
            "outputTokens": self.output,
            "thoughtTokens": self.thought,
            "cachedReadTokens": self.read,
            "cachedWriteTokens": self.written,
            "totalTokens": self.total(),
        })
    }
}

pub(super) fn answer(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(super) fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// The parts of a session's messages from before, for a client that loads it.
pub(super) fn replay(shows: &mut Shows, messages: Vec<ServerMessage>) -> Vec<Value> {
    let mut updates = Vec::new();
    for ServerMessage { info, parts } in messages {
        shows.message(&info);
        let updates_of = |part: MessagePart| shows.part(part, true);
        updates.extend(parts.into_iter().flat_map(updates_of));
    }
    updates
}
