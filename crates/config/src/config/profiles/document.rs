//! Prints `docs/profiles.md` from the table of built-in profiles, and checks the keys of the table.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect_file;

use super::{ClientFs, MODEL, Profile, ProviderForm, UsageCount, built_in, login_files, sealed};
use crate::model::{ProviderKind, ToolsForm};

const BEGIN: &str = "<!-- Printed from crates/config/src/config/profiles.toml by a test; UPDATE_EXPECT=1 writes it anew. -->\n";
const END: &str = "<!-- Until here. -->\n";

#[test]
fn the_document_has_what_is_known() {
    // Read at run time: the file may have changed since the build.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profiles.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{}{END}{after}", printed());
    expect_file!["../../../../../docs/profiles.md"].assert_eq(&wanted);
}

fn printed() -> String {
    let mut text = "| profile | agent | command | opens files by its client | ends with its input | leaves children |\n\
                    | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (name, profile) in built_in() {
        let client_fs = match profile.client_fs {
            Some(ClientFs::Yes) => "yes",
            Some(ClientFs::Edits) => "when it edits",
            Some(ClientFs::No) => "no",
            None => "?",
        };
        let (ends, leaves) = (known(profile.ends_on_eof), known(profile.leaves_children));
        let command = words(&profile.command);
        let title = &profile.title;
        writeln!(text, "| `{name}` | {title} | {command} | {client_fs} | {ends} | {leaves} |")
            .unwrap();
    }
    for (name, profile) in built_in() {
        writeln!(text, "\n### `{name}`\n").unwrap();
        for (what, value) in described(name, profile) {
            if !value.is_empty() {
                writeln!(text, "- {what}: {value}").unwrap();
            }
        }
    }
    text += "\n## Settings that no agent writes\n\n| setting | reason |\n| --- | --- |\n";
    for (place, reason) in sealed() {
        writeln!(text, "| `{place}` | {reason} |").unwrap();
    }
    text
}

/// Returns the facts of an agent; empty texts are unknown.
fn described(name: &str, profile: &Profile) -> Vec<(&'static str, String)> {
    let install = if profile.install.starts_with("https://") {
        format!("<{}>", profile.install)
    } else {
        one(&profile.install)
    };
    let login = [one(&profile.login), variables(&profile.login_env)];
    let model = if profile.takes_model_at_start() {
        [words(&profile.model_args), one(&profile.model_env)]
    } else {
        ["by its sessions".to_owned(), String::new()]
    };
    let mode = match profile.unattended_mode.as_str() {
        "" => String::new(),
        mode => format!("mode `{mode}`"),
    };
    let unattended = [mode, words(&profile.unattended_args), assigned(&profile.unattended_env)];
    let confined = [words(&profile.confined_args), assigned(&profile.confined_env)];
    let form = profile.tools_form.map_or("", ToolsForm::as_str);
    let shown = match profile.hides_tools {
        Some(true) => "once it searches for them",
        Some(false) => "at once",
        None => "",
    };
    vec![
        ("install", install),
        ("started by", words(&profile.command)),
        ("or by", list(&profile.other_programs)),
        ("with", assigned(&profile.env)),
        ("logs in by", joined(&login, " or ")),
        ("keeps its login in", list(login_files(name))),
        ("`auth_method`", list(&profile.auth_methods)),
        ("takes a model", joined(&model, " and ")),
        ("unattended", joined(&unattended, ", ")),
        ("asks in mode", one(&profile.asking_mode)),
        ("compresses its context by", one(&profile.compact)),
        ("without tools of the team", profile.without_tools.clone()),
        ("takes the tools of the team first as", one(form)),
        ("shows its model the tools of MCP servers", shown.to_owned()),
        ("ends its shell commands after", seconds(profile.patience_s)),
        ("counts its usage by", usage(profile).to_owned()),
        ("reports no cost of its decisions in mode", one(&profile.uncounted_mode)),
        ("reads its rules from", list(&profile.rule_files)),
        ("does not miss, if it is refused", list(&profile.harmless)),
        ("reads outside", list(&profile.readable)),
        ("writes outside", list(&profile.writable)),
        ("its settings that no agent writes", list(&profile.settings)),
        ("its settings that only its agents write", list(&profile.own_settings)),
        ("its sealed folders that are made for it", list(&profile.made_settings)),
        ("is started confined with", joined(&confined, ", ")),
        ("opens no files by its client where the kernel holds its zone", own_files(profile)),
        ("takes a provider of the kind", providers(profile)),
    ]
}

