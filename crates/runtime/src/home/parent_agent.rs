//! Where a command stands: in an agent of a team, or in none.

use anyhow::anyhow;

use crate::process;
use crate::program::Failure;
use crate::serve::client::{Environment, Target};

/// Returns the team whose agent started this process, with the agent's token; None: no agent did.
///
/// The processes above this one decide. Variables only can make it an agent's, which then has to prove
/// by its token whose: none makes it nobody's.
pub fn team_above() -> Result<Option<Target>, Failure> {
    let environment = Environment::of_process();
    decide(process::commands_above(), &environment)
}

fn decide(
    commands_above: Option<usize>,
    environment: &Environment,
) -> Result<Option<Target>, Failure> {
    if commands_above.unwrap_or(0) == 0 && environment.token.is_none() {
        return Ok(None);
    }
    let own = Target::of_agent(environment).map_err(|error| Failure::Usage(error.into()))?;
    own.map(Some).ok_or_else(|| {
        Failure::Usage(anyhow!(
            "an eisen-core runs this program, so a run would be below an agent of it, and EISEN_TOKEN and \
             EISEN_ADDRESS don't say which: leave the variables of the agent as they are"
        ))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn no_variable_makes_an_agents_process_nobodys() {
        let agent = Environment {
            team: Some("shop".to_owned()),
            port: Some("17320".to_owned()),
            address: Some("127.0.0.1:17320".to_owned()),
            token: Some("secret.ui".to_owned()),
            tool_token: None,
            here: Vec::new(),
        };
        let bare = Environment::default();
        for above in [Some(0), None] {
            assert!(decide(above, &bare).unwrap().is_none());
            // Nothing shows it, such as in a container; then the token does.
            assert_eq!(decide(above, &agent).unwrap().unwrap().team(), "shop");
        }
        assert_eq!(decide(Some(1), &agent).unwrap().unwrap().team(), "shop");
        let without = |change: fn(&mut Environment)| {
            let mut stripped = agent.clone();
            change(&mut stripped);
            decide(Some(1), &stripped)
        };
        for stripped in [
            decide(Some(1), &bare),
            without(|it| it.token = None),
            without(|it| (it.port, it.address) = (None, None)),
            without(|it| it.address = Some("nowhere".to_owned())),
        ] {
            assert!(matches!(stripped, Err(Failure::Usage(_))));
        }
    }
}
