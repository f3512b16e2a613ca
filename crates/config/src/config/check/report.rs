//! The report as text.

use std::fmt::Write as _;

use super::enforcement::{Holding, Tier};
use super::survey::{Claim, Survey};
use super::{counted, found, hints, profile_notes, provider_notes, shown};
use crate::config::errors::printable;
use crate::config::{
    Agent, Config, Confine, Isolation, OnBlock, Plugin, Restart, RestartPolicy, profiles,
};
use crate::model::AgentId;
use crate::zone::GitAccess;

/// The explanation of the kernel tier for readers of a report.
const KERNEL: &str = "\
At the kernel tier the *wall* (path rules) holds every process of the agent, and the *doorbell*
judges each name before it is accessed.
  exact: the wall grants just the pattern.
  narrowed: the wall grants less; the doorbell does the rest.
  by the doorbell: later files are held by it alone.
";
const PROTOCOL: &str = "\
At the protocol tier a zone binds what an agent asks its client for: `fs/*`, `terminal/create`,
permissions. It can't hold what the agent's own process does: an agent with a shell can read past
its zone, and could read the control token and approve its own accesses. What is seen of that is
reported after the fact.
";

pub(super) fn render(
    config: &Config,
    limits_held: &str,
    survey: &Survey,
    holding: &[Holding],
    warnings: &[String],
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, config, limits_held, survey, holding, warnings);
    text
}

/// Appends a list to a report.
pub(super) fn add_list(text: &mut String, title: &str, items: &[String]) {
    // Writing to a string cannot fail.
    let _ = write_list(text, title, items);
}

fn write(
    text: &mut String,
    config: &Config,
    limits_held: &str,
    survey: &Survey,
    holding: &[Holding],
    warnings: &[String],
) -> std::fmt::Result {
    let team = &config.team;
    writeln!(text, "team {}", team.name)?;
    let scratch = if team.scratch { ", on a temporary copy" } else { "" };
    writeln!(text, "  workspace     {}{scratch}", team.workspace.display())?;
    writeln!(text, "  port          {}", team.listen)?;
    let on_block = match config.orchestrator.on_block {
        OnBlock::Deny => "denied at once".to_owned(),
        OnBlock::Hold => match config.orchestrator.holds_for() {
            Some(most) => format!("held up to {} s", most.as_secs()),
            None => "held for as long as the decision takes".to_owned(),
        },
    };
    let lead = match &config.orchestrator.agent {
        Some(agent) => agent.to_string(),
        None => "whoever has the control token".to_owned(),
    };
    writeln!(text, "  orchestrator  {lead}; a blocked access is {on_block}")?;
    for (agent, holding) in config.agents.iter().zip(holding) {
        writeln!(text)?;
        write_agent(text, config, agent, holding)?;
        if let Some(limits) = limits(agent) {
            writeln!(text, "  limits        {limits}; held {limits_held}")?;
        }
    }
    write_files(text, config, survey)?;
    write_tiers(text, config, holding)?;
    write_list(text, "warnings", warnings)
}

fn write_tiers(text: &mut String, config: &Config, holding: &[Holding]) -> std::fmt::Result {
    let binds = |tier| holding.iter().any(|holding| holding.tier == tier);
    if !holding.is_empty() {
        writeln!(text, "\ntiers")?;
    }
    for (tier, words) in [(Tier::Protocol, PROTOCOL), (Tier::Kernel, KERNEL)] {
        if binds(tier) {
            words.lines().try_for_each(|line| writeln!(text, "  {line}"))?;
        }
    }
    for (agent, holding) in config.agents.iter().zip(holding) {
        for (at, line) in holding.patterns.iter().enumerate() {
            let name = if at == 0 { agent.id.as_str() } else { "" };
            writeln!(text, "  {name:<12}  {line}")?;
        }
    }
    Ok(())
}

