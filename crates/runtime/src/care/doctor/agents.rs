//! The agents of known profiles that are installed, with their versions, and whether they are logged
//! in.

use futures_util::future::join_all;

use crate::care::doctor::Finding;
use crate::care::doctor::version::{NoVersion, Probe};
use crate::config::installed::{Installed, Login, installed, known_agents, without_adapter};

/// Looks up a variable.
type Variable = dyn Fn(&str) -> Option<String>;

/// Where agents are looked for, and the variables that log them in.
pub(super) struct Environment {
    /// A PATH.
    pub(super) path: String,
    pub(super) variable: Box<Variable>,
}

impl Environment {
    pub(super) fn of_process() -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        Self { path, variable: Box::new(|name| std::env::var(name).ok()) }
    }
}

pub(super) async fn agents(environment: &Environment, probe: &Probe) -> Vec<Finding> {
    let installed = installed(&environment.path, &environment.variable);
    let asked = installed.iter().map(|agent| probe.version(&agent.program, agent.env()));
    let versions = join_all(asked).await;
    let mut found = Vec::new();
    for (agent, version) in installed.iter().zip(versions) {
        found.push(program(agent, version));
        found.push(login(agent));
    }
    for known in without_adapter(&environment.path) {
        let message =
            format!("{} is installed, but not its ACP adapter, {}", known.title, known.programs);
        found.push(
            Finding::warning(format!("agent/{}", known.name), message).mended_by(known.install),
        );
    }
    if installed.is_empty() {
        found.push(nobody());
    }
    found
}

fn nobody() -> Finding {
    let known = known_agents();
    let programs: Vec<&str> = known.iter().map(|known| known.programs.as_str()).collect();
    let message = format!("no agent was found on PATH; looked for {}", programs.join(", "));
    Finding::warning("agents", message)
        .mended_by("install one: docs/profiles.md says how; or configure one by its `command`")
}

fn program(agent: &Installed, version: Result<String, NoVersion>) -> Finding {
    let check = format!("agent/{}", agent.name);
    let (title, place) = (agent.title, agent.program.display());
    let (what, is_broken) = match version {
        Ok(version) => return Finding::ok(check, format!("{title} {version}, {place}")),
        Err(NoVersion::Unnamed(why)) => (why, false),
        Err(NoVersion::Broken(why)) => (why, true),
    };
    let finding =
        Finding::warning(check, format!("{title}, {place}: its version is not known: {what}"));
    match agent.install {
        install if install.starts_with("https://") => finding.mended_by(format!("see {install}")),
        install if is_broken => finding.mended_by(install),
        _ => finding.mended_by(format!("see what `{place} --version` does in a terminal")),
    }
}

fn login(agent: &Installed) -> Finding {
    let check = format!("login/{}", agent.name);
    match &agent.login {
        Login::Variable(name) => Finding::ok(check, format!("logged in: ${name} is set")),
        Login::File(file) => Finding::ok(check, format!("logged in: {} is there", file.display())),
        Login::Provider(name) => Finding::ok(check, format!("led to the provider {name}")),
        Login::Unknown => Finding::ok(check, "unknown: nothing says whether its user is logged in"),
        Login::NotFound(places) => {
            let message = format!("probably not logged in: there is no {}", places.join(", no "));
            let finding = Finding::warning(check, message);
            if agent.login_command.is_empty() {
                return finding;
            }
            finding.mended_by(agent.login_command)
        }
    }
}
