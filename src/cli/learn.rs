//! `learn`: proposes zones from what agents used, and puts them into the configuration.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};

use super::Global;
use super::config_file::ConfigFile;
use super::history::{Since, event};
use super::journal::WhichJournal;
use super::output::{note, plain, print};
use crate::changes;
use crate::config::{Config, Enforce, Layered, Source};
use crate::home;
use crate::journal::{Filter, Store};
use crate::learn::{LeftOutFor, Openness, ProposedPattern};
use crate::learned_zones::{self, LearnedZone};
use crate::program::Failure;
use crate::team_file;

/// Tool calls and programs that a line names; more are counted.
const MOST_NAMED: usize = 3;

/// Propose zones from what agents used
///
/// Reads the team's journal, and proposes the smallest zone that covers the files that an agent used there:
/// a folder where most of it was used, else the single file. Files that were written are `allowed`, and
/// files that were read are `readable`. Each line says which tool calls and programs needed the pattern,
/// and how many files it opens that were not used. Nothing that is denied or a secret is proposed, and
/// nothing outside the workspace. `eisen-core up --observe` runs a team that nothing stops, so that the
/// journal has all of it. docs/learn.md has the rules.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team learn               propose a zone for each agent
  eisen-core team learn ui --since 2d
  eisen-core team learn ui --write    put it into eisen.toml; shows the difference
  eisen-core team learn --json | jq -r '.agents[].allowed[].pattern'

Exit codes: 0 done, 1 no such journal, or nothing in it that was used, 2 wrong usage or configuration.")]
pub(super) struct LearnArgs {
    /// Only this agent
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// Only what was used since then: `90s`, `10m`, `2h`, `3d`, a day or time in UTC such as
    /// 2026-11-24T09:30, or behind the event with this id
    #[arg(long, value_name = "TIME|EVENT")]
    since: Option<Since>,
    /// Put the patterns into the configuration; all else in it stays as it is
    #[arg(long)]
    write: bool,
    /// Print a JSON object, on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    which: WhichJournal,
}

impl LearnArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let written = self.file.find_if_there(global.cwd.clone());
        if self.write && written.is_none() {
            return Err(Failure::Usage(anyhow!(
                "there is no eisen.toml to write to: `eisen-core init` makes one"
            )));
        }
        let kept =
            || team_file::kept_config(&eisen_dir, &self.which.team(global, &eisen_dir).ok()?);
        let Some(file) = written.or_else(kept) else {
            return Err(Failure::Usage(anyhow!(
                "there is no eisen.toml here or above: name one by `-c`"
            )));
        };
        let Layered { source, config, .. } = team_file::read(&file, &eisen_dir)?;
        let store = self.which.open_settled(global).await?;
        let zones =
            learned_zones::learn(&config, &store, self.agent.as_deref(), &self.filter(&store)?)?;
        let (used, unused): (Vec<_>, Vec<_>) = zones.into_iter().partition(|it| it.uses > 0);
        if used.is_empty() {
            return Err(Failure::Run(anyhow!(
                "the journal has nothing that these agents used: `eisen-core up --observe` runs the team, and \
                 stops nobody"
            )));
        }
        if self.json {
            let agents: Vec<Value> = used.iter().map(json_of).collect();
            print(json!({ "agents": agents }))?;
        } else {
            let shown: Vec<String> = used.iter().map(shown).collect();
            print(shown.join("\n\n"))?;
        }
        for unused in unused {
            note(format_args!(
                "{}: the journal has nothing that it used",
                plain(unused.agent.as_str())
            ));
        }
        if self.write {
            write(&file, &source, &eisen_dir, &config, &used, self.json)
        } else {
            Ok(())
        }
    }

    fn filter(&self, store: &Store) -> Result<Filter, Failure> {
        let mut filter = Filter::default();
        match &self.since {
            Some(Since::Event(id)) => filter.after = Some(event(store, id)?.id),
            Some(Since::Time(at)) => filter.since = Some(*at),
            None => {}
        }
        Ok(filter)
    }
}

fn write(
    file: &Path,
    source: &Source,
    eisen_dir: &Path,
    config: &Config,
    zones: &[LearnedZone],
    is_json: bool,
) -> Result<(), Failure> {
    let (empty, zones): (Vec<_>, Vec<_>) = zones.iter().partition(|it| it.is_empty());
    let told = |zone: &LearnedZone| {
        format!("{}: nothing that it used counts, so its zone stays", plain(zone.agent.as_str()))
    };
    if zones.is_empty() {
        let told: Vec<String> = empty.into_iter().map(told).collect();
        return Err(Failure::Run(anyhow!("{}", told.join("; "))));
    }
    for zone in empty {
        note(format_args!("{}", told(zone)));
    }
    let rewritten =
        learned_zones::write_zones(file, source.text(), eisen_dir, &config.team.workspace, &zones)?;
    let shown = plain(&file.display().to_string());
    if rewritten.before == rewritten.after {
        note(format_args!("{shown} says so already"));
    } else {
        let (before, after) = (rewritten.before.as_bytes(), rewritten.after.as_bytes());
        if !is_json {
            let patch = changes::unified(file, Some(before), after);
            print(format_args!("\n{}", String::from_utf8_lossy(patch.bytes()).trim_end()))?;
        }
        note(format_args!("wrote {shown}; `eisen-core team reload` takes it in"));
    }
    for zone in zones {
        let agent = config.agents.iter().find(|agent| agent.id == zone.agent);
        if agent.is_some_and(|agent| agent.zone.enforce == Enforce::Observe) {
            note(format_args!(
                "{} stays observed: its zone binds once `enforce = \"observe\"` is taken out",
                plain(zone.agent.as_str())
            ));
        }
    }
    Ok(())
}

