//! Valid settings that probably do not have the intended effect. Found without a walk, so that `up`
//! shows them too.

use std::path::{Path, PathBuf};

use super::{found, provider_notes};
use crate::config::launch::{installed_without_adapter, is_program};
use crate::config::{Agent, Config, git_hooks};
use crate::model::fold;
use crate::zone::Zone;

/// Agents whose zones are compared in pairs.
const MOST_COMPARED: usize = 64;

/// Returns a sentence for each setting to review.
pub fn hints(config: &Config, eisen_dir: &Path) -> Vec<String> {
    let mut hints = of_team(config, eisen_dir);
    for list in lists(config) {
        for pattern in list.patterns {
            let hint = pattern_hint(pattern, &config.team.workspace);
            hints.extend(hint.map(|hint| format!("{}: `{pattern}` {hint}", list.place)));
        }
    }
    for agent in &config.agents {
        hints.extend(of_command(agent));
    }
    hints.extend(provider_notes::hints(config));
    hints.extend(overlaps(config));
    hints.extend(git_hooks::hints(config));
    hints
}

fn of_team(config: &Config, eisen_dir: &Path) -> Vec<String> {
    let workspace = &config.team.workspace;
    let mut hints = Vec::new();
    let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    if workspace.parent().is_none() {
        hints.push(
            "the workspace is `/`, every file of this machine: name the folder of the code in \
             `[team] workspace`"
                .to_owned(),
        );
    } else if home.as_ref() == Some(workspace) {
        hints.push(
            "the workspace is your whole home folder: name the folder of the code in `[team] workspace`"
                .to_owned(),
        );
    }
    let listen = config.team.listen;
    if !listen.ip().to_canonical().is_loopback() {
        hints.push(format!(
            "the port listens on {listen}, for other machines too: who has the token steers the team, \
             and it crosses the network unencrypted; \"127.0.0.1:{}\" and a tunnel (`ssh -L`) are safer",
            listen.port()
        ));
    }
    let eisen_dir = eisen_dir.canonicalize().unwrap_or_else(|_| fold(eisen_dir));
    if eisen_dir.starts_with(workspace) {
        hints.push(format!(
            "EISEN_DIR, {}, lies in the workspace: it holds the control token, and only the kernel \
             keeps agents out of it; set it to a folder outside",
            eisen_dir.display()
        ));
    }
    hints
}

/// Patterns as written, and their place.
struct List<'a> {
    place: String,
    patterns: &'a [String],
}

fn lists(config: &Config) -> Vec<List<'_>> {
    let zones = &config.zones;
    let mut lists = Vec::new();
    for (key, patterns) in
        [("shared", &zones.shared), ("denied", &zones.denied), ("readable", &zones.readable)]
    {
        lists.push(List { place: format!("[zones] {key}"), patterns });
    }
    for agent in config.agents.iter().filter(|agent| agent.zone.own) {
        let zone = &agent.zone;
        for (key, patterns) in [
            ("allowed", &zone.spec.allowed),
            ("denied", &zone.denied),
            ("readable", &zone.readable),
        ] {
            lists.push(List { place: format!("{}: {key}", agent.id), patterns });
        }
    }
    lists
}

