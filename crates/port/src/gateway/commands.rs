//! The slash commands of the gateway: their names, what they answer, and how they are announced beside
//! those of a session's agent.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::actor::{ActorDone, GatewayActor};
use super::from_client::blocks;
use super::{GatewayTeam, message};
use crate::acp;
use crate::line::{self, lenient};
use crate::model::BlockedStatus;
use crate::wire::{
    Agent, AgentDetails, AgentRow, Blocked, DecisionParam, Empty, Exact, GrantScope, ListAgents,
    ListBlocked, ListBlockedParams, Method, ResolveBlocked, ResolveParams, TeamReport, TeamStatus,
};

/// Lines of an answer.
const MAX_LINES: usize = 100;

struct SlashCommand {
    name: &'static str,
    about: &'static str,
    /// The arguments that follow the name.
    hint: Option<&'static str>,
}

const COMMANDS: [SlashCommand; 6] = [
    SlashCommand { name: "agents", about: "Lists the agents of the team", hint: None },
    SlashCommand {
        name: "select",
        about: "Transfers this session to another agent",
        hint: Some("AGENT [--history]"),
    },
    SlashCommand { name: "team", about: "Shows what the team does", hint: None },
    SlashCommand {
        name: "blocked",
        about: "Lists the accesses that wait for a decision",
        hint: None,
    },
    SlashCommand {
        name: "allow",
        about: "Allows a blocked access",
        hint: Some("ID [once | session]"),
    },
    SlashCommand { name: "deny", about: "Denies a blocked access", hint: Some("ID [MESSAGE]") },
];

/// The name of a command of an agent.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CommandName {
    #[serde(deserialize_with = "lenient")]
    name: Option<String>,
}

/// The gateway's commands, and those of the agent with other names.
pub(super) fn all(of_agent: Option<&Value>) -> Vec<Value> {
    let own = COMMANDS.iter().map(|SlashCommand { name, about, hint }| {
        let input = hint.map(|hint| json!({ "hint": hint }));
        match input {
            Some(input) => json!({ "name": name, "description": about, "input": input }),
            None => json!({ "name": name, "description": about }),
        }
    });
    let of_agent = of_agent.and_then(Value::as_array).into_iter().flatten();
    let is_own = |other: &&Value| {
        let CommandName { name } = acp::read(other);
        COMMANDS.iter().any(|command| name.as_deref() == Some(command.name))
    };
    let others = of_agent.filter(|other| !is_own(other)).cloned();
    own.chain(others).collect()
}

/// The command that a prompt is, with what follows its name.
fn command_of(params: Option<&RawValue>) -> Option<(&'static str, String)> {
    #[derive(Deserialize)]
    struct Block {
        #[serde(rename = "type")]
        kind: String,
        text: Option<String>,
    }
    let (_, blocks) = blocks(params)?;
    let Block { kind, text } = line::read(blocks.first()?.get().as_bytes()).ok()?;
    let text = text.filter(|_| kind == "text")?;
    let command = text.strip_prefix('/')?;
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let name = COMMANDS.iter().find(|command| command.name == name)?.name;
    Some((name, rest.trim().to_owned()))
}

