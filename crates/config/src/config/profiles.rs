//! Launch profiles: those of `[profiles]` in the file, and the built-in ones that they are based
//! on.

mod built_in;
#[cfg(test)]
mod document;
mod forms;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path};

use super::command::{command, environment};
use super::errors::{code, quoted};
use super::fault::Fault;
use super::near::nearest;
use super::patterns::patterns;
use super::read::{Table, Text};
use super::value::{bad_name, is_name};

pub use self::built_in::{ClientFs, Profile, UsageCount, base_patterns};
pub(super) use self::built_in::{
    base_needs, base_sockets, built_in, login_files, of_command, sealed,
};
pub use self::forms::ProviderForm;
pub(super) use self::forms::{FOLDER, TOKEN, URL};

/// Stands for the model in `model_args`.
pub(super) const MODEL: &str = "{model}";

/// Longer chains of bases are refused: each base costs stack.
const MAX_BASES: usize = 32;

/// All profiles that agents can name.
pub(super) struct Profiles {
    /// The file's profiles; None for an invalid one, whose fault is recorded.
    own: BTreeMap<String, Option<Profile>>,
    /// The profiles of the user's file, over which this one is laid.
    user: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Returns the profile that an agent names.
    pub(super) fn get(&self, agent: &Table<'_>, name: &Text) -> Option<Profile> {
        if let Some(own) = self.own.get(&name.value) {
            return own.clone();
        }
        if let Some(known) = of_others(&name.value, &self.user) {
            return Some(known);
        }
        agent.fault(unknown(name, self.own.keys().chain(self.user.keys())));
        None
    }

    /// Returns the profile at the end of a profile's bases; its own name if it has none.
    pub(super) fn base_of<'a>(&'a self, name: &'a str) -> &'a str {
        let own = self.own.get(name).and_then(Option::as_ref);
        own.or_else(|| self.user.get(name)).map_or(name, |known| &known.base)
    }

    /// Returns those of the files.
    pub(super) fn known(&self) -> BTreeMap<String, Profile> {
        let mut known = self.user.clone();
        let own = self.own.iter().filter_map(|(name, own)| Some((name.clone(), own.clone()?)));
        known.extend(own);
        known
    }
}

/// Looks a profile up that is not of this file.
fn of_others(name: &str, user: &BTreeMap<String, Profile>) -> Option<Profile> {
    let user = user.get(name);
    user.or_else(|| built_in().get(name)).cloned()
}

/// Reads the profiles of a file, over those of the user's.
pub(super) fn profiles(
    profiles: &Table<'_>,
    workspace: &Path,
    user: BTreeMap<String, Profile>,
) -> Profiles {
    let mut layers = BTreeMap::new();
    for (name, item) in profiles.entries() {
        if !is_name(&name.value) {
            profiles.fault(bad_name("a profile's name", &name));
            continue;
        }
        let layer = profiles.entry(item, "profiles.NAME", |profile| Layer {
            base: profile.word("base"),
            has_command: profile.place_of("command").is_some(),
            command: command(profile),
            args: profile.texts("args").unwrap_or_default(),
            env: environment(profile, "env"),
            edits: edits(profile, workspace),
            name: name.span.clone(),
        });
        layers.insert(name.value, layer);
    }
    let mut resolver = Resolver {
        table: profiles,
        layers: &layers,
        user: &user,
        path: Vec::new(),
        done: BTreeMap::new(),
    };
    for name in layers.keys() {
        resolver.resolve(name);
    }
    Profiles { own: resolver.done, user }
}

/// The changes of a profile of the file to its base.
struct Layer {
    base: Option<Text>,
    has_command: bool,
    command: Option<Vec<String>>,
    args: Vec<Text>,
    env: BTreeMap<String, String>,
    /// The changes of its other keys.
    edits: Vec<Edit>,
    /// The place of its name.
    name: Range<usize>,
}

type Edit = Box<dyn Fn(&mut Profile)>;

