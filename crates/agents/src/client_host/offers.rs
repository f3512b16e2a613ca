//! The options that an agent offers in its sessions, such as mode and model, with the chosen values, and its commands.
//! Pure, and lenient: agents announce options in several ways.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::choice::{Choice, ChoiceRequest, Offer, OfferedSettings};
use crate::acp;
use crate::model::{SessionId, one_line};

/// Sessions whose options are kept; those of others are not known.
const MOST_SESSIONS: usize = 1024;
/// Options of a session, and values of all of them. More are left out.
const MOST_OPTIONS: usize = 16;
const MOST_VALUES: usize = 1000;
/// Bytes of all texts of a session's options; a value that does not fit is left out.
const MOST_BYTES: usize = 128 << 10;
/// Bytes of an id; an option, value or command with a longer one is left out, since a part of it means nothing.
const LONGEST_ID: usize = 256;
/// Bytes of a name and of a description; the rest is cut.
const LONGEST_NAME: usize = 120;
const LONGEST_DESCRIPTION: usize = 400;
/// Commands of a session; more are left out.
const MOST_COMMANDS: usize = 100;

/// The value of each option of a session.
pub type Chosen = BTreeMap<String, String>;

/// One choice that an agent offers in a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionOption {
    pub id: String,
    pub name: String,
    /// The meaning by ACP: `mode`, `model`, `thought_level`, or another word of the agent.
    pub category: Option<String>,
    /// The id of the value that is chosen; None: the agent does not say.
    pub current: Option<String>,
    pub values: Vec<OptionValue>,
    /// The request that chooses a value.
    pub how: ChoiceRequest,
}

/// The options of a session and its commands, as a client sees them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionChoices {
    pub session: SessionId,
    pub options: Vec<SessionOption>,
    pub commands: Vec<SessionCommand>,
}

/// A command that an agent takes at the beginning of a prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionCommand {
    /// Without a slash before it.
    pub name: String,
    pub description: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionValue {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
}

/// The options and the commands of all sessions of a run.
#[derive(Default, Debug)]
pub(super) struct Offers {
    options: HashMap<SessionId, SessionOffers>,
    /// They come by themselves, also before the answer that opens a session.
    commands: HashMap<SessionId, Vec<SessionCommand>>,
}

#[derive(Default, PartialEq, Debug)]
struct SessionOffers {
    /// Options of `modes` and `models`.
    plain: Vec<SessionOption>,
    /// Options of `configOptions`.
    config: Vec<SessionOption>,
}

/// The meaning of an answer of the agent for its options.
#[derive(Debug)]
pub(super) enum Learning {
    /// A session was opened; None: the answer names it.
    Opened(Option<SessionId>),
    /// A value was chosen.
    Chose(SessionId, ChoiceRequest, String),
}

/// The meaning of an update of the agent for its options.
#[derive(Debug)]
pub(super) enum OptionNews {
    Mode(String),
    Options(Value),
}

impl Learning {
    /// Returns the meaning of the answer to a request; `behind` is the name under which a new session goes.
    pub(super) fn of(method: &str, params: &Value, behind: Option<SessionId>) -> Option<Self> {
        let text = |key: &str| params.get(key)?.as_str().map(str::to_owned);
        let session = || text("sessionId").map(SessionId::new);
        Some(match method {
            "session/new" | "session/fork" => Self::Opened(behind),
            "session/load" | "session/resume" => Self::Opened(session()),
            "session/set_mode" => Self::Chose(session()?, ChoiceRequest::Mode, text("modeId")?),
            "session/set_model" => Self::Chose(session()?, ChoiceRequest::Model, text("modelId")?),
            "session/set_config_option" => {
                Self::Chose(session()?, ChoiceRequest::Option(text("configId")?), text("value")?)
            }
            _ => return None,
        })
    }
}