fn providers(profile: &Profile) -> String {
    let kind = |(kind, form): (&ProviderKind, &ProviderForm)| {
        let model = if form.has(MODEL) { " with a `model`" } else { "" };
        let named = if form.only_named { " if it is named" } else { "" };
        format!("`{}`{model}{named}", kind.as_str())
    };
    profile.providers.iter().map(kind).collect::<Vec<_>>().join(", ")
}

fn usage(profile: &Profile) -> &'static str {
    match profile.usage {
        Some(UsageCount::Turn) => "turn",
        Some(UsageCount::Session) => "session",
        Some(UsageCount::Call) => "the turn's last call",
        Some(UsageCount::Context) => "the size of its context, where its answers have no counts",
        Some(UsageCount::Nothing) => "nothing: it never reports what it uses",
        None => "",
    }
}

fn seconds(limit: Option<u64>) -> String {
    limit.map(|limit| format!("{limit} s")).unwrap_or_default()
}

fn own_files(profile: &Profile) -> String {
    let is_kept_from = profile.confined_client_fs == Some(false);
    if is_kept_from { "`fs` is not offered".to_owned() } else { String::new() }
}

fn known(fact: Option<bool>) -> &'static str {
    fact.map_or("?", |fact| if fact { "yes" } else { "no" })
}

fn one(word: &str) -> String {
    if word.is_empty() { String::new() } else { format!("`{word}`") }
}

fn words(words: &[String]) -> String {
    one(&words.join(" "))
}

fn list(items: &[String]) -> String {
    items.iter().map(|item| one(item)).collect::<Vec<_>>().join(", ")
}

fn variables(names: &[String]) -> String {
    names.iter().map(|name| format!("`${name}`")).collect::<Vec<_>>().join(" or ")
}

fn assigned(env: &BTreeMap<String, String>) -> String {
    env.iter().map(|(name, value)| format!("`{name}={value}`")).collect::<Vec<_>>().join(", ")
}

fn joined(parts: &[String], by: &str) -> String {
    let parts: Vec<&str> =
        parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join(by)
}

/// Agents of one profile reach each other through what they have to write, so the user is told.
#[test]
fn what_agents_of_a_profile_share_is_said() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/confinement.md");
    let document = std::fs::read_to_string(path).unwrap();
    for (name, profile) in built_in().iter().filter(|(_, known)| !known.own_settings.is_empty()) {
        let row = format!("| `{name}` | {} |", list(&profile.own_settings));
        assert!(document.contains(&row), "docs/confinement.md lacks: {row}");
    }
}

#[test]
fn a_python_module_is_known_by_its_command() {
    let known = |command: &str| {
        let command: Vec<_> = command.split(' ').map(str::to_owned).collect();
        super::of_command(&command).map_or("", |profile| &profile.title)
    };
    assert_eq!(known("/venv/bin/python3.11 -m deepagents_acp --x"), "Deep Agents");
    assert_eq!(known("python -m http.server"), "");
    assert_eq!(known("python"), "");
    assert_eq!(known("/usr/bin/opencode acp"), "OpenCode");
}

#[test]
fn every_profile_has_what_its_keys_promise() {
    let mut programs: Vec<&str> = Vec::new();
    for (name, profile) in built_in() {
        assert!(crate::config::is_name(name), "{name}");
        for given in [&profile.title, &profile.install] {
            assert!(!given.is_empty() && given.trim() == given, "{name}");
        }
        assert!(!profile.command.is_empty() && !profile.rule_files.is_empty(), "{name}");
        // The program identifies an agent, so no two can share one.
        for program in profile.programs() {
            assert!(!program.contains('/') && !programs.contains(&program), "{name}: {program}");
            programs.push(program);
        }
        let places: Vec<bool> = profile.model_args.iter().map(|arg| arg.contains(MODEL)).collect();
        assert!(places.is_empty() || places.contains(&true), "{name}");
        assert!(profile.compact.is_empty() || profile.compact.starts_with('/'), "{name}");
        let places = profile.readable.iter().chain(&profile.writable);
        assert!(
            places.clone().all(|place| place.starts_with("~/") || place.starts_with('$')),
            "{name}"
        );
        assert!(places.count() > 0, "{name} keeps its state somewhere");
        let variable = |name: &&String| {
            name.bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
        };
        assert!(profile.login_env.iter().all(|name| variable(&name)), "{name}");
        let is_place = |file: &String| file.starts_with("~/") || file.starts_with("${");
        assert!(login_files(name).iter().all(is_place), "{name}");
        for form in profile.providers.values() {
            assert!(form.has(super::URL) && form.has(super::TOKEN), "{name}");
            assert_eq!(form.files.is_empty(), !form.has(super::FOLDER), "{name}");
        }
    }
}
