//! The configuration of a team of one agent, as `eisen-core run` makes it.

use std::path::PathBuf;

use toml::{Table, Value};

use super::TierCandidate;
use super::runs::RunBounds;

/// What a run asks for.
#[derive(Clone, Default, Debug)]
pub struct OneAgent {
    pub team: String,
    pub workspace: PathBuf,
    /// The agent's id.
    pub id: String,
    pub profile: Option<String>,
    /// Empty: the profile's.
    pub command: Vec<String>,
    pub model: Option<String>,
    pub thinking: Option<String>,
    /// Patterns; empty: the whole workspace.
    pub allowed: Vec<String>,
    pub denied: Vec<String>,
    /// Keys of `[agents.budget]`.
    pub budget: Table,
    /// It begins with no session of its own.
    pub without_session: bool,
    /// `[profiles]` and `[prices]` of a configuration, as it has them.
    pub known: Table,
}

impl OneAgent {
    /// The text of its `eisen.toml`.
    pub fn text(&self) -> String {
        let allowed =
            if self.allowed.is_empty() { vec!["**".into()] } else { texts(&self.allowed) };
        let zone = [("allowed", allowed.into()), ("denied", texts(&self.denied).into())];
        // What ended once does not begin its work again.
        let restart = Table::from_iter([("policy".to_owned(), "never".into())]);
        let mut agent = Table::from_iter([
            ("id".to_owned(), Value::from(&*self.id)),
            ("zone".to_owned(), table(zone).into()),
            ("restart".to_owned(), restart.into()),
        ]);
        let mut set = |key: &str, value: Option<Value>| {
            agent.extend(value.map(|value| (key.to_owned(), value)));
        };
        set("session", self.without_session.then(|| false.into()));
        set("profile", self.profile.as_deref().map(text));
        set("command", (!self.command.is_empty()).then(|| texts(&self.command).into()));
        set("model", self.model.as_deref().map(text));
        set("thinking", self.thinking.as_deref().map(text));
        set("budget", (!self.budget.is_empty()).then(|| self.budget.clone().into()));
        let team = [
            ("name", text(&self.team)),
            ("workspace", text(&self.workspace.to_string_lossy())),
            ("listen", "127.0.0.1:0".into()),
            ("stop_grace_s", 2.into()),
            ("tools", false.into()),
            ("max_depth", self.levels()),
        ];
        let mut all = self.known.clone();
        all.insert("team".to_owned(), table(team).into());
        all.insert("graph".to_owned(), table([("enabled", false.into())]).into());
        all.insert("agents".to_owned(), vec![agent].into());
        all.to_string()
    }
}

/// The text of a run's configuration with another agent, one of a tier's candidates; None if it is no
/// such text.
pub fn for_candidate(text: &str, id: &str, candidate: &TierCandidate) -> Option<String> {
    let mut all: Table = text.parse().ok()?;
    let agent = all.get_mut("agents")?.as_array_mut()?.first_mut()?.as_table_mut()?;
    for key in ["command", "model", "thinking"] {
        agent.remove(key);
    }
    agent.insert("id".to_owned(), self::text(id));
    agent.insert("profile".to_owned(), self::text(&candidate.profile));
    let own = [("model", &candidate.model), ("thinking", &candidate.thinking)];
    for (key, value) in own {
        agent.extend(value.as_deref().map(|value| (key.to_owned(), self::text(value))));
    }
    Some(all.to_string())
}

impl OneAgent {
    /// Levels of runs below its own, as `[runs]` has them.
    fn levels(&self) -> Value {
        let runs = self.known.get("runs");
        let levels = runs.and_then(|runs| runs.get("max_depth")).cloned();
        levels.unwrap_or_else(|| i64::from(RunBounds::default().max_depth).into())
    }
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Table {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A string that has no references to variables.
fn text(text: &str) -> Value {
    text.replace('$', "$$").into()
}

fn texts(all: &[String]) -> Vec<Value> {
    all.iter().map(|one| text(one)).collect()
}
