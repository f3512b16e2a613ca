//! Records: what a plugin reports, as bytes. The header describes their form.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use crate::abi::{field, kind};

/// One thing that a plugin reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    Description {
        name: Text<'a>,
        version: Text<'a>,
        protocols: Vec<Text<'a>>,
    },
    /// Why a call failed.
    Error {
        body: Text<'a>,
    },
    /// The agent's own id of its session.
    Session {
        id: Text<'a>,
    },
    TurnBegan,
    /// `reason` as ACP has it, or `error` with what went wrong.
    TurnEnded {
        reason: Text<'a>,
        body: Text<'a>,
    },
    /// `action` is `read`, `write` or `search`; `call` is the tool call's id, or empty.
    Touched {
        action: Text<'a>,
        path: Text<'a>,
        call: Text<'a>,
    },
    Usage(Usage<'a>),
    Model {
        id: Text<'a>,
        name: Text<'a>,
    },
    /// Text of the agent; `reason` is `thought` for its thoughts.
    Text {
        body: Text<'a>,
        reason: Text<'a>,
    },
    /// The agent asks before it acts: `(action, path)` each. An action is `read`, `write`, or
    /// `search`: the contents of all that lies below a folder.
    Ask {
        id: Text<'a>,
        title: Text<'a>,
        accesses: Vec<(Text<'a>, Text<'a>)>,
        command: Text<'a>,
    },
    /// A line for the agent.
    Line {
        body: &'a [u8],
    },
    /// The agent runs a shell line.
    Runs {
        command: Text<'a>,
        call: Text<'a>,
    },
    /// The agent withdrew a request for permission.
    Withdrawn {
        id: Text<'a>,
    },
}

type Text<'a> = Cow<'a, str>;

/// The agent's own count of tokens and cost, as far as known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Usage<'a> {
    /// Tokens in its context, and the context's size.
    pub used: Option<u64>,
    pub size: Option<u64>,
    /// Cost of the session so far: a decimal number, and its currency.
    pub cost: Option<Cow<'a, str>>,
    pub currency: Option<Cow<'a, str>>,
}

/// The bytes are not records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// They end within a record.
    Torn,
    /// A text is not UTF-8.
    NotText,
    /// A number is malformed.
    NotANumber,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Torn => "a record ends before it is whole",
            Self::NotText => "a text in a record is not UTF-8",
            Self::NotANumber => "a number in a record is not one",
        })
    }
}

impl std::error::Error for Malformed {}

/// Reads records one after the other, until the bytes end or are malformed. Kinds and fields that
/// are not known are skipped.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = Result<Record<'_>, Malformed>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let read = piece(&mut rest).and_then(|(kind, fields)| read(kind, fields));
            if read.is_err() {
                rest = &[];
            }
            if let Some(read) = read.transpose() {
                return Some(read);
            }
        }
        None
    })
}

/// Takes a tag, a length, and as many bytes.
fn piece<'a>(rest: &mut &'a [u8]) -> Result<(u32, &'a [u8]), Malformed> {
    let mut number = || {
        let (number, behind) = rest.split_first_chunk().ok_or(Malformed::Torn)?;
        *rest = behind;
        Ok(u32::from_le_bytes(*number))
    };
    let (first, length) = (number()?, number()?);
    let length = usize::try_from(length).map_err(|_| Malformed::Torn)?;
    let (body, behind) = rest.split_at_checked(length).ok_or(Malformed::Torn)?;
    *rest = behind;
    Ok((first, body))
}

/// The fields of a record.
#[derive(Default)]
struct Fields<'a> {
    texts: [Option<Text<'a>>; 15],
    protocols: Vec<Text<'a>>,
    accesses: Vec<(Text<'a>, Text<'a>)>,
    body: &'a [u8],
}

