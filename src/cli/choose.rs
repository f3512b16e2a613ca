//! `agent set`: shows what an agent offers to choose in a session, such as its mode and model, and chooses.

use clap::Args;

use super::Global;
use super::output::{plain, print};
use super::team::{Which, failed, read};
use crate::program::Failure;
use crate::serve::client::MethodAnswer;
use crate::wire::{
    ListSessionOptions, ListSessionOptionsParams, OfferedOption, SessionOptions, SetSessionOption,
    SetSessionOptionParams,
};

/// Show and set an agent's mode, model and other options
///
/// An agent says itself what it offers. What is set holds for one session: a new session, and a restart of the
/// agent, begin as configured.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core agent set ui             what it offers, and what is chosen
  eisen-core agent set ui mode plan
  eisen-core agent set ui model opus --session ui-s2

Exit codes: 0 done, 1 refused, not offered or no such team, 2 wrong usage.")]
pub(super) struct SetArgs {
    /// Id of the agent
    agent: String,
    /// The option, by its id: `mode`, `model`, or another one that the agent offers
    #[arg(requires = "value")]
    option: Option<String>,
    /// The value, by its id or name
    value: Option<String>,
    /// The session [default: the first session that the agent opened]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print all options as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

impl SetArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut team = self.which.connect(global).await?;
        let session_id = self.session.or_else(|| global.session_id.clone());
        let agent_id = self.agent.clone().into();
        let (Some(option), Some(value)) = (self.option, self.value) else {
            let params = ListSessionOptionsParams { agent_id, session_id };
            let answer = team.ask::<ListSessionOptions>(&params).await.map_err(failed)?;
            if self.json {
                return print(answer.json);
            }
            let SessionOptions { options, .. } = read(&answer)?;
            if options.is_empty() {
                return print(format_args!("{}: it offers nothing to choose", self.agent));
            }
            return options.iter().try_for_each(show);
        };
        let params = SetSessionOptionParams { agent_id, session_id, option: option.clone(), value };
        let answer: MethodAnswer<SetSessionOption> = team.ask(&params).await.map_err(failed)?;
        if self.json {
            return print(answer.json);
        }
        let SessionOptions { options, .. } = read(&answer)?;
        let is_it = |it: &&OfferedOption<'_>| it.id == option;
        let is_about = |it: &&OfferedOption<'_>| it.category.as_deref() == Some(&*option);
        let now = options.iter().find(is_it).or_else(|| options.iter().find(is_about));
        let current = now.and_then(|it| it.current.as_deref()).unwrap_or("as the agent has it");
        print(format_args!("{}: {option} is {}", self.agent, plain(current)))
    }
}

/// Prints an option, and its values below it.
fn show(option: &OfferedOption<'_>) -> Result<(), Failure> {
    let current = option.current.as_deref().unwrap_or("-");
    print(format_args!("{}: {}", plain(&option.id), plain(current)))?;
    for it in &option.values {
        let name = if it.name == it.value { "" } else { &*it.name };
        let what: Vec<_> = [name, it.description.as_deref().unwrap_or_default()]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        let what =
            if what.is_empty() { String::new() } else { format!("  {}", plain(&what.join(": "))) };
        print(format_args!("  {}{what}", plain(&it.value)))?;
    }
    Ok(())
}