fn write_agent(
    text: &mut String,
    config: &Config,
    agent: &Agent,
    holding: &Holding,
) -> std::fmt::Result {
    let spec = &agent.zone.spec;
    let workspace = &config.team.workspace;
    writeln!(text, "agent {}", agent.id)?;
    writeln!(text, "  command       {}", command(agent))?;
    if let Some(Plugin { name, path, isolation, .. }) = &agent.plugin {
        let place = match isolation {
            Isolation::InProcess => ", unconfined in this process",
            Isolation::Process => "",
        };
        writeln!(text, "  protocol      {name}, by {}{place}", shown(path, workspace))?;
    }
    write_profile(text, config, agent)?;
    writeln!(text, "  cwd           {}", shown(&agent.cwd, workspace))?;
    if let Some(own) = &agent.worktree {
        writeln!(text, "  worktree      branch {}", own.branch)?;
    }
    match agent.on_block {
        Some(OnBlock::Deny) => writeln!(text, "  on_block      denied at once")?,
        Some(OnBlock::Hold) => writeln!(text, "  on_block      held")?,
        None => {}
    }
    if !agent.depends_on.is_empty() {
        let others: Vec<&str> = agent.depends_on.iter().map(AgentId::as_str).collect();
        writeln!(text, "  starts after  {}", others.join(", "))?;
    }
    let base = profiles::base_patterns();
    let (built_in, readable): (Vec<&String>, Vec<&String>) =
        spec.readable.iter().partition(|pattern| base.contains(&pattern.as_str()));
    let mut read: Vec<String> = readable.into_iter().cloned().collect();
    if !built_in.is_empty() {
        read.push(format!("and {} built-in patterns (`base`)", built_in.len()));
    }
    let asked = Some(("asked for", &spec.asked)).filter(|(_, asked)| !asked.is_empty());
    let lists = [("allowed", &spec.allowed), ("shared", &spec.shared), ("denied", &spec.denied)];
    for (name, patterns) in lists.into_iter().chain(asked).chain([("readable", &read)]) {
        let patterns = if patterns.is_empty() { "nothing".to_owned() } else { patterns.join(", ") };
        writeln!(text, "  {name:<12}  {patterns}")?;
    }
    let git = match spec.git {
        GitAccess::Read if agent.worktree.is_some() => "read, and commit to its branch",
        GitAccess::None => "not even read",
        GitAccess::Read => "read",
        GitAccess::Commit => "read and commit",
    };
    writeln!(text, "  git folder    {git}")?;
    let terminals = if spec.terminals { "offered" } else { "refused" };
    writeln!(text, "  terminals     {terminals}")?;
    writeln!(text, "  tier          {}", holding.said)?;
    if holding.tier == Tier::Kernel {
        write_confinement(text, agent)?;
    }
    writeln!(text, "  restart       {}", restart(&agent.restart))
}

fn write_profile(text: &mut String, config: &Config, agent: &Agent) -> std::fmt::Result {
    let profile = &agent.profile;
    if !profile.title.is_empty() {
        let unattended = if agent.unattended { ", unattended" } else { "" };
        writeln!(text, "  profile       {}{unattended}", profile.title)?;
    }
    let kept = config.shared.key_variables();
    let login = profile_notes::login(agent, &kept).filter(|_| agent.provider.name().is_none());
    if let Some(login) = login {
        writeln!(text, "  login         {login}")?;
    }
    if let Some(provider) = provider_notes::provider(config, agent) {
        writeln!(text, "  provider      {provider}")?;
    }
    if !profile.compact.is_empty() {
        writeln!(text, "  compress      by the prompt `{}`", profile.compact)?;
    }
    Ok(())
}

fn write_confinement(text: &mut String, agent: &Agent) -> std::fmt::Result {
    let outside = match agent.zone.confine {
        Confine::Workspace => "as usual for the user",
        Confine::Strict => "only what the zone, programs and the profile need",
    };
    writeln!(text, "  outside       {outside}")?;
    if !agent.zone.sockets.is_empty() {
        writeln!(text, "  sockets       {}", agent.zone.sockets.join(", "))?;
    }
    Ok(())
}