impl GatewayActor {
    /// Carries out a prompt that is a command of the gateway; false if it is none.
    pub(super) fn command(
        &mut self,
        client: u64,
        id: &RawValue,
        session: &str,
        params: Option<&RawValue>,
    ) -> bool {
        let Some((name, rest)) = command_of(params) else { return false };
        self.show_prompt(client, session, params);
        let words: Vec<&str> = rest.split_whitespace().collect();
        let text = match (name, &words[..]) {
            ("select", [agent]) => self.select(client, id, session, agent, false).err(),
            ("select", [agent, "--history"] | ["--history", agent]) => {
                self.select(client, id, session, agent, true).err()
            }
            ("agents" | "team" | "blocked", []) | ("allow" | "deny", [_, ..])
                if self.has_room().is_err() =>
            {
                Some("The gateway has too much to do: try again.".to_owned())
            }
            ("agents" | "team" | "blocked", []) | ("allow" | "deny", [_, ..]) => {
                let (team, rest) = (self.team.clone(), rest.clone());
                let (id, session) = (id.to_owned(), session.to_owned());
                self.count(client, 1);
                self.work.push(Box::pin(async move {
                    let said = answer(&*team, name, &rest).await;
                    let text = said.unwrap_or_else(|why| why);
                    ActorDone::Said { client, id, session, text }
                }));
                None
            }
            _ => {
                let hint = COMMANDS.iter().find(|command| command.name == name);
                let hint = hint.and_then(|command| command.hint).unwrap_or("");
                Some(format!("Usage: /{name} {hint}").trim_end().to_owned())
            }
        };
        if let Some(text) = text {
            self.say(session, &text);
            self.send_to_client(client, message::result(id, r#"{"stopReason":"end_turn"}"#));
        }
        true
    }
}

/// Calls a method; returns its result, or an error for the client.
async fn call<M: Method>(
    team: &dyn GatewayTeam,
    params: &M::Params,
) -> Result<M::Result<'static>, String>
where
    M::Result<'static>: DeserializeOwned,
{
    let answer = team.call(M::FACTS.name, json!(params)).await?;
    serde_json::from_value(answer).map_err(|error| error.to_string())
}

async fn answer(team: &dyn GatewayTeam, name: &str, rest: &str) -> Result<String, String> {
    let (id, more) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let more = more.trim();
    match name {
        "agents" => Ok(agents(&call::<ListAgents>(team, &Empty {}).await?)),
        "team" => Ok(status(&team.name(), &call::<TeamStatus>(team, &Empty {}).await?)),
        "blocked" => {
            let pending = ListBlockedParams { status: Some(Exact(BlockedStatus::Pending)) };
            Ok(blocked(&call::<ListBlocked>(team, &pending).await?))
        }
        "allow" => {
            let scope = match more {
                "" | "once" => GrantScope::Once,
                "session" => GrantScope::Session,
                _ => return Err("Usage: /allow ID [once | session]".to_owned()),
            };
            decide(team, id, DecisionParam::allow(Some(scope))).await
        }
        _ => {
            let message = Some(more.to_owned()).filter(|more| !more.is_empty());
            decide(team, id, DecisionParam::Deny { message }).await
        }
    }
}

async fn decide(
    team: &dyn GatewayTeam,
    id: &str,
    verdict: DecisionParam,
) -> Result<String, String> {
    let params = ResolveParams { id: id.to_owned().into(), version: None, verdict };
    let access = call::<ResolveBlocked>(team, &params).await?;
    let Blocked { id, action, path, status, session, .. } = access;
    Ok(format!("{id}: {action} `{path}` of `{}` is {status}.", session.agent_id))
}

/// A list of at most so many lines.
fn list(head: &str, lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().saturating_sub(MAX_LINES);
    let lines = lines.take(MAX_LINES).map(|line| format!("- {line}"));
    let more = (more > 0).then(|| format!("- and {more} more"));
    std::iter::once(head.to_owned()).chain(lines).chain(more).collect::<Vec<_>>().join("\n")
}

fn agents(agents: &[AgentDetails<'_>]) -> String {
    list(
        "Agents:",
        agents.iter().map(|AgentDetails { status, allowed, .. }| {
            let Agent { agent_id, state, reason, .. } = status;
            let reason = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            let zone = allowed.iter().map(|pattern| format!("`{pattern}`"));
            let zone = zone.collect::<Vec<_>>().join(", ");
            let zone = if zone.is_empty() { String::new() } else { format!(", zone {zone}") };
            format!("`{agent_id}`: {state}{reason}{zone}")
        }),
    )
}

fn status(name: &str, TeamReport { pending, agents }: &TeamReport<'_>) -> String {
    let head = match pending {
        0 => format!("Team `{name}`, no access waits for a decision:"),
        1 => format!("Team `{name}`, 1 access waits for a decision:"),
        pending => format!("Team `{name}`, {pending} accesses wait for a decision:"),
    };
    list(
        &head,
        agents.iter().map(|AgentRow { agent_id, state, running, used, size, .. }| {
            let works = if *running { ", works" } else { "" };
            let tokens = match (used, size) {
                (Some(used), Some(size)) if *size > 0 => format!(", {used} of {size} tokens"),
                _ => String::new(),
            };
            format!("`{agent_id}`: {state}{works}{tokens}")
        }),
    )
}

fn blocked(pending: &[Blocked<'_>]) -> String {
    if pending.is_empty() {
        return "No access waits for a decision.".to_owned();
    }
    let lines = pending.iter().map(|Blocked { id, session, action, path, .. }| {
        format!("{id}: `{}` wants to {action} `{path}`", session.agent_id)
    });
    list("These wait for `/allow ID` or `/deny ID`:", lines)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_prompt_is_a_command_by_its_first_word() {
        let of = |text: &str| {
            let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": text }] });
            let raw = serde_json::value::to_raw_value(&params).unwrap();
            command_of(Some(&raw))
        };
        assert_eq!(of("/select ui --history"), Some(("select", "ui --history".to_owned())));
        assert_eq!(of("/agents"), Some(("agents", String::new())));
        assert_eq!(of("/deny b1 not\nnow"), Some(("deny", "b1 not\nnow".to_owned())));
        for other in ["/agentsx", " /agents", "/compact", "agents", "/", ""] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn an_agents_command_of_the_same_name_gives_way() {
        let all = all(Some(&json!([{ "name": "agents" }, { "name": "compact" }, 7])));
        let names: Vec<_> = all.iter().map(|it| it["name"].as_str().unwrap_or("-")).collect();
        assert_eq!(names, ["agents", "select", "team", "blocked", "allow", "deny", "compact", "-"]);
    }
}