/// Keys of one type, each with its field.
type Keys<T> = [(&'static str, fn(&mut Profile) -> &mut T)];

// The names are those of the table of built-in profiles.

const WORDS: &Keys<String> = &[
    ("title", |profile| &mut profile.title),
    ("install", |profile| &mut profile.install),
    ("login", |profile| &mut profile.login),
    ("model_env", |profile| &mut profile.model_env),
    ("unattended_mode", |profile| &mut profile.unattended_mode),
    ("asking_mode", |profile| &mut profile.asking_mode),
    ("uncounted_mode", |profile| &mut profile.uncounted_mode),
    ("compact", |profile| &mut profile.compact),
    ("without_tools", |profile| &mut profile.without_tools),
];

const LISTS: &Keys<Vec<String>> = &[
    ("other_programs", |profile| &mut profile.other_programs),
    ("login_env", |profile| &mut profile.login_env),
    ("auth_methods", |profile| &mut profile.auth_methods),
    ("model_args", |profile| &mut profile.model_args),
    ("unattended_args", |profile| &mut profile.unattended_args),
    ("readable", |profile| &mut profile.readable),
    ("writable", |profile| &mut profile.writable),
    ("settings", |profile| &mut profile.settings),
    ("own_settings", |profile| &mut profile.own_settings),
    ("made_settings", |profile| &mut profile.made_settings),
    ("confined_args", |profile| &mut profile.confined_args),
];

const PATTERNS: &Keys<Vec<String>> = &[
    ("rule_files", |profile| &mut profile.rule_files),
    ("harmless", |profile| &mut profile.harmless),
];

const TABLES: &Keys<BTreeMap<String, String>> = &[
    ("unattended_env", |profile| &mut profile.unattended_env),
    ("confined_env", |profile| &mut profile.confined_env),
];

const FLAGS: &Keys<Option<bool>> = &[
    ("ends_on_eof", |profile| &mut profile.ends_on_eof),
    ("leaves_children", |profile| &mut profile.leaves_children),
    ("confined_client_fs", |profile| &mut profile.confined_client_fs),
    ("hides_tools", |profile| &mut profile.hides_tools),
];

/// Reads the keys whose values replace the base's.
fn edits(table: &Table<'_>, workspace: &Path) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    for &(key, field) in WORDS {
        if let Some(word) = table.word(key) {
            edits.push(Box::new(move |profile| field(profile).clone_from(&word.value)));
        }
    }
    for &(key, field) in LISTS {
        if let Some(texts) = table.texts(key) {
            check_list(table, key, &texts);
            let values: Vec<String> = texts.into_iter().map(|text| text.value).collect();
            edits.push(Box::new(move |profile| field(profile).clone_from(&values)));
        }
    }
    for &(key, field) in TABLES {
        let values = environment(table, key);
        if table.place_of(key).is_some() {
            edits.push(Box::new(move |profile| field(profile).clone_from(&values)));
        }
    }
    for &(key, field) in FLAGS {
        let value = table.flag(key, true);
        if table.place_of(key).is_some() {
            edits.push(Box::new(move |profile| *field(profile) = Some(value)));
        }
    }
    let patience = table.seconds("patience_s", 1..=86_400, 1).as_secs();
    if table.place_of("patience_s").is_some() {
        edits.push(Box::new(move |profile| profile.patience_s = Some(patience)));
    }
    let client_fs = table.choice("client_fs");
    if table.place_of("client_fs").is_some() {
        edits.push(Box::new(move |profile| profile.client_fs = Some(client_fs)));
    }
    let usage = table.choice("usage");
    if table.place_of("usage").is_some() {
        edits.push(Box::new(move |profile| profile.usage = Some(usage)));
    }
    let form = table.choice("tools_form");
    if table.place_of("tools_form").is_some() {
        edits.push(Box::new(move |profile| profile.tools_form = Some(form)));
    }
    let forms = forms::forms(table);
    if table.place_of("providers").is_some() {
        edits.push(Box::new(move |profile| profile.providers.extend(forms.clone())));
    }
    for &(key, field) in PATTERNS {
        if let Some(patterns) = patterns(table, key, workspace) {
            edits.push(Box::new(move |profile| field(profile).clone_from(&patterns)));
        }
    }
    edits
}

/// Checks the entries that a list requires.
fn check_list(table: &Table<'_>, key: &'static str, texts: &[Text]) {
    match key {
        "model_args" if !texts.is_empty() && !texts.iter().any(|arg| arg.value.contains(MODEL)) => {
            let span = texts[0].span.start..texts[texts.len() - 1].span.end;
            table.fault(
                Fault::new(span, format!("{} must contain `{{model}}`", code(key)))
                    .help(format!("write `model_args = [\"--model\", \"{MODEL}\"]`")),
            );
        }
        "readable" | "writable" => {
            for place in texts.iter().filter(|place| !place.value.starts_with(['~', '$', '/'])) {
                let message = format!("the place {} is not an absolute path", quoted(&place.value));
                table.fault(
                    Fault::new(place.span.clone(), message).help(
                        "write one such as \"~/.config/mine\", \"$MINE_HOME\" or \"/opt/mine\"",
                    ),
                );
            }
        }
        "made_settings" => {
            for folder in texts.iter().filter(|it| !is_below(&it.value)) {
                let message =
                    format!("the folder {} is not a relative path", quoted(&folder.value));
                let help = "write one such as \"hooks\": it is made in each folder of `writable`";
                table.fault(Fault::new(folder.span.clone(), message).help(help));
            }
        }
        _ => {}
    }
}

/// Whether a path stays in the folder that it is joined to.
fn is_below(path: &str) -> bool {
    !path.starts_with(['~', '$'])
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Resolves each profile's base.
struct Resolver<'a> {
    table: &'a Table<'a>,
    layers: &'a BTreeMap<String, Option<Layer>>,
    user: &'a BTreeMap<String, Profile>,
    /// Profiles under resolution, each the base of the previous one.
    path: Vec<String>,
    done: BTreeMap<String, Option<Profile>>,
}

impl Resolver<'_> {
    fn resolve(&mut self, name: &str) -> Option<Profile> {
        if let Some(done) = self.done.get(name) {
            return done.clone();
        }
        self.path.push(name.to_owned());
        let profile = self.layers.get(name)?.as_ref().and_then(|layer| self.apply(name, layer));
        self.path.pop();
        self.done.insert(name.to_owned(), profile.clone());
        profile
    }

    fn apply(&mut self, name: &str, layer: &Layer) -> Option<Profile> {
        let mut profile = match &layer.base {
            Some(base) => self.base(name, base)?,
            None if layer.has_command => Profile { base: name.to_owned(), ..Profile::default() },
            None => {
                let message = format!("the profile {} has no command", code(name));
                self.table.fault(
                    Fault::new(layer.name.clone(), message).help("give it a `base` or a `command`"),
                );
                return None;
            }
        };
        if layer.has_command {
            profile.command = layer.command.clone()?;
        }
        profile.command.extend(layer.args.iter().map(|arg| arg.value.clone()));
        profile.env.extend(layer.env.clone());
        layer.edits.iter().for_each(|edit| edit(&mut profile));
        Some(profile)
    }

    fn base(&mut self, name: &str, base: &Text) -> Option<Profile> {
        // A profile with the name of another one's can be based on it.
        if base.value == name || !self.layers.contains_key(&base.value) {
            let Some(profile) = of_others(&base.value, self.user) else {
                self.table.fault(unknown(base, self.layers.keys().chain(self.user.keys())));
                return None;
            };
            return Some(profile);
        }
        let circle = self.path.iter().position(|other| *other == base.value);
        if circle.is_none() && self.path.len() < MAX_BASES {
            return self.resolve(&base.value);
        }
        let message = match circle {
            Some(start) => {
                let mut names = self.path[start..].to_vec();
                names.push(base.value.clone());
                format!("profiles are based on each other: {}", names.join(" → "))
            }
            None => format!("more than {MAX_BASES} profiles are based on one another"),
        };
        self.table.fault(
            Fault::new(base.span.clone(), message)
                .help("base one of them on a built-in profile, or give it a `command`"),
        );
        None
    }
}

fn unknown<'a>(name: &Text, own: impl Iterator<Item = &'a String>) -> Fault {
    let mut known: Vec<&str> = built_in().keys().map(String::as_str).collect();
    for own in own {
        if !known.contains(&own.as_str()) {
            known.push(own);
        }
    }
    let fault =
        Fault::new(name.span.clone(), format!("there is no profile {}", quoted(&name.value)));
    match nearest(&name.value, &known) {
        Some(near) => fault.help(format!("did you mean \"{near}\"?")),
        None => fault.help(format!("there are {}", known.join(", "))),
    }
}
