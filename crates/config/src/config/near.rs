//! Suggestions for mistaken names: the nearest known one, and advice for keys that are often
//! mistaken.

use strsim::damerau_levenshtein;

/// Longer names are no typing mistakes, and a comparison would be slow.
const MAX_LENGTH: usize = 64;

/// Returns the known name nearest to `name` if it is near enough: few letters apart, or one within
/// the other.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > MAX_LENGTH {
        return None;
    }
    let name = name.to_lowercase().replace('-', "_");
    let distance =
        |known: &&str| damerau_levenshtein(&name, &known.to_lowercase().replace('-', "_"));
    let closest = known.iter().copied().min_by_key(distance)?;
    let tolerated = name.chars().count().max(closest.chars().count()) / 3;
    if distance(&closest) <= tolerated.max(1) && name.len() > 1 {
        return Some(closest);
    }
    let within = |known: &&str| {
        name.len() >= 4 && known.contains(&name) || known.len() >= 4 && name.contains(*known)
    };
    known.iter().copied().filter(within).min_by_key(distance)
}

/// Returns advice for an unknown key of a table that is often mistaken.
pub(super) fn suggested_key(table: &str, key: &str) -> Option<&'static str> {
    Some(match (table, key) {
        ("", "agent") => "agents are `[[agents]]`, one each, with two brackets",
        ("", "plugin") => "plugins are `[[plugins]]`, one each, with two brackets",
        ("", "zone") => {
            "an agent's zone is `[agents.zone]`, below its `[[agents]]`; what holds for all is `[zones]`"
        }
        ("", "profile") => "profiles are `[profiles.NAME]`",
        ("", "template") => "templates are `[templates.NAME]`",
        ("", "tier") => "tiers are `[[tiers]]`, one each, with two brackets",
        ("", "slot") => "slots are `[slots]`, such as `codex = 3` below it",
        ("", "run") => "bounds of runs are `[runs]`",
        ("", "mcp_servers") => "they are an agent's: write it below its `[[agents]]`",
        ("port", "port" | "listen" | "host" | "address") | ("team", "port" | "host") => {
            "the port is `listen` in `[team]`, such as `listen = \"127.0.0.1:17320\"`"
        }
        ("team", "agents") => "agents are `[[agents]]`, one each, at the top level",
        ("providers.NAME", "base_url" | "api_base" | "endpoint" | "address" | "host") => {
            "the address is `url`"
        }
        ("providers.NAME", "api_key" | "api_key_env" | "key_env" | "env" | "token" | "secret") => {
            "the key is `key = \"${VARIABLE}\"`, a variable of your environment, or comes by `key_command`"
        }
        ("providers.NAME", "command" | "api_key_command" | "key_cmd") => {
            "the command that prints the key is `key_command`"
        }
        ("providers.NAME", "type" | "provider" | "api" | "name") => "what it speaks is its `kind`",
        ("providers.NAME", "model") => {
            "other names of models are `models`; an agent's model is `model` below its `[[agents]]`"
        }
        ("agents", "name") => "an agent's name is its `id`",
        ("agents", "args") => {
            "arguments are part of the command: `command = [\"PROGRAM\", \"ARG\"]`"
        }
        ("agents", "cmd" | "program") => "did you mean `command`?",
        ("agents", "agent" | "type") => {
            "a known agent is named by `profile`, such as `profile = \"opencode\"`"
        }
        ("agents", "workspace") => {
            "the workspace is all agents': `[team] workspace`; an agent has a `cwd` in it"
        }
        ("agents", "shared") => "it belongs in `[zones]`",
        ("agents", "zones") => {
            "an agent's zone is `[agents.zone]`; `[zones]`, for all agents, is a table at the top level"
        }
        ("agents", "memory") => "write `memory_mb` in `[agents.limits]`",
        ("agents.zone", "paths" | "files" | "write" | "writable") => {
            "what the agent may write is `allowed`"
        }
        ("agents.zone", "shared") => "it belongs in `[zones]`: what is shared is everybody's",
        ("zones", "allowed") => {
            "what an agent owns is `allowed` in its `[agents.zone]`; what all may write is `shared`"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        let known =
            ["name", "workspace", "listen", "stop_grace_s", "max_running", "hold_timeout_s"];
        for (name, wanted) in [
            ("nmae", Some("name")),
            ("Name", Some("name")),
            ("names", Some("name")),
            ("workspce", Some("workspace")),
            ("stop-grace-s", Some("stop_grace_s")),
            ("timeout", Some("hold_timeout_s")),
            ("max_runing", Some("max_running")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), wanted, "{name}");
        }
        assert_eq!(nearest(&"n".repeat(100_000), &known), None);
        assert_eq!(nearest("name", &[]), None);
    }
}
