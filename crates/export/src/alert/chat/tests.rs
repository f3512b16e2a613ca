//! The bodies of messages, as the services document them.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::model::SecretText;

const PAGE: &str = "https://team.example";

fn secret(text: &str) -> SecretText {
    SecretText::new(text.to_owned())
}

fn slack() -> ChatService {
    ChatService::Slack(secret("https://hooks.slack.com/services/T0/B0/KEY"))
}

fn discord() -> ChatService {
    ChatService::Discord(secret("https://discord.com/api/webhooks/1/KEY"))
}

fn telegram() -> ChatService {
    let server = secret("https://api.telegram.org");
    ChatService::Telegram { server, token: secret("1:KEY"), chat_id: "-100".to_owned() }
}

fn pending() -> Notice {
    Notice {
        event: Cause::Pending,
        agent_id: "ui".to_owned(),
        message: "ui wants to read `src/<!channel>&_x_.rs`, and waits for a decision (b1)"
            .to_owned(),
        id: Some("b1".to_owned()),
        why: Some("said: see [this](https://evil.example) @everyone".to_owned()),
        page: Some(PAGE.to_owned()),
        ..Notice::test("shop")
    }
}

fn message(service: ChatService, contents: bool, notice: &Notice) -> ChatMessage {
    ChatMessage::of(&ChatTarget { service, contents }, notice)
}

#[test]
fn each_service_gets_the_body_that_it_documents() {
    let said = "shop: ui needs you (b1)";
    let card = "https://team.example/#inbox/b1";
    let of_slack = message(slack(), false, &pending());
    assert_eq!(of_slack.url, "https://hooks.slack.com/services/T0/B0/KEY");
    let text = format!("{said}\n<{card}>");
    let wanted = json!({"text": text, "unfurl_links": false, "unfurl_media": false});
    assert_eq!(of_slack.body, wanted);

    let text = format!("{said}\n{card}");
    let of_discord = message(discord(), false, &pending());
    assert_eq!(of_discord.url, "https://discord.com/api/webhooks/1/KEY");
    let wanted = json!({"content": text, "allowed_mentions": {"parse": []}, "flags": 4});
    assert_eq!(of_discord.body, wanted);

    let of_telegram = message(telegram(), false, &pending());
    assert_eq!(of_telegram.url, "https://api.telegram.org/bot1:KEY/sendMessage");
    let text = format!("{said}\n{card}");
    let preview = json!({"is_disabled": true});
    let wanted = json!({"chat_id": "-100", "text": text, "link_preview_options": preview});
    assert_eq!(of_telegram.body, wanted);
}

#[test]
fn contents_come_where_they_are_asked_for_and_as_they_are() {
    let told = |service, contents| message(service, contents, &pending()).body.to_string();
    for service in [slack(), discord(), telegram()] {
        let told = told(service, false);
        assert!(!told.contains("src/") && !told.contains("evil"), "{told}");
    }
    let slack = message(slack(), true, &pending()).body["text"].clone();
    let text = slack.as_str().unwrap();
    assert!(text.contains("`src/&lt;!channel&gt;&amp;_x_.rs`"), "{text}");
    let discord = message(discord(), true, &pending()).body["content"].clone();
    let content = discord.as_str().unwrap();
    assert!(content.contains(r"\`src/\<!channel\>&\_x\_.rs\`"), "{content}");
    assert!(content.contains(r"\[this\](https://evil.example)"), "{content}");
    let telegram = message(telegram(), true, &pending()).body;
    let text = telegram["text"].as_str().unwrap();
    assert!(text.contains("`src/<!channel>&_x_.rs`") && text.contains("\nsaid: see [this]"));
    assert_eq!(telegram.get("parse_mode"), None);
}

#[test]
fn each_cause_says_who_and_leads_to_its_place() {
    let of = |event, agent: &str| {
        let agent_id = agent.to_owned();
        let notice = Notice { event, agent_id, message: "src/secret.rs".to_owned(), ..pending() };
        message(telegram(), false, &notice).body["text"].as_str().unwrap().to_owned()
    };
    for (event, agent, wanted) in [
        (Cause::Stall, "ui", "shop: ui stalls\nhttps://team.example/#team/ui"),
        (Cause::Error, "a/ü", "shop: a/ü failed\nhttps://team.example/#team/a%2F%C3%BC"),
        (Cause::Loop, "ui", "shop: ui goes in a loop\nhttps://team.example/#team/ui"),
        (
            Cause::Budget,
            "ui",
            "shop: the budget of ui is used up, or nearly\nhttps://team.example/#team/ui",
        ),
        (
            Cause::Budget,
            "",
            "shop: the team's budget is used up, or nearly\nhttps://team.example/#team",
        ),
    ] {
        assert_eq!(of(event, agent), wanted);
    }
    let tried = Notice { page: Some(PAGE.to_owned()), ..Notice::test("shop") };
    let text = message(telegram(), false, &tried).body["text"].clone();
    assert_eq!(text, "shop: this is a test notice of the team `shop`\nhttps://team.example/");
    let text = message(telegram(), false, &Notice::test("shop")).body["text"].clone();
    assert_eq!(text, "shop: this is a test notice of the team `shop`", "no page, no link");
    let until_ms = Some(now_ms() + 610_000);
    let text = message(telegram(), false, &Notice { until_ms, ..pending() }).body["text"].clone();
    assert!(text.as_str().unwrap().starts_with("shop: ui needs you (b1); 10 min left\n"), "{text}");
}

#[test]
fn a_long_text_is_cut_between_its_escapes_and_keeps_the_link() {
    let long = |message: &str| Notice { message: message.to_owned(), ..pending() };
    let ending = "\nhttps://team.example/#inbox/b1";
    // Characters of two units of UTF-16 that are escaped, after one that shifts them.
    for text in ["*".repeat(3_000), format!("a{}", "*".repeat(3_000)), "🦀".repeat(3_000)] {
        let body = message(discord(), true, &long(&text)).body;
        let content = body["content"].as_str().unwrap();
        let units = content.encode_utf16().count();
        assert!((1_997..=2_000).contains(&units), "{units}");
        let cut = content.strip_suffix(ending).unwrap().strip_suffix('…').unwrap();
        assert!(cut.ends_with("\\*") || cut.ends_with('🦀'), "{cut}");
    }
    let body = message(slack(), true, &long(&"&".repeat(9_000))).body;
    let text = body["text"].as_str().unwrap();
    assert!(text.len() <= LONGEST_SLACK + "…".len() && text.contains("&amp;…\n<"), "{text}");
    let body = message(telegram(), true, &long(&"x".repeat(9_000))).body;
    let text = body["text"].as_str().unwrap();
    assert_eq!(text.encode_utf16().count(), LONGEST_TELEGRAM);
    assert!(text.ends_with(&format!("x…{ending}")), "{text}");
    let all = "x".repeat(LONGEST_TELEGRAM);
    assert_eq!(bounded(&all, None, LONGEST_TELEGRAM, |c, text| text.push(c)), all);
}