fn read(kind: u32, mut rest: &[u8]) -> Result<Option<Record<'_>>, Malformed> {
    let is_line = kind == kind::LINE;
    let mut fields = Fields::default();
    while !rest.is_empty() {
        let (tag, value) = piece(&mut rest)?;
        let place = usize::try_from(tag).ok().and_then(|tag| fields.texts.get_mut(tag));
        let Some(place) = place else { continue };
        if is_line && tag == field::BODY {
            fields.body = value;
            continue;
        }
        let text = Cow::from(str::from_utf8(value).map_err(|_| Malformed::NotText)?);
        match tag {
            field::PROTOCOL => fields.protocols.push(text),
            field::PATH if kind == kind::ASK => {
                let action = fields.texts[field::ACTION as usize].take().unwrap_or_default();
                fields.accesses.push((action, text));
            }
            _ => *place = Some(text),
        }
    }
    let number = |text: Option<Text<'_>>| {
        text.map(|text| text.parse().map_err(|_| Malformed::NotANumber)).transpose()
    };
    let mut take = |tag: u32| fields.texts[tag as usize].take();
    let mut text = |tag: u32| take(tag).unwrap_or_default();
    Ok(Some(match kind {
        kind::DESCRIPTION => Record::Description {
            name: text(field::NAME),
            version: text(field::VERSION),
            protocols: fields.protocols,
        },
        kind::ERROR => Record::Error { body: text(field::BODY) },
        kind::SESSION => Record::Session { id: text(field::ID) },
        kind::TURN_BEGAN => Record::TurnBegan,
        kind::TURN_ENDED => {
            Record::TurnEnded { reason: text(field::REASON), body: text(field::BODY) }
        }
        kind::TOUCHED => Record::Touched {
            action: text(field::ACTION),
            path: text(field::PATH),
            call: text(field::ID),
        },
        kind::USAGE => Record::Usage(Usage {
            used: number(take(field::USED))?,
            size: number(take(field::SIZE))?,
            cost: take(field::COST),
            currency: take(field::CURRENCY),
        }),
        kind::MODEL => Record::Model { id: text(field::ID), name: text(field::NAME) },
        kind::TEXT => Record::Text { body: text(field::BODY), reason: text(field::REASON) },
        kind::ASK => Record::Ask {
            id: text(field::ID),
            title: text(field::TITLE),
            command: text(field::COMMAND),
            accesses: fields.accesses,
        },
        kind::LINE => Record::Line { body: fields.body },
        kind::RUNS => Record::Runs { command: text(field::COMMAND), call: text(field::ID) },
        kind::WITHDRAWN => Record::Withdrawn { id: text(field::ID) },
        _ => return Ok(None),
    }))
}

impl Record<'_> {
    /// Appends the record's bytes.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let mut record = Writer::new(self.kind(), bytes);
        match self {
            Self::Description { name, version, protocols } => {
                record.text(field::NAME, name).text(field::VERSION, version);
                for protocol in protocols {
                    record.text(field::PROTOCOL, protocol);
                }
            }
            Self::Error { body } => {
                record.text(field::BODY, body);
            }
            Self::Session { id } | Self::Withdrawn { id } => {
                record.text(field::ID, id);
            }
            Self::TurnBegan => {}
            Self::TurnEnded { reason, body } | Self::Text { body, reason } => {
                record.text(field::REASON, reason).text(field::BODY, body);
            }
            Self::Touched { action, path, call } => {
                record.text(field::ACTION, action).text(field::PATH, path).text(field::ID, call);
            }
            Self::Usage(Usage { used, size, cost, currency }) => {
                for (tag, number) in [(field::USED, used), (field::SIZE, size)] {
                    if let Some(number) = number {
                        record.text(tag, &number.to_string());
                    }
                }
                for (tag, text) in [(field::COST, cost), (field::CURRENCY, currency)] {
                    if let Some(text) = text {
                        record.text(tag, text);
                    }
                }
            }
            Self::Model { id, name } => {
                record.text(field::ID, id).text(field::NAME, name);
            }
            Self::Ask { id, title, accesses, command } => {
                record.text(field::ID, id).text(field::TITLE, title).text(field::COMMAND, command);
                for (action, path) in accesses {
                    record.text(field::ACTION, action).text(field::PATH, path);
                }
            }
            Self::Line { body } => {
                record.field(field::BODY, body);
            }
            Self::Runs { command, call } => {
                record.text(field::COMMAND, command).text(field::ID, call);
            }
        }
    }

    fn kind(&self) -> u32 {
        match self {
            Self::Description { .. } => kind::DESCRIPTION,
            Self::Error { .. } => kind::ERROR,
            Self::Session { .. } => kind::SESSION,
            Self::TurnBegan => kind::TURN_BEGAN,
            Self::TurnEnded { .. } => kind::TURN_ENDED,
            Self::Touched { .. } => kind::TOUCHED,
            Self::Usage(_) => kind::USAGE,
            Self::Model { .. } => kind::MODEL,
            Self::Text { .. } => kind::TEXT,
            Self::Ask { .. } => kind::ASK,
            Self::Line { .. } => kind::LINE,
            Self::Runs { .. } => kind::RUNS,
            Self::Withdrawn { .. } => kind::WITHDRAWN,
        }
    }
}

/// Writes one record; its length is known when it is dropped.
struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    /// Where the fields begin.
    start: usize,
}

impl<'a> Writer<'a> {
    fn new(kind: u32, bytes: &'a mut Vec<u8>) -> Self {
        bytes.extend(kind.to_le_bytes());
        bytes.extend([0; 4]);
        let start = bytes.len();
        Self { bytes, start }
    }

    fn text(&mut self, tag: u32, text: &str) -> &mut Self {
        self.field(tag, text.as_bytes())
    }

    fn field(&mut self, tag: u32, value: &[u8]) -> &mut Self {
        self.bytes.extend(tag.to_le_bytes());
        self.bytes.extend(counted(value.len()).to_le_bytes());
        self.bytes.extend(value);
        self
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        let length = counted(self.bytes.len() - self.start);
        self.bytes[self.start - 4..self.start].copy_from_slice(&length.to_le_bytes());
    }
}

/// No host takes records that 32 bits can't count.
fn counted(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