impl Offers {
    /// Takes in the result of a request. Returns the session and what is chosen in it, if that differs from
    /// before in a session that was known.
    pub(super) fn learn(
        &mut self,
        learning: Learning,
        result: &Value,
        is_open: impl Fn(&SessionId) -> bool,
    ) -> Option<(SessionId, Chosen)> {
        let announced: OfferedSettings = acp::read(result);
        match learning {
            Learning::Opened(named) => {
                let session = named.or(announced.session_id.clone().map(SessionId::new))?;
                let offers = SessionOffers::of(&announced);
                // Some agents do not repeat their options when a session goes on.
                if offers == SessionOffers::default() {
                    return None;
                }
                if !has_room(&mut self.options, &session, is_open) {
                    return None;
                }
                let chosen = offers.chosen();
                let before = self.options.insert(session.clone(), offers);
                let differs = before.is_some_and(|before| before.chosen() != chosen);
                differs.then_some((session, chosen))
            }
            Learning::Chose(session, how, value) => self.change(session, |offers| {
                offers.choose(&how, &value);
                offers.replace(&announced.config_options);
            }),
        }
    }

    /// Takes in an update; returns as [`Offers::learn`] does.
    pub(super) fn hear(
        &mut self,
        session: SessionId,
        news: &OptionNews,
    ) -> Option<(SessionId, Chosen)> {
        self.change(session, |offers| match news {
            OptionNews::Mode(mode) => offers.choose(&ChoiceRequest::Mode, mode),
            OptionNews::Options(options) => offers.replace(options),
        })
    }

    /// Takes in the commands of a session, in place of those before.
    pub(super) fn hear_commands(
        &mut self,
        session: SessionId,
        mut commands: Vec<SessionCommand>,
        is_open: impl Fn(&SessionId) -> bool,
    ) {
        commands.truncate(MOST_COMMANDS);
        if has_room(&mut self.commands, &session, is_open) {
            self.commands.insert(session, commands);
        }
    }

    fn change(
        &mut self,
        session: SessionId,
        change: impl FnOnce(&mut SessionOffers),
    ) -> Option<(SessionId, Chosen)> {
        let offers = self.options.get_mut(&session)?;
        let before = offers.chosen();
        change(offers);
        let after = offers.chosen();
        (after != before).then_some((session, after))
    }

