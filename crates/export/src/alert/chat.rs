//! The messages of chats: a text that is short enough, a link to the page, and nothing that a service would take for
//! markup or a mention.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Cause, Notice};
use crate::model::{ChatService, ChatTarget, left, now_ms};

/// Characters of a message of Slack, after which it advises to write less. It cuts at 40,000.
const LONGEST_SLACK: usize = 4_000;
/// Characters of a message of Discord.
const LONGEST_DISCORD: usize = 2_000;
/// Characters of a message of Telegram.
const LONGEST_TELEGRAM: usize = 4_096;

/// Discord's flag of a message whose links get no previews.
const SUPPRESS_EMBEDS: u32 = 1 << 2;

/// The bytes that are encoded in a fragment of an address.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// A request to a service.
pub(super) struct ChatMessage {
    /// A secret.
    pub(super) url: String,
    pub(super) body: Value,
}

impl ChatMessage {
    /// A notice in the form of a service.
    pub(super) fn of(chat: &ChatTarget, notice: &Notice) -> Self {
        let text = text(notice, chat.contents);
        let link = link(notice);
        match &chat.service {
            ChatService::Slack(url) => {
                let link = link.map(|link| format!("<{link}>"));
                let text = bounded(&text, link, LONGEST_SLACK, escape_for_slack);
                // A preview would have Slack open whatever an agent wrote.
                let body = json!({"text": text, "unfurl_links": false, "unfurl_media": false});
                Self { url: url.reveal().to_owned(), body }
            }
            ChatService::Discord(url) => {
                let content = bounded(&text, link, LONGEST_DISCORD, escape_for_discord);
                let body = json!({
                    "content": content,
                    "allowed_mentions": {"parse": []},
                    "flags": SUPPRESS_EMBEDS,
                });
                Self { url: url.reveal().to_owned(), body }
            }
            ChatService::Telegram { server, token, chat_id } => {
                let text = bounded(&text, link, LONGEST_TELEGRAM, |c, text| text.push(c));
                let body = json!({
                    "chat_id": chat_id,
                    "text": text,
                    "link_preview_options": {"is_disabled": true},
                });
                let url = format!("{}/bot{}/sendMessage", server.reveal(), token.reveal());
                Self { url, body }
            }
        }
    }
}

/// The agent that a notice is about and what became of it, or all that the notice says.
fn text(notice: &Notice, contents: bool) -> String {
    let Notice { team, agent_id: agent, message, .. } = notice;
    if contents {
        return format!("{team}: {}", notice.for_people());
    }
    let said = match notice.event {
        Cause::Pending => {
            let id = notice.id.as_deref().unwrap_or("?");
            let left = notice.until_ms.map(|until| format!("; {}", left(until, now_ms())));
            format!("{agent} needs you ({id}){}", left.unwrap_or_default())
        }
        Cause::Stall => format!("{agent} stalls"),
        Cause::Error => format!("{agent} failed"),
        Cause::Budget if agent.is_empty() => "the team's budget is used up, or nearly".to_owned(),
        Cause::Budget => format!("the budget of {agent} is used up, or nearly"),
        Cause::Loop => format!("{agent} goes in a loop"),
        Cause::Done | Cause::Test => message.clone(),
    };
    format!("{team}: {said}")
}

/// The place of the page that shows what a notice is about.
fn link(notice: &Notice) -> Option<String> {
    let page = notice.page.as_deref()?;
    let part = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    Some(match (&notice.event, &notice.id) {
        (Cause::Test, _) => format!("{page}/"),
        (Cause::Pending, Some(id)) => format!("{page}/#inbox/{}", part(id)),
        _ if notice.agent_id.is_empty() => format!("{page}/#team"),
        _ => format!("{page}/#team/{}", part(&notice.agent_id)),
    })
}

/// The escaped text, and the link in a line below it. A text that is too long for both is cut; services count units of
/// UTF-16 or characters, of which there are no more.
fn bounded(
    text: &str,
    link: Option<String>,
    most: usize,
    escape: impl Fn(char, &mut String),
) -> String {
    const CUT: &str = "…";
    let units = |text: &str| text.encode_utf16().count();
    let link = link.map(|link| format!("\n{link}")).filter(|link| units(link) < most);
    let room = most - link.as_deref().map_or(0, units);
    let (mut bounded, mut used) = (String::new(), 0);
    // The end up to which there is room for the sign of a cut, too.
    let mut cut_at = 0;
    for c in text.chars() {
        let before = bounded.len();
        escape(c, &mut bounded);
        used += units(&bounded[before..]);
        if used > room {
            bounded.truncate(cut_at);
            bounded.push_str(CUT);
            break;
        }
        if used + units(CUT) <= room {
            cut_at = bounded.len();
        }
    }
    bounded + link.as_deref().unwrap_or_default()
}

/// Escapes what Slack takes for a link or a mention.
fn escape_for_slack(c: char, text: &mut String) {
    match c {
        '&' => text.push_str("&amp;"),
        '<' => text.push_str("&lt;"),
        '>' => text.push_str("&gt;"),
        c => text.push(c),
    }
}

/// Escapes what Discord takes for markup: a link could say another address than it opens.
fn escape_for_discord(c: char, text: &mut String) {
    if "\\*_~|`[]<>".contains(c) {
        text.push('\\');
    }
    text.push(c);
}

/// The remedy after an answer with this status; empty if that is not known.
pub(super) fn advice(service: &ChatService, status: Option<u16>) -> &'static str {
    match (service, status) {
        (ChatService::Telegram { .. }, Some(401 | 404)) => {
            ": no bot has this token: write the one that @BotFather gave"
        }
        (ChatService::Telegram { .. }, Some(400)) => {
            ": the bot knows no chat with this `chat_id`: write to the bot first, or add it to the group"
        }
        (ChatService::Telegram { .. }, Some(403)) => {
            ": the bot may not write there: start it in the chat, or add it to the group or channel"
        }
        (ChatService::Slack(_) | ChatService::Discord(_), Some(401 | 403 | 404 | 410)) => {
            ": no webhook has this address: make one, and write its address into `url`"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
