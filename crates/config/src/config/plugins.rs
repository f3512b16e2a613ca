//! `[[plugins]]`, and the plugins in the user's folder that need no table.

use std::path::{Path, PathBuf};

use super::errors::quoted;
use super::fault::Fault;
use super::mcp::json;
use super::plugin::{Isolation, Plugin};
use super::read::{Table, Text, unknown_value};
use super::remote::OPENCODE;
use super::value::{bad_name, is_name};

/// The protocol that needs no plugin.
pub(super) const ACP: &str = "acp";

/// Suffix of libraries on this system.
const SUFFIX: &str = std::env::consts::DLL_SUFFIX;

/// Libraries of the folder that an error lists.
const MOST_NAMES: usize = 100;

/// Returns the user's folder of plugins, whose names every team can use.
pub fn plugin_folder(eisen_dir: &Path) -> PathBuf {
    eisen_dir.join("plugins")
}

/// Finds a library of the folder by its plugin name; the error lists the names that exist.
pub fn plugin_named(folder: &Path, name: &str) -> Result<PathBuf, Vec<String>> {
    in_folder(folder, name).ok_or_else(|| of_folder(folder))
}

/// Reads all tables; a duplicate name is a fault.
pub(super) fn plugins(root: &Table<'_>) -> Vec<Plugin> {
    let mut known: Vec<Plugin> = Vec::new();
    for (plugin, name) in root.sections("plugins", plugin) {
        match name {
            Some(name) if known.iter().any(|other| other.name == name.value) => {
                let message = format!("there is another plugin {}", quoted(&name.value));
                root.fault(Fault::new(name.span, message).help("give each its own name"));
            }
            Some(_) => known.push(plugin),
            None => {}
        }
    }
    known
}

fn plugin(table: &Table<'_>) -> (Plugin, Option<Text>) {
    if table.place_of("name").is_none() {
        table.lacks("this plugin has no `name`", "name it as agents do in `protocol`");
    }
    let name = table.text("name");
    if let Some(name) = &name
        && ([ACP, OPENCODE].contains(&&*name.value) || !is_name(&name.value))
    {
        table.fault(bad_name("`name`", name));
    }
    if table.place_of("path").is_none() {
        table.lacks("this plugin has no `path`", "write where its library is");
    }
    let path = table.word("path");
    let config = match table.get("config") {
        None => Some("{}".to_owned()),
        Some(item) if item.get_ref().is_table() => json(table, item).map(|json| json.to_string()),
        Some(item) => {
            table.wrong("`config`", item, "a table", "write `config = { KEY = VALUE }`");
            None
        }
    };
    let mut plugin = Plugin {
        name: name.as_ref().map_or_else(String::new, |name| name.value.clone()),
        path: path.as_ref().map(|path| table.reader.path(&path.value)).unwrap_or_default(),
        isolation: table.choice("isolation"),
        config: config.clone().unwrap_or_default(),
        gates: false,
    };
    if let (Some(path), Some(_)) = (path, config) {
        plugin = table.reader.try_out(plugin, path.span);
    }
    (plugin, name)
}

/// Reads an agent's `protocol`: its plugin, None for ACP.
pub(super) fn protocol(table: &Table<'_>, known: &[Plugin], folder: &Path) -> Option<Plugin> {
    let protocol = table.text("protocol").filter(|text| text.value != ACP)?;
    if protocol.value == OPENCODE {
        // What it needs is said with the address.
        return None;
    }
    if let Some(plugin) = known.iter().find(|plugin| plugin.name == protocol.value) {
        return Some(plugin.clone());
    }
    if let Some(path) = in_folder(folder, &protocol.value) {
        let (name, config) = (protocol.value, "{}".to_owned());
        let plugin = Plugin { name, path, isolation: Isolation::default(), config, gates: false };
        return Some(table.reader.try_out(plugin, protocol.span));
    }
    let there = of_folder(folder);
    let names = known.iter().map(|known| &*known.name).chain(there.iter().map(|name| &**name));
    let fault = unknown_value(
        "protocol",
        &protocol,
        &[ACP, OPENCODE].into_iter().chain(names).collect::<Vec<_>>(),
    );
    let folder = folder.display();
    table.fault(
        fault.further(&format!(
            ". Name a plugin of `[[plugins]]`, or put its library into {folder}"
        )),
    );
    None
}

/// Returns the plugin name of a library without a table.
pub fn plugin_name(library: &Path) -> Option<String> {
    let name = library.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
    let name = name.strip_prefix("lib").unwrap_or(name).replace('_', "-");
    is_name(&name).then_some(name)
}

/// Returns the plugin names in the folder, sorted.
fn of_folder(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.filter_map(|entry| plugin_name(&entry.path())).take(MOST_NAMES).collect();
    names.sort();
    names
}

fn in_folder(folder: &Path, name: &str) -> Option<PathBuf> {
    if !is_name(name) {
        return None;
    }
    let names = [format!("lib{}{SUFFIX}", name.replace('-', "_")), format!("{name}{SUFFIX}")];
    names.map(|name| folder.join(name)).into_iter().find(|path| path.is_file())
}