    /// A session belongs to an editor now, which chooses by itself.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.options.remove(session);
        self.commands.remove(session);
    }

    pub(super) fn of(&self, session: &SessionId) -> Vec<SessionOption> {
        self.options.get(session).map(|it| it.all().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn commands_of(&self, session: &SessionId) -> Vec<SessionCommand> {
        self.commands.get(session).cloned().unwrap_or_default()
    }

    pub(super) fn chosen(&self, session: &SessionId) -> Chosen {
        self.options.get(session).map(SessionOffers::chosen).unwrap_or_default()
    }
}

/// Whether a session may be kept beside those that are; sessions that are not open make room.
fn has_room<T>(
    kept: &mut HashMap<SessionId, T>,
    session: &SessionId,
    is_open: impl Fn(&SessionId) -> bool,
) -> bool {
    if kept.len() >= MOST_SESSIONS && !kept.contains_key(session) {
        kept.retain(|session, _| is_open(session));
    }
    kept.len() < MOST_SESSIONS || kept.contains_key(session)
}

/// Reads the commands that an agent announces.
pub(super) fn announced_commands(list: &Value) -> Vec<SessionCommand> {
    let command = |it: Offer| {
        let name = short(Some(it.name))?.trim_start_matches('/').to_owned();
        let description = it.description.map(|text| shown(&text, LONGEST_DESCRIPTION));
        let description = description.filter(|text| !text.is_empty());
        (!name.is_empty()).then_some(SessionCommand { name, description })
    };
    acp::list(list).into_iter().filter_map(command).collect()
}

impl SessionOffers {
    fn of(announced: &OfferedSettings) -> Self {
        let mut room = RoomLeft::default();
        let config = config_options(&announced.config_options, &mut room);
        let OfferedSettings { modes, models, .. } = announced;
        let plain = [
            plain("mode", "Mode", modes.current_mode_id.as_ref(), ChoiceRequest::Mode, {
                values(&modes.available_modes, |it| it.id.take(), &mut room)
            }),
            plain("model", "Model", models.current_model_id.as_ref(), ChoiceRequest::Model, {
                values(&models.available_models, |it| it.model_id.take(), &mut room)
            }),
        ];
        Self { plain: plain.into_iter().flatten().collect(), config }
    }

    /// All options. What an agent offers as an option of its configuration replaces the mode or model that
    /// it offers besides: that is for older clients.
    fn all(&self) -> impl Iterator<Item = &SessionOption> {
        let replaced = |it: &SessionOption| self.config.iter().any(|option| option.is(&it.id));
        let plain = self.plain.iter().filter(move |it| !replaced(it));
        plain.chain(&self.config).take(MOST_OPTIONS)
    }

    fn chosen(&self) -> Chosen {
        self.all().filter_map(|it| Some((it.id.clone(), it.current.clone()?))).collect()
    }

    fn choose(&mut self, how: &ChoiceRequest, value: &str) {
        if value.len() > LONGEST_ID {
            return;
        }
        let is_it = |it: &SessionOption| match how {
            ChoiceRequest::Auth => false,
            ChoiceRequest::Mode => it.is("mode"),
            ChoiceRequest::Model => it.is("model"),
            ChoiceRequest::Option(id) => it.id == *id,
        };
        for option in self.plain.iter_mut().chain(&mut self.config).filter(|it| is_it(it)) {
            option.current = Some(value.to_owned());
        }
    }

    /// Takes in the whole state of the options of the configuration.
    fn replace(&mut self, options: &Value) {
        if options.is_array() {
            self.config = config_options(options, &mut RoomLeft::default());
        }
    }
}

impl SessionOption {
    /// Whether a word names the option: its id, or what it is about.
    pub(super) fn is(&self, word: &str) -> bool {
        self.id == word || self.category.as_deref() == Some(word)
    }

    pub(super) fn choices(&self) -> Vec<Choice> {
        let choice = |it: &OptionValue| Choice {
            id: it.id.clone(),
            name: it.name.clone(),
            how: self.how.clone(),
        };
        self.values.iter().map(choice).collect()
    }
}

/// The room that is left for the options of a session.
struct RoomLeft {
    values: usize,
    bytes: usize,
}

impl Default for RoomLeft {
    fn default() -> Self {
        Self { values: MOST_VALUES, bytes: MOST_BYTES }
    }
}

impl RoomLeft {
    fn takes(&mut self, bytes: usize) -> bool {
        let has = self.values > 0 && self.bytes >= bytes;
        if has {
            self.values -= 1;
            self.bytes -= bytes;
        }
        has
    }
}

fn plain(
    id: &str,
    name: &str,
    current: Option<&String>,
    how: ChoiceRequest,
    values: Vec<OptionValue>,
) -> Option<SessionOption> {
    let (id, name) = (id.to_owned(), name.to_owned());
    let (category, current) = (Some(id.clone()), short(current.cloned()));
    (!values.is_empty()).then_some(SessionOption { id, name, category, current, values, how })
}

fn config_options(all: &Value, room: &mut RoomLeft) -> Vec<SessionOption> {
    let option = |it: Offer| {
        let id = short(it.id)?;
        let name = shown(&it.name, LONGEST_NAME);
        let mut offered = values(&it.options, |it| it.value.take(), room);
        // They may be grouped.
        for group in acp::list::<Offer>(&it.options) {
            offered.extend(values(&group.options, |it| it.value.take(), room));
        }
        (!offered.is_empty()).then(|| SessionOption {
            name: if name.is_empty() { shown(&id, LONGEST_NAME) } else { name },
            category: short(it.category),
            current: short(it.current_value),
            values: offered,
            how: ChoiceRequest::Option(id.clone()),
            id,
        })
    };
    acp::list(all).into_iter().filter_map(option).take(MOST_OPTIONS).collect()
}

fn values(
    list: &Value,
    id: fn(&mut Offer) -> Option<String>,
    room: &mut RoomLeft,
) -> Vec<OptionValue> {
    let value = |mut it: Offer| {
        let id = short(id(&mut it))?;
        let name = shown(&it.name, LONGEST_NAME);
        let name = if name.is_empty() { shown(&id, LONGEST_NAME) } else { name };
        let description = it.description.map(|text| shown(&text, LONGEST_DESCRIPTION));
        let description = description.filter(|text| !text.is_empty());
        let bytes = id.len() + name.len() + description.as_ref().map_or(0, String::len);
        room.takes(bytes).then_some(OptionValue { id, name, description })
    };
    acp::list(list).into_iter().filter_map(value).collect()
}

fn short(id: Option<String>) -> Option<String> {
    id.filter(|id| !id.is_empty() && id.len() <= LONGEST_ID)
}

fn shown(text: &str, longest: usize) -> String {
    let cut = |text: &str| text[..text.floor_char_boundary(longest)].to_owned();
    cut(one_line(&cut(text)).trim())
}

#[cfg(test)]
mod tests;