fn write_files(text: &mut String, config: &Config, survey: &Survey) -> std::fmt::Result {
    let cut = if survey.cut { " at least; the walk ended there" } else { "" };
    writeln!(text, "\nfiles ({}{cut})", survey.files)?;
    for (agent, claims) in config.agents.iter().zip(&survey.claims) {
        if agent.zone.own {
            writeln!(text, "  {:<12}  {}", agent.id.as_str(), claims.share)?;
        } else {
            writeln!(text, "  {:<12}  owns nothing, may write everything", agent.id.as_str())?;
        }
    }
    writeln!(text, "  {:<12}  {}", "nobody", survey.nobody)?;
    for shared in survey.shared.iter().flat_map(|shared| &shared.used) {
        writeln!(
            text,
            "  {:<12}  {} by `{}`",
            "shared",
            counted(shared.files, "file"),
            shared.pattern
        )?;
    }
    if survey.unreadable > 0 {
        writeln!(text, "  {:<12}  {}", "unreadable", counted(survey.unreadable, "entry"))?;
    }
    let ids = |claim: Claim| {
        let by = survey.pattern(claim).map(|pattern| format!(" by `{pattern}`"));
        format!("{}{}", config.agents[claim.agent].id, by.unwrap_or_default())
    };
    let mut overlaps: Vec<String> = survey
        .overlaps
        .iter()
        .map(|(overlap, share)| {
            format!("{} and {}: {share}", ids(overlap.first), ids(overlap.second))
        })
        .collect();
    if survey.further_overlaps > 0 {
        overlaps.push(format!("… and more, of {}", counted(survey.further_overlaps, "file")));
    }
    write_list(text, "overlaps: both may write", &overlaps)
}

fn write_list(text: &mut String, title: &str, items: &[String]) -> std::fmt::Result {
    if !items.is_empty() {
        writeln!(text, "\n{title}")?;
    }
    items.iter().try_for_each(|item| writeln!(text, "  {item}"))
}

fn command(agent: &Agent) -> String {
    let Some((program, args)) = agent.command.split_first() else { return String::new() };
    let this = std::env::current_exe().is_ok_and(|this| this.to_str() == Some(program));
    let (program, place) = if this {
        ("eisen-core", "this program".to_owned())
    } else {
        let found = found(program, agent);
        let place = found.map_or_else(
            || missing(program, agent).to_owned(),
            |found| found.display().to_string(),
        );
        (program.as_str(), place)
    };
    let words: Vec<&str> =
        std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
    let place = if place == program { String::new() } else { format!("  ({place})") };
    printable(&format!("{}{place}", words.join(" ")), usize::MAX)
}

/// Says why a program is not found.
fn missing(program: &str, agent: &Agent) -> &'static str {
    match hints::without_x(program, agent) {
        Some(file) if file.is_dir() => "a folder",
        Some(_) => "not executable",
        None => "not found",
    }
}

fn limits(agent: &Agent) -> Option<String> {
    let memory = agent.memory_mb.map(|mb| format!("{mb} MB of memory"));
    let processes = agent.processes.map(|count| counted(count, "process"));
    let limits: Vec<String> = memory.into_iter().chain(processes).collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

fn restart(restart: &Restart) -> String {
    let when = match restart.policy {
        RestartPolicy::Never => return "never".to_owned(),
        RestartPolicy::OnFailure => "on failure",
        RestartPolicy::Always => "always",
    };
    let [first, longest] = restart.backoff.map(|wait| wait.as_secs_f64());
    let (most, within) = (restart.max_restarts, restart.within.as_secs());
    if most == u32::MAX {
        return format!("{when}, without a limit, after {first} s to {longest} s");
    }
    format!("{when}, up to {most} times within {within} s, after {first} s to {longest} s")
}