/// Returns a hint for a pattern that probably does not mean what its author intended.
pub fn pattern_hint(pattern: &str, workspace: &Path) -> Option<String> {
    let trimmed = pattern.trim();
    if trimmed != pattern {
        return Some(format!(
            "begins or ends with a blank, which only names with one match: write `{trimmed}`"
        ));
    }
    let top = pattern.split('/').next().unwrap_or_default();
    let is_variable = |name: &str| {
        name.starts_with(|char: char| char.is_ascii_uppercase())
            && name.chars().all(|char| char.is_ascii_uppercase() || char == '_')
    };
    if let Some(name) = top.strip_prefix('$').filter(|name| is_variable(name))
        && !workspace.join(top).exists()
    {
        return Some(format!("takes `{top}` literally: a variable is `${{{name}}}`"));
    }
    // In a literal string of TOML a doubled one is two signs.
    let slashed = pattern.replace("\\\\", "/").replace('\\', "/");
    let is_letter = |text: &str| text.starts_with(|char: char| char.is_ascii_alphanumeric());
    let escapes_letter = pattern.split('\\').skip(1).any(is_letter);
    let names_folder = |path: &str| {
        let first = path.split('/').find(|name| !name.is_empty());
        first.is_some_and(|first| workspace.join(first).is_dir())
    };
    if escapes_letter || slashed != pattern && !pattern.contains('/') && names_folder(&slashed) {
        return Some(format!(
            "has `\\`, which takes the next sign literally; folders are parted by `/`: write \
             `{slashed}`"
        ));
    }
    let top = pattern.strip_prefix('/').and_then(|rest| rest.split('/').next());
    if let Some(top) = top
        && !Path::new("/").join(top).exists()
        && workspace.join(top).exists()
    {
        return Some(format!(
            "names a place outside the workspace, which does not exist: write `{}`",
            pattern.trim_start_matches('/')
        ));
    }
    let is_mixed = |part: &str| {
        part.contains("**") && part != "**" && !part.contains(['[', '{', '\\', '}', ']'])
    };
    if pattern.split('/').any(is_mixed) {
        let meant: Vec<String> = pattern
            .split('/')
            .map(
                |part| {
                    if is_mixed(part) { part.replacen("**", "**/*", 1) } else { part.to_owned() }
                },
            )
            .collect();
        return Some(format!(
            "has `**` next to other characters, where it stays within one folder: write `{}` for any depth",
            meant.join("/").replace("/**/**/", "/**/")
        ));
    }
    None
}

/// Returns the reason that a command can't start its agent.
fn of_command(agent: &Agent) -> Option<String> {
    let (id, program) = (&agent.id, agent.command.first()?);
    let file = found(program, agent).or_else(|| without_x(program, agent));
    if let Some(file) = file.filter(|file| !is_program(file)) {
        let shown = file.display();
        return Some(if file.is_dir() {
            format!("{id}: {shown} is a folder: name the program in it")
        } else {
            format!("{id}: {shown} is not executable: `chmod +x {shown}`")
        });
    }
    if agent.plugin.is_some() {
        return None;
    }
    let name = Path::new(program).file_name()?.to_str()?;
    if let Some((profile, known)) = installed_without_adapter(name) {
        let install = super::install(known).map(|how| format!(" ({how})")).unwrap_or_default();
        return Some(format!(
            "{id}: `{name}` does not speak ACP by itself, its adapter `{}` does{install}: write \
             `profile = \"{profile}\"`",
            known.programs().next().unwrap_or_default()
        ));
    }
    let usual = &agent.profile.command;
    if agent.command.len() == 1 && usual.len() > 1 && usual.first().is_some_and(|one| one == name) {
        let usual: Vec<String> = usual.iter().map(|word| format!("\"{word}\"")).collect();
        return Some(format!(
            "{id}: `{name}` without arguments does not speak ACP: write `command = [{}]`, or name its \
             profile",
            usual.join(", ")
        ));
    }
    None
}

/// Returns a file of that name that is not executable.
pub(super) fn without_x(program: &str, agent: &Agent) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| file.exists());
    }
    let path = agent.env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok())?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Returns pairs of agents that may write the same files, by their patterns.
fn overlaps(config: &Config) -> Vec<String> {
    let zoned: Vec<(&Agent, Zone)> = config
        .agents
        .iter()
        .filter(|agent| agent.zone.own)
        .take(MOST_COMPARED)
        .filter_map(|agent| Some((agent, Zone::compile(&agent.zone.spec).ok()?)))
        .collect();
    let mut overlaps = Vec::new();
    for (at, (second, other)) in zoned.iter().enumerate() {
        for (first, zone) in &zoned[..at] {
            let patterns = first.zone.spec.allowed.iter().chain(&second.zone.spec.allowed);
            let both = patterns.filter_map(|pattern| Some((pattern, example_path(pattern)?)));
            let mut both = both.filter(|(_, path)| zone.owns(path) && other.owns(path));
            if let Some((pattern, _)) = both.next() {
                overlaps.push(format!(
                    "the zones of {} and {} overlap: both may write `{pattern}`; `check` counts the \
                     files",
                    first.id, second.id
                ));
            }
        }
    }
    overlaps
}

/// Returns a path that a simple pattern matches.
fn example_path(pattern: &str) -> Option<String> {
    let parts = pattern.split('/').map(|part| match part {
        "**" => Some("x".to_owned()),
        part if part.contains(['[', '{', '\\']) => None,
        part => Some(part.replace(['*', '?'], "x")),
    });
    parts.collect::<Option<Vec<_>>>().map(|parts| parts.join("/"))
}
