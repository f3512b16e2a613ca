//! Chats of services that take notices for people, and their secrets, which are not shown.

use super::secret::SecretText;

/// A chat that gets notices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChatTarget {
    /// The service, and how it is reached.
    pub service: ChatService,
    /// Its messages say what a notice is about: paths, reasons, the words of agents.
    pub contents: bool,
}

/// The service of a chat, and how it is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChatService {
    /// The address of an incoming webhook: whoever knows it can post.
    Slack(SecretText),
    /// The address of a webhook: whoever knows it can post.
    Discord(SecretText),
    /// A chat to which a bot writes.
    Telegram {
        /// The address of a server of the Bot API, without a slash at its end.
        server: SecretText,
        /// The bot's token.
        token: SecretText,
        /// The chat's number, or the name of a channel.
        chat_id: String,
    },
}

impl ChatTarget {
    /// Names service, host and chat, without what is secret.
    pub fn describe(&self) -> String {
        match &self.service {
            ChatService::Slack(url) => format!("slack at {}", host(url)),
            ChatService::Discord(url) => format!("discord at {}", host(url)),
            ChatService::Telegram { server, chat_id, .. } => {
                format!("telegram at {}, chat {chat_id}", host(server))
            }
        }
    }
}

/// The host of an address; a name and a password before it are left out.
fn host(url: &SecretText) -> &str {
    let rest = url.reveal().split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_no_secret() {
        let secret = |text: &str| SecretText::new(text.to_owned());
        let of = |service| ChatTarget { service, contents: false };
        let slack = of(ChatService::Slack(secret("https://hooks.slack.com/services/T0/B0/KEY")));
        assert_eq!(slack.describe(), "slack at hooks.slack.com");
        let discord = of(ChatService::Discord(secret("https://me:KEY@discord.example?KEY#KEY")));
        assert_eq!(discord.describe(), "discord at discord.example");
        let telegram = of(ChatService::Telegram {
            server: secret("http://127.0.0.1:8081/KEY"),
            token: secret("1:KEY"),
            chat_id: "-100".to_owned(),
        });
        assert_eq!(telegram.describe(), "telegram at 127.0.0.1:8081, chat -100");
        for target in [slack, discord, telegram] {
            assert!(!format!("{target:?}").contains("KEY"), "{target:?}");
        }
    }
}