fn shown(learned: &LearnedZone) -> String {
    let LearnedZone { agent, zone, uses, turns, needs_commit, is_whole, is_cut } = learned;
    let uses = counted(*uses, "use");
    let mut lines =
        vec![format!("{}: from {uses} in {}", plain(agent.as_str()), counted(*turns, "turn"))];
    for (key, patterns) in [("allowed", &zone.allowed), ("readable", &zone.readable)] {
        if patterns.is_empty() {
            lines.push(format!("  {key:<9} nothing"));
        }
        let titles = std::iter::once(key).chain(std::iter::repeat(""));
        let texts: Vec<String> = patterns.iter().map(|it| plain(&it.pattern.to_string())).collect();
        let width = texts.iter().map(String::len).max().unwrap_or_default();
        for ((line, text), title) in patterns.iter().zip(&texts).zip(titles) {
            lines.push(format!("  {title:<9} {text:<width$}  {}", needed(line)));
        }
    }
    let left_out: Vec<String> =
        zone.left_out.iter().map(|(why, count)| format!("{count} {}", reason(*why))).collect();
    if !left_out.is_empty() {
        lines.push(format!("  left out  {}", left_out.join(", ")));
    }
    let (now, then) = (zone.now, zone.then);
    lines.push(format!(
        "  asks      {} in place of {}; {} denied unasked in place of {}",
        counted(then.questions, "question"),
        now.questions,
        then.passing,
        now.passing
    ));
    if *needs_commit {
        lines.push(
            "  note      it wrote in .git: `git = \"commit\"` in [zones] allows what commits need"
                .to_owned(),
        );
    }
    if !is_whole {
        let note = "  note      what its programs read may be missing: `eisen-core up --observe` counts all";
        lines.push(note.to_owned());
    }
    if *is_cut {
        let note = "  note      the workspace has more files than are looked at: each is proposed by itself";
        lines.push(note.to_owned());
    }
    lines.join("\n")
}

/// The tool calls and programs that needed a pattern, and the number of files that it opens.
fn needed(line: &ProposedPattern) -> String {
    let further = if line.further == 0 {
        String::new()
    } else {
        format!(", +{}", counted(line.further, "file"))
    };
    let list = |named: &[(String, usize)]| {
        let mut names: Vec<String> = named
            .iter()
            .take(MOST_NAMED)
            .map(|(name, count)| format!("{} ({count})", plain(name)))
            .collect();
        let more = named.len().saturating_sub(MOST_NAMED);
        names.extend((more > 0).then(|| format!("{more} more")));
        names.join(", ")
    };
    let (tools, programs) = (list(&line.tools), list(&line.programs));
    let tools = if tools.is_empty() { tools } else { format!("; {tools}") };
    let programs = if programs.is_empty() { programs } else { format!("; by {programs}") };
    format!("{} used{further}{tools}{programs}", line.used)
}

fn reason(why: LeftOutFor) -> &'static str {
    match why {
        LeftOutFor::Standing(Openness::Open) => "open",
        LeftOutFor::Standing(Openness::Shared) => "open to all",
        LeftOutFor::Standing(Openness::Denied) => "by `denied`",
        LeftOutFor::Standing(Openness::Listed) => "on the list of secrets",
        LeftOutFor::Standing(Openness::Git) => "in .git",
        LeftOutFor::Standing(Openness::Outside) => "outside the workspace",
        LeftOutFor::Standing(Openness::Own) => "of the team itself",
        LeftOutFor::Search => "only searched",
        LeftOutFor::Refused => "refused",
        LeftOutFor::Name => "with a name that no pattern can have",
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn json_of(learned: &LearnedZone) -> Value {
    let named = |named: &[(String, usize)]| {
        let one = |(name, paths): &(String, usize)| json!({ "name": name, "paths": paths });
        named.iter().map(one).collect::<Vec<_>>()
    };
    let line = |line: &ProposedPattern| {
        json!({
            "pattern": line.pattern.to_string(),
            "used": line.used,
            "further": line.further,
            "tools": named(&line.tools),
            "programs": named(&line.programs),
        })
    };
    let lines = |all: &[ProposedPattern]| all.iter().map(line).collect::<Vec<_>>();
    let zone = &learned.zone;
    let left_out: serde_json::Map<String, Value> =
        zone.left_out.iter().map(|(why, count)| (key(*why).to_owned(), json!(count))).collect();
    json!({
        "agent_id": learned.agent.as_str(),
        "uses": learned.uses,
        "turns": learned.turns,
        "allowed": lines(&zone.allowed),
        "readable": lines(&zone.readable),
        "left_out": left_out,
        "questions": { "now": zone.now.questions, "then": zone.then.questions },
        "unasked": { "now": zone.now.passing, "then": zone.then.passing },
        "needs_commit": learned.needs_commit,
        "is_whole": learned.is_whole,
        "is_cut": learned.is_cut,
    })
}

fn key(why: LeftOutFor) -> &'static str {
    match why {
        LeftOutFor::Standing(Openness::Open) => "open",
        LeftOutFor::Standing(Openness::Shared) => "shared",
        LeftOutFor::Standing(Openness::Denied) => "denied",
        LeftOutFor::Standing(Openness::Listed) => "secret",
        LeftOutFor::Standing(Openness::Git) => "git",
        LeftOutFor::Standing(Openness::Outside) => "outside",
        LeftOutFor::Standing(Openness::Own) => "own",
        LeftOutFor::Search => "searched",
        LeftOutFor::Refused => "refused",
        LeftOutFor::Name => "name",
    }
}
