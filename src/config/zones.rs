//! `[zones]` and `[agents.zone]`: patterns are checked one by one and gathered to a `ZoneSpec`.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSetBuilder};

use super::errors::{Fault, quoted};
use super::read::{Table, Text};
use super::{AgentZone, Config, Confine, Enforce, Zones, profiles};
use crate::zone::{GitAccess, ZoneSpec};

impl Config {
    /// Keeps every agent from writing the file that this is from, and the files that it names.
    pub(super) fn sealed(mut self, file: Option<&PathBuf>) -> Self {
        let prompts = self.agents.iter().filter_map(|agent| agent.prompt_file.as_ref());
        let spoken = self.agents.iter().filter_map(|agent| agent.plugin.as_ref());
        let libraries = self.plugins.iter().chain(spoken).map(|plugin| &plugin.path);
        let sealed: Vec<PathBuf> =
            file.into_iter().chain(prompts).chain(libraries).cloned().collect();
        for agent in &mut self.agents {
            agent.zone.spec.sealed.clone_from(&sealed);
        }
        self
    }
}

/// What holds for every agent.
pub(super) struct TeamZones {
    pub(super) written: Zones,
    /// As written, and the base patterns.
    readable: Vec<String>,
    pub(super) workspace: PathBuf,
    eisen_dir: PathBuf,
}

pub(super) fn zones(zones: &Table<'_>, workspace: &Path, eisen_dir: &Path) -> TeamZones {
    let list = |key| patterns(zones, key, workspace).unwrap_or_default();
    let written = Zones {
        build: build(zones),
        shared: list("shared"),
        denied: list("denied"),
        readable: list("readable"),
        base: zones.flag("base", true),
        git: zones.choice(
            "git",
            &[("read", GitAccess::Read), ("none", GitAccess::None), ("commit", GitAccess::Commit)],
        ),
    };
    let mut readable = written.readable.clone();
    if written.base {
        readable.extend(profiles::base_patterns().into_iter().map(str::to_owned));
    }
    TeamZones {
        written,
        readable,
        workspace: workspace.to_owned(),
        eisen_dir: eisen_dir.to_owned(),
    }
}

/// Reads `build`: folders of the workspace, without patterns, since they are to be made.
fn build(zones: &Table<'_>) -> Vec<String> {
    let folder = |written: &str| {
        let folder = written.strip_suffix("/**").unwrap_or(written).trim_end_matches('/');
        let folder = folder.strip_prefix("./").unwrap_or(folder);
        let parts: Vec<&str> = folder.split('/').collect();
        let is_plain = |part: &&str| !matches!(*part, "" | "." | ".." | ".git" | "~");
        if parts.iter().all(is_plain) && !folder.contains(['*', '?', '[', '{', '\\', '!']) {
            return Ok(folder.to_owned());
        }
        Err((
            format!("{} is no folder that could be made", quoted(written)),
            "write a folder relative to the workspace, without patterns, such as \"target\"; patterns \
             are for `shared`"
                .to_owned(),
        ))
    };
    checked(zones, "build", folder).unwrap_or_default()
}

/// What everybody may write.
fn shared(zones: &Zones) -> Vec<String> {
    let built = zones.build.iter().map(|folder| below(folder));
    built.chain(zones.shared.iter().cloned()).collect()
}

fn below(folder: &str) -> String {
    format!("{}/**", globset::escape(folder))
}

impl Zones {
    /// Whether a pattern is that of a folder of `build`.
    pub(super) fn builds(&self, pattern: &str) -> bool {
        self.build.iter().any(|folder| below(folder) == pattern)
    }
}

/// Reads `[agents.zone]`; without one an agent may touch the whole workspace, and owns nothing.
/// `rule_files` are those of its profile.
pub(super) fn agent_zone(agent: &Table<'_>, team: &TeamZones, rule_files: &[String]) -> AgentZone {
    let own = agent.place_of("zone").is_some();
    agent.section("zone", "agents.zone", |zone| {
        let list = |key| patterns(zone, key, &team.workspace);
        let allowed = list("allowed").unwrap_or_else(|| vec!["**".to_owned()]);
        let denied = list("denied").unwrap_or_default();
        let readable = list("readable").unwrap_or_default();
        let mut all_readable = [&team.readable[..], &readable].concat();
        if team.written.base {
            let further = rule_files.iter().filter(|file| !team.readable.contains(file));
            all_readable.extend(further.cloned());
        }
        AgentZone {
            own,
            spec: ZoneSpec {
                workspace: team.workspace.clone(),
                allowed,
                shared: shared(&team.written),
                denied: [&team.written.denied[..], &denied].concat(),
                readable: all_readable,
                git: team.written.git,
                terminals: zone.choice("terminals", &[("allow", true), ("deny", false)]),
                eisen_dir: team.eisen_dir.clone(),
                // Known when all of the file is read.
                sealed: Vec::new(),
            },
            denied,
            readable,
            enforce: enforce(zone),
            confine: zone.choice(
                "confine",
                &[("workspace", Confine::Workspace), ("strict", Confine::Strict)],
            ),
            sockets: sockets(zone, &team.workspace),
            observe_files: zone.flag("observe_files", true),
        }
    })
}

fn enforce(zone: &Table<'_>) -> Enforce {
    let enforce = zone.choice(
        "enforce",
        &[("auto", Enforce::Auto), ("kernel", Enforce::Kernel), ("protocol", Enforce::Protocol)],
    );
    // Whoever asks for the kernel must not get less without knowing.
    if enforce == Enforce::Kernel
        && !cfg!(target_os = "linux")
        && let Some(span) = zone.place_of("enforce")
    {
        zone.fault(
            Fault::new(span, "only the kernel of Linux can enforce a zone")
                .help("write \"auto\", which takes what the system has, or \"protocol\""),
        );
    }
    enforce
}

