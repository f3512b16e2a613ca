//! The keys of `top` in words: the most useful ones in the last line, and all of them in the help.

use super::screen::{Pane, Screen};
use crate::cli::columns::wrap;
use crate::view::CardKind;
use unicode_width::UnicodeWidthStr as _;

/// The line of keys ends with it.
const HELP: &str = "? help";

/// The column at which the words of a key begin.
const WORDS: usize = 11;

/// Below so many columns there is no room for a key and its opposite.
const SHORT: usize = 30;

type KeyGroup = (&'static str, &'static [(&'static str, &'static str)]);

const KEYS: &[KeyGroup] = &[
    (
        "",
        &[
            ("1 2 3 4", "Team, Review, Map, Log"),
            ("i", "the inbox: open it, close it"),
            ("Tab", "agents / pane"),
            ("↑ ↓ k j", "select, or scroll; PgUp PgDn ten at once; End follows again"),
            ("f", "figures of the agents: context, spent, memory, zone"),
            ("q Ctrl-C", "leave; the team goes on, prompts that have not begun are withdrawn"),
        ],
    ),
    (
        "Inbox",
        &[
            ("a", "allow it for this tool call"),
            ("s", "an access only: allow it until the session ends"),
            ("m t", "an access only: allow a pattern; for the session, or for the team"),
            ("d D", "deny it; with a message to the agent"),
            ("r", "an access: your text stands in place of the file; a budget: a new total"),
            ("PgUp PgDn", "scroll its file, or the diff"),
        ],
    ),
    (
        "Agents",
        &[
            ("Enter", "its transcript"),
            ("p", "prompt it"),
            ("c", "cancel its turn"),
            ("S x R", "start, stop, restart"),
        ],
    ),
    ("Panes", &[("l", "Review: its last turn only, or all turns"), ("o", "Log: all of it")]),
];

/// All keys, in rows of this width.
pub(super) fn help(width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for (title, keys) in KEYS {
        rows.extend((!title.is_empty()).then(|| (*title).to_owned()));
        for (key, words) in *keys {
            let room = width.saturating_sub(WORDS).max(8);
            for (at, row) in wrap(words, room).into_iter().enumerate() {
                rows.push(format!("{:<WORDS$}{row}", if at == 0 { key } else { "" }));
            }
        }
    }
    let last = "A card that has just come up takes no key for half a second.";
    rows.extend(wrap(last, width.max(8)));
    rows
}

/// The keys that do something now, as many as fit whole; the help always.
pub(super) fn line(screen: &Screen, width: usize) -> String {
    let mut shown = String::new();
    for key in now(screen, width) {
        let room = width.saturating_sub(HELP.width() + 3);
        if shown.width() + key.width() + 3 * usize::from(!shown.is_empty()) > room {
            continue;
        }
        if !shown.is_empty() {
            shown += " · ";
        }
        shown += key;
    }
    match (shown.is_empty(), screen.input.is_some()) {
        (_, true) => shown,
        (true, false) => HELP.to_owned(),
        (false, false) => format!("{shown} · {HELP}"),
    }
}

/// The keys that do something now, the most useful ones first.
fn now(screen: &Screen, width: usize) -> &'static [&'static str] {
    match (&screen.input, screen.on_agents, screen.pane) {
        (Some(_), _, _) => &["Enter send", "Esc back"],
        (None, true, _) => &[
            "p prompt",
            "Tab pane",
            "c cancel",
            "f figures",
            "S start",
            "x stop",
            "R restart",
            "q",
        ],
        (None, false, Pane::Inbox) => match screen.inbox.card.as_ref().map(|card| card.kind) {
            Some(CardKind::Access | CardKind::Conflict) if width < SHORT => {
                &["a d allow, deny", "q"]
            }
            Some(CardKind::Access) => &[
                "a allow",
                "d D deny",
                "s session",
                "m t pattern",
                "r answer",
                "PgDn file",
                "i back",
                "q",
            ],
            Some(CardKind::Conflict) => {
                &["a allow", "d D deny", "PgDn file", "Tab agents", "i back", "q"]
            }
            Some(CardKind::Budget) => &["r new total", "Tab agents", "i back", "q"],
            None => &["1-4 panes", "Tab agents", "i back", "q"],
        },
        (None, false, Pane::Review) => {
            &["↑↓ scroll", "l last turn / all", "1-4 panes", "Tab agents", "i inbox", "q"]
        }
        (None, false, Pane::Map) => &["1-4 panes", "Tab agents", "i inbox", "q"],
        (None, false, _) if screen.held_at.is_some() => {
            &["↑↓ scroll", "End follow again", "1-4 panes", "q"]
        }
        (None, false, Pane::Log) => {
            &["↑↓ scroll", "o all", "1-4 panes", "Tab agents", "i inbox", "q"]
        }
        (None, false, Pane::Team) => {
            &["Tab agents", "1-4 panes", "i inbox", "↑↓ scroll", "f figures", "q"]
        }
    }
}
