//! The keys of a configuration that are compared, and when a running team takes each.

use super::Takes;
use crate::config::{Agent, Config, RemoteProtocol};

/// Whether both have a field of `[conflicts]`, and differ in it.
macro_rules! conflicts_differ {
    ($field:ident) => {
        |a, b| matches!((&a.conflicts, &b.conflicts), (Some(a), Some(b)) if a.$field != b.$field)
    };
}

/// Whether both have a web server, the page's or the gateway's, and differ in it.
macro_rules! web_differs {
    ($($server:ident).+, $($field:tt)+) => {
        |a, b| {
            let both = (&a.$($server).+, &b.$($server).+);
            matches!(both, (Some(a), Some(b)) if a.$($field)+ != b.$($field)+)
        }
    };
}

macro_rules! tls_differs {
    ($($at:ident).+, $file:ident) => {
        web_differs!($($at).+, tls.as_ref().map(|tls| &tls.$file))
    };
}

/// Whether two configurations differ in a field of a table that may be left out.
macro_rules! table_differs {
    ($($table:ident).+, $($field:tt)+) => {
        |a, b| {
            let field = |config: &Config| config.$($table).+.clone().map(|it| it.$($field)+);
            field(a) != field(b)
        }
    };
}

/// Keys, with when they are taken, and whether two configurations differ in one.
pub(in crate::config) type Keys<T> = [(&'static str, Takes, fn(&T, &T) -> bool)];

/// Whether two configurations differ in a field.
macro_rules! differs {
    ($($field:ident).+) => { |a, b| a.$($field).+ != b.$($field).+ };
}

/// Whether two agents have worktrees, and differ in a key of them.
macro_rules! worktree_differs {
    ($($field:ident).+) => {
        |a, b| {
            let both = (&a.worktree, &b.worktree);
            matches!(both, (Some(a), Some(b)) if a.$($field).+ != b.$($field).+)
        }
    };
}

pub(in crate::config) const TEAM: &Keys<Config> = &[
    ("team.name", Takes::AtTeamStart, differs!(team.name)),
    ("team.workspace", Takes::AtTeamStart, differs!(team.workspace)),
    ("team.scratch", Takes::AtTeamStart, differs!(team.scratch)),
    ("team.listen", Takes::AtTeamStart, differs!(team.listen)),
    ("team.stop_grace_s", Takes::AtOnce, differs!(team.stop_grace)),
    ("team.max_running", Takes::AtOnce, differs!(team.max_running)),
    ("team.on_loop", Takes::AtTeamStart, differs!(team.on_loop)),
    ("team.max_memory_mb", Takes::AtOnce, differs!(team.max_memory_mb)),
    ("team.max_depth", Takes::AtOnce, differs!(team.max_depth)),
    ("team.max_agents", Takes::AtOnce, differs!(team.max_agents)),
    ("team.max_spawns", Takes::AtOnce, differs!(team.max_spawns)),
    ("team.tools", Takes::AtTeamStart, differs!(team.tools)),
    ("orchestrator.agent", Takes::AtTeamStart, |a, b| {
        let named =
            |it: &Config| (it.orchestrator.agent.clone(), it.orchestrator.elsewhere.clone());
        named(a) != named(b)
    }),
    ("orchestrator.on_block", Takes::AtOnce, differs!(orchestrator.on_block)),
    ("orchestrator.hold_timeout_s", Takes::AtOnce, differs!(orchestrator.hold_timeout)),
    ("orchestrator.may_add", Takes::AtOnce, differs!(orchestrator.may_add)),
    ("tracker.context_turns", Takes::AtTeamStart, differs!(tracker.context_turns)),
    ("tracker.compaction_threshold", Takes::AtTeamStart, |a, b| {
        a.tracker.compaction_threshold.to_bits() != b.tracker.compaction_threshold.to_bits()
    }),
    ("tracker.decay_rate", Takes::AtTeamStart, |a, b| {
        a.tracker.decay_rate.to_bits() != b.tracker.decay_rate.to_bits()
    }),
    ("tracker.tick_ms", Takes::AtTeamStart, differs!(tracker.tick)),
    ("tracker.idle_tick_ms", Takes::AtTeamStart, differs!(tracker.idle_tick)),
    ("port.max_connections", Takes::AtTeamStart, differs!(port.max_connections)),
    ("port.max_line_bytes", Takes::AtTeamStart, differs!(port.max_line_bytes)),
    ("port.backlog", Takes::AtTeamStart, differs!(port.backlog)),
    ("port.backlog_bytes", Takes::AtTeamStart, differs!(port.backlog_bytes)),
    ("port.write_deadline_s", Takes::AtTeamStart, differs!(port.write_deadline)),
    ("zones.build", Takes::AtOnce, differs!(zones.build)),
    ("zones.shared", Takes::AtOnce, differs!(zones.shared)),
    ("zones.denied", Takes::AtOnce, differs!(zones.denied)),
    ("zones.readable", Takes::AtOnce, differs!(zones.readable)),
    ("zones.base", Takes::AtOnce, differs!(zones.base)),
    ("zones.git", Takes::AtOnce, differs!(zones.git)),
    ("zones.secrets", Takes::AtOnce, differs!(zones.secrets)),
    ("notify", Takes::AtOnce, differs!(notify)),
    ("streams", Takes::AtTeamStart, differs!(streams)),
    ("hub.nats", Takes::AtTeamStart, table_differs!(shared.hub, access.url)),
    ("hub.host", Takes::AtTeamStart, table_differs!(shared.hub, host)),
    ("hub.token", Takes::AtTeamStart, table_differs!(shared.hub, access.token)),
    ("hub.credentials", Takes::AtTeamStart, table_differs!(shared.hub, access.credentials)),
    ("gateway.default", Takes::AtTeamStart, differs!(gateway.default)),
    // The presence of the key, too.
    ("gateway.listen", Takes::AtTeamStart, |a, b| {
        let listen = |it: &Config| it.gateway.served.as_ref().map(|it| it.listen);
        listen(a) != listen(b)
    }),
    ("gateway.origin", Takes::AtTeamStart, web_differs!(gateway.served, origin)),
    ("gateway.cert", Takes::AtTeamStart, tls_differs!(gateway.served, cert)),
    ("gateway.key", Takes::AtTeamStart, tls_differs!(gateway.served, key)),
    ("gateway.trusted_proxy", Takes::AtTeamStart, web_differs!(gateway.served, trusted_proxy)),
    // The presence of the table.
    ("web", Takes::AtTeamStart, |a, b| a.web.is_some() != b.web.is_some()),
    ("web.listen", Takes::AtTeamStart, web_differs!(web, listen)),
    ("web.origin", Takes::AtTeamStart, web_differs!(web, origin)),
    ("web.cert", Takes::AtTeamStart, tls_differs!(web, cert)),
    ("web.key", Takes::AtTeamStart, tls_differs!(web, key)),
    ("web.trusted_proxy", Takes::AtTeamStart, web_differs!(web, trusted_proxy)),
    ("routing", Takes::AtOnce, differs!(routing)),
    ("budget.tokens", Takes::AtOnce, differs!(budget.limits.tokens)),
    ("budget.cost", Takes::AtOnce, differs!(budget.limits.cost)),
    ("budget.currency", Takes::AtOnce, differs!(budget.currency)),
    ("budget.turns", Takes::AtOnce, differs!(budget.limits.turns)),
    ("budget.minutes", Takes::AtOnce, differs!(budget.limits.minutes)),
    ("budget.window_s", Takes::AtOnce, differs!(budget.window)),
    ("budget.warn_at", Takes::AtOnce, |a, b| {
        a.budget.warn_at.to_bits() != b.budget.warn_at.to_bits()
    }),
    ("budget.on_exceed", Takes::AtOnce, differs!(budget.on_exceed)),
    ("providers", Takes::AtTeamStart, differs!(shared.providers)),
    ("prices", Takes::AtTeamStart, |a, b| a.shared.prices != b.shared.prices),
    ("graph.enabled", Takes::AtTeamStart, differs!(graph)),
    // The presence of the table.
    ("conflicts", Takes::AtTeamStart, |a, b| a.conflicts.is_some() != b.conflicts.is_some()),
    ("conflicts.strategy", Takes::AtOnce, conflicts_differ!(strategy)),
    ("conflicts.lock_s", Takes::AtOnce, conflicts_differ!(lock)),
    ("journal.enabled", Takes::AtTeamStart, differs!(journal.enabled)),
    ("journal.path", Takes::AtTeamStart, differs!(journal.path)),
    ("journal.keep_days", Takes::AtTeamStart, differs!(journal.keep_days)),
    ("journal.max_mb", Takes::AtTeamStart, differs!(journal.max_mb)),
    ("journal.on_full", Takes::AtTeamStart, differs!(journal.on_full)),
    ("journal.content", Takes::AtTeamStart, differs!(journal.content)),
    ("journal.outside", Takes::AtTeamStart, differs!(journal.outside)),
    ("telemetry.otlp", Takes::AtTeamStart, table_differs!(telemetry, otlp)),
    ("telemetry.contents", Takes::AtTeamStart, table_differs!(telemetry, contents)),
    ("telemetry.headers", Takes::AtTeamStart, table_differs!(telemetry, headers)),
];

pub(super) const TERMINALS: &str = "zone.terminals";

/// All keys except [`TERMINALS`].
pub(in crate::config) const AGENT: &Keys<Agent> = &[
    ("parent", Takes::AtAgentStart, differs!(parent)),
    ("owner", Takes::AtOnce, differs!(owner)),
    ("protocol", Takes::AtAgentStart, differs!(plugin)),
    ("command", Takes::AtAgentStart, |a, b| {
        a.remote.is_none() && b.remote.is_none() && a.command != b.command
    }),
    ("url", Takes::AtAgentStart, |a, b| {
        a.address(RemoteProtocol::Acp) != b.address(RemoteProtocol::Acp)
    }),
    ("base_url", Takes::AtAgentStart, |a, b| {
        a.address(RemoteProtocol::OpenCode) != b.address(RemoteProtocol::OpenCode)
    }),
    ("headers", Takes::AtAgentStart, |a, b| {
        a.remote.as_ref().map(|it| &it.headers) != b.remote.as_ref().map(|it| &it.headers)
    }),
    // Only a difference that command and environment do not show.
    ("profile", Takes::AtAgentStart, |a, b| {
        a.command == b.command && a.env == b.env && a.profile != b.profile
    }),
    ("cwd", Takes::AtAgentStart, differs!(cwd)),
    ("worktree.enabled", Takes::AtTeamStart, |a, b| a.worktree.is_some() != b.worktree.is_some()),
    ("worktree.branch", Takes::AtTeamStart, worktree_differs!(branch)),
    ("worktree.base", Takes::AtTeamStart, worktree_differs!(settings.base)),
    ("worktree.path", Takes::AtTeamStart, worktree_differs!(settings.path)),
    ("worktree.setup", Takes::AtTeamStart, worktree_differs!(settings.setup)),
    ("worktree.copy", Takes::AtTeamStart, worktree_differs!(settings.copy)),
    ("worktree.link", Takes::AtTeamStart, worktree_differs!(settings.link)),
    ("worktree.sparse", Takes::AtTeamStart, worktree_differs!(settings.sparse)),
    ("env", Takes::AtAgentStart, differs!(env)),
    // Only matters at the team's next start.
    ("autostart", Takes::AtOnce, differs!(autostart)),
    ("session", Takes::AtAgentStart, differs!(session)),
    ("prompt", Takes::AtAgentStart, differs!(prompt)),
    ("model", Takes::AtAgentStart, differs!(model)),
    ("provider", Takes::AtAgentStart, differs!(provider)),
    ("tier", Takes::AtAgentStart, differs!(tier)),
    ("thinking", Takes::AtAgentStart, differs!(thinking)),
    ("mode", Takes::AtAgentStart, differs!(mode)),
    ("auth_method", Takes::AtAgentStart, differs!(auth_method)),
    ("mcp_servers", Takes::AtAgentStart, differs!(mcp_servers)),
    ("tools", Takes::AtAgentStart, differs!(tools)),
    ("permissions", Takes::AtOnce, differs!(permissions)),
    ("unattended", Takes::AtAgentStart, differs!(unattended)),
    ("on_violation", Takes::AtOnce, differs!(on_violation)),
    ("on_loop", Takes::AtAgentStart, differs!(on_loop)),
    ("on_block", Takes::AtOnce, differs!(on_block)),
    // Only matters at the agent's next start; a running one waits for nothing.
    ("depends_on", Takes::AtOnce, differs!(depends_on)),
    ("initialize_timeout_s", Takes::AtAgentStart, differs!(initialize_timeout)),
    ("stall_after_s", Takes::AtAgentStart, differs!(stall_after)),
    // The presence of the table: without it the agent owns nothing.
    ("zone", Takes::AtOnce, differs!(zone.own)),
    ("zone.allowed", Takes::AtOnce, differs!(zone.spec.allowed)),
    ("zone.denied", Takes::AtOnce, differs!(zone.denied)),
    ("zone.readable", Takes::AtOnce, differs!(zone.readable)),
    ("zone.enforce", Takes::AtAgentStart, differs!(zone.enforce)),
    ("zone.confine", Takes::AtAgentStart, differs!(zone.confine)),
    // The doorbell uses the current zone; the wall stays as it was built.
    ("zone.sockets", Takes::AtOnce, differs!(zone.sockets)),
    ("zone.observe_files", Takes::AtAgentStart, differs!(zone.observe_files)),
    ("restart.policy", Takes::AtOnce, differs!(restart.policy)),
    ("restart.max_restarts", Takes::AtOnce, differs!(restart.max_restarts)),
    ("restart.within_s", Takes::AtOnce, differs!(restart.within)),
    ("restart.backoff_ms", Takes::AtOnce, differs!(restart.backoff)),
    ("limits.memory_mb", Takes::AtAgentStart, differs!(memory_mb)),
    ("limits.processes", Takes::AtAgentStart, differs!(processes)),
    ("budget.tokens", Takes::AtOnce, differs!(budget.limits.tokens)),
    ("budget.cost", Takes::AtOnce, differs!(budget.limits.cost)),
    ("budget.currency", Takes::AtOnce, differs!(budget.currency)),
    ("budget.turns", Takes::AtOnce, differs!(budget.limits.turns)),
    ("budget.minutes", Takes::AtOnce, differs!(budget.limits.minutes)),
    ("budget.window_s", Takes::AtOnce, differs!(budget.window)),
    ("budget.warn_at", Takes::AtOnce, |a, b| {
        a.budget.warn_at.to_bits() != b.budget.warn_at.to_bits()
    }),
    ("budget.on_exceed", Takes::AtOnce, differs!(budget.on_exceed)),
];

/// Every key that is compared, as in the file's tables.
#[cfg(test)]
pub(in crate::config) fn keys() -> impl Iterator<Item = String> {
    let of_agents = AGENT.iter().map(|(key, ..)| *key).filter(|key| *key != "zone");
    let of_agents = of_agents.chain([TERMINALS]).map(|key| format!("agents.{key}"));
    let of_team =
        TEAM.iter().map(|(key, ..)| *key).filter(|key| !["conflicts", "web"].contains(key));
    of_team.map(str::to_owned).chain(of_agents)
}
