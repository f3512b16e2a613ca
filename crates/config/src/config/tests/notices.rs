use expect_test::expect;

use super::{Bench, errors};
use crate::config::Notify;

#[test]
fn mistakes_in_channels_of_notices_say_what_to_write() {
    let text = r#"[[agents]]
id = "ui"
command = ["agent"]
[[notify]]
kind = "ntfy"
quiet = ["22:00-07:00", "25:00-07:00", "night"]
[[notify]]
kind = "desktop"
url = "https://example.org"
[[notify]]
kind = "ntfy"
url = "ntfy.sh/topic"
"#;
    expect![[r#"
        4:1 `kind = "ntfy"` needs `url` | write `url = "https://…"`
        6:25 "25:00-07:00" is not a span of a day | write hours and minutes, such as "22:00-07:00"
        6:40 "night" is not a span of a day | write hours and minutes, such as "22:00-07:00"
        9:7 `url` is not for `kind = "desktop"` | leave it out, or write `kind = "webhook"`
        12:7 this is not a web address | write one such as "https://example.org/x"
    "#]]
    .assert_eq(&errors(text));
}

#[test]
fn a_chat_without_what_it_needs_says_what_to_write_and_shows_no_secret() {
    let text = r#"[[agents]]
id = "ui"
command = ["agent"]
[[notify]]
kind = "slack"
token = "1:guess-me"
[[notify]]
kind = "telegram"
[[notify]]
kind = "telegram"
url = "https://me:guess-me@example.org?x"
token = "guess/me"
chat_id = "ada"
[[notify]]
kind = "telegram"
token = "1:guess-me"
chat_id = 1.5
[[notify]]
kind = "discord"
url = "guess-me"
contents = "yes"
[[notify]]
kind = "ntfy"
url = "https://ntfy.sh/topic"
contents = true
"#;
    let told = errors(text);
    assert!(!told.contains("guess"), "{told}");
    expect![[r#"
        4:1 `kind = "slack"` needs `url` | write `url = "https://…"`
        6:9 `token` is not for `kind = "slack"` | leave it out, or write `kind = "telegram"`
        7:1 `kind = "telegram"` needs `token` | write `token = "${TELEGRAM_TOKEN}"`
        7:1 `kind = "telegram"` needs `chat_id` | write `chat_id = "123456789"`
        11:7 this is not the address of a server | write one such as "https://api.telegram.org", without `?` and `#`
        12:9 this is not the token of a bot | write it as @BotFather gave it, such as "123456:ABC-DEF"
        13:11 this is not the id of a chat | write the number of the chat, such as "123456789", or a channel such as "@my_team"
        17:11 `chat_id` must be a string, not a float | write the number of the chat, such as "123456789", or a channel such as "@my_team"
        20:7 this is not a web address | write one such as "https://example.org/x"
        21:12 `contents` must be a boolean, not a string | write `true` or `false`, without quotes
        25:12 `contents` is not for `kind = "ntfy"` | leave it out, or write `kind = "slack"`
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_chat_is_named_by_a_number_or_as_a_channel_and_its_secrets_are_not_shown() {
    for (written, read) in [("-100123", "-100123"), ("\"42\"", "42"), ("\"@my_team\"", "@my_team")]
    {
        let text = format!(
            "[[notify]]\nkind = \"telegram\"\ntoken = \"1:KEY\"\nchat_id = {written}\n\
             [[notify]]\nkind = \"slack\"\nurl = \"https://hooks.slack.com/services/KEY\"\n\
             [[agents]]\nid = \"ui\"\ncommand = [\"a\"]\n"
        );
        let config = Bench::new().compile(&text).unwrap();
        let described: Vec<_> = config.notify.iter().map(Notify::describe).collect();
        let told = format!("telegram at api.telegram.org, chat {read}: pending, ");
        assert!(described[0].starts_with(&told), "{described:?}");
        assert!(described[1].starts_with("slack at hooks.slack.com: pending"), "{described:?}");
        assert!(!format!("{config:?}").contains("KEY"), "{config:?}");
    }
    for odd in ["\"\"", "\"-\"", "\"@\"", "\"@a b\"", "0x10", "\"1 2\""] {
        let text = format!("[[notify]]\nkind = \"telegram\"\ntoken = \"1:a\"\nchat_id = {odd}\n");
        assert!(errors(&text).contains("chat"), "{odd}: {}", errors(&text));
    }
}