/// Reads `sockets`: patterns that are absolute, each.
fn sockets(zone: &Table<'_>, workspace: &Path) -> Vec<String> {
    let absolute = |written: &str| {
        if written.starts_with(['/', '~']) {
            return pattern(written, workspace);
        }
        Err((
            format!("the socket {} has no absolute path", quoted(written)),
            "write one such as \"/run/postgresql/*\"; sockets in the zone need no mention"
                .to_owned(),
        ))
    };
    checked(zone, "sockets", absolute).unwrap_or_default()
}

/// Checks a pattern as a list of the file would, and returns it as zones match it. The error says
/// what is wrong, and what to write.
pub fn zone_pattern(written: &str, workspace: &Path) -> Result<String, String> {
    pattern(written, workspace).map_err(|(message, help)| format!("{message}: {help}"))
}

/// The patterns of a list, each checked; None if the list is not there. A list with a mistake
/// never comes out wider than it was meant: the file is refused.
pub(super) fn patterns(
    table: &Table<'_>,
    key: &'static str,
    workspace: &Path,
) -> Option<Vec<String>> {
    checked(table, key, |written| pattern(written, workspace))
}

fn checked(
    table: &Table<'_>,
    key: &'static str,
    check: impl Fn(&str) -> Result<String, (String, String)>,
) -> Option<Vec<String>> {
    let texts = table.texts(key)?;
    let checked = |text: &Text| match check(&text.value) {
        Ok(pattern) => Some(pattern),
        Err((message, help)) => {
            table.fault(Fault::new(text.span.clone(), message).help(help));
            None
        }
    };
    Some(texts.iter().filter_map(checked).collect())
}

/// Brings a pattern into the form that zones match: relative to the workspace if it lies inside.
/// The error says what is wrong, and what to write.
fn pattern(written: &str, workspace: &Path) -> Result<String, (String, String)> {
    let mut pattern = written;
    while let Some(rest) = pattern.strip_prefix("./") {
        pattern = rest.trim_start_matches('/');
    }
    if let Some(inside) = workspace.to_str().and_then(|root| pattern.strip_prefix(root)) {
        pattern = inside.strip_prefix('/').unwrap_or(pattern);
    }
    let wrong =
        |what: &str, help: String| Err((format!("the pattern {} {what}", quoted(written)), help));
    if written.is_empty() {
        return wrong("is empty", "write \"**\" for everything, or leave it out".to_owned());
    }
    if pattern.is_empty() || pattern == "." {
        return wrong(
            "names the workspace itself",
            "write \"**\" for all that is in it".to_owned(),
        );
    }
    if let Some(rest) = pattern.strip_prefix('!') {
        let help = format!(
            "write {} into `denied`; of a name that begins so write {}",
            quoted(rest),
            quoted(&format!("\\{pattern}"))
        );
        return wrong("starts with `!`, which takes nothing out", help);
    }
    if pattern.starts_with("~/") || pattern == "~" {
        let help = format!("write {}", quoted(&pattern.replacen('~', "${HOME}", 1)));
        return wrong("starts with `~`, which only a shell knows", help);
    }
    if pattern.split('/').any(|component| component == "..") {
        let help = "write it relative to the workspace without `..`; a place outside has an absolute pattern";
        return wrong("contains `..`", help.to_owned());
    }
    if pattern.split('/').any(|component| component == ".") || pattern[1..].contains("//") {
        return wrong("is no plain path", "leave out `/./` and `//`".to_owned());
    }
    if let Some(folder) = pattern.strip_suffix('/') {
        let help =
            format!("write {} for all that is in the folder", quoted(&format!("{folder}/**")));
        return wrong("ends with `/`, so it matches no file", help);
    }
    // Only the set compiles what the glob was translated to, and can find it too large.
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .and_then(|glob| GlobSetBuilder::new().add(glob).build())
        .map(|_| pattern.to_owned())
        .or_else(|error| {
            let help = "the signs are `*`, `**`, `?`, `[ab]`, `[!ab]`, `{a,b}`; `\\` before one takes it literally";
            wrong(&format!("can't be read: {}", error.kind()), help.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_come_out_relative_to_the_workspace() {
        for (written, wanted) in [
            ("src/**", "src/**"),
            ("./src/**", "src/**"),
            ("././/a", "a"),
            ("**", "**"),
            ("/w/src/**", "src/**"),
            ("/w2/src", "/w2/src"),
            ("/etc/hosts", "/etc/hosts"),
            ("a..b/..c/d..", "a..b/..c/d.."),
            ("{a,b}/[cd]/*.rs", "{a,b}/[cd]/*.rs"),
        ] {
            assert_eq!(pattern(written, Path::new("/w")).as_deref(), Ok(wanted), "{written}");
        }
    }

    #[test]
    fn patterns_that_would_never_match_are_refused() {
        for written in [
            "", ".", "./", "/w/", "..", "../x", "a/../b", "a/..", "~/x", "~", "src/", "a//b",
            "a/./b", "[a", "{a", "a]b}", "[z-a]", "a\\", "/", "!a", "!src/**", "./!a",
        ] {
            let outcome = pattern(written, Path::new("/w"));
            assert!(outcome.is_err(), "{written} → {outcome:?}");
        }
        let huge = "{a,b,c,d,e,f}*?[!x-z]**".repeat(20_000);
        assert!(pattern(&huge, Path::new("/w")).is_err());
    }
}
