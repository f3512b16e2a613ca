//! Connects `[telemetry]` of the configuration with the room `telemetry`.

use crate::app::rooms::Wiring;
use crate::config::{self, Config};
use crate::home::environment::TRACE_VARIABLE;
use crate::telemetry::{self, AgentFacts, FoldSettings, Settings, Traceparent};

/// Makes spans from now on, if the configuration asks for them.
pub(super) fn start(config: &Config, wiring: &mut Wiring) {
    let Some(telemetry) = &config.telemetry else { return };
    let headers = telemetry.headers.iter();
    let settings = Settings {
        otlp: telemetry.otlp.clone(),
        headers: headers.map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect(),
        spans: FoldSettings {
            team: config.team.name.clone(),
            contents: telemetry.contents,
            agents: config.agents.iter().map(|agent| (agent.id.clone(), facts(agent))).collect(),
        },
        parent: inherited(),
    };
    let (context, sending) = telemetry::start(settings, wiring.bus.subscribe());
    wiring.tasks.spawn(sending);
    wiring.trace = Some(context);
}

fn facts(agent: &config::Agent) -> AgentFacts {
    let title = Some(agent.profile.title.clone()).filter(|title| !title.is_empty());
    AgentFacts { program: title, model: agent.model.clone() }
}

/// The span that this program was started for.
fn inherited() -> Option<Traceparent> {
    let text = std::env::var(TRACE_VARIABLE).ok().filter(|text| !text.is_empty())?;
    let parsed = Traceparent::parse(&text);
    if parsed.is_none() {
        tracing::warn!("{TRACE_VARIABLE} in the environment is malformed, and has no effect");
    }
    parsed
}
