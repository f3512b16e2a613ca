//! Replaces the patterns of one agent's zone in the text of a configuration. All else stays as it is written.

use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// Characters up to which a list stays on one line.
const WIDTH: usize = 100;

/// The two lists of a zone.
const KEYS: [&str; 2] = ["allowed", "readable"];

/// A change of the text: a part of it, and what takes its place.
type Edit = (Range<usize>, String);

/// Returns the text with these patterns as `zone.allowed` and `zone.readable` of an agent, and behind them those of
/// the text that `keeps` accepts. The error says why that can't be done.
pub fn with_zone(
    text: &str,
    agent: &str,
    patterns: [&[String]; 2],
    keeps: &dyn Fn(&str) -> bool,
) -> Result<String, String> {
    let document = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
    let (at, table) = table_of(document.get_ref(), agent)
        .ok_or_else(|| format!("no table [[agents]] has the id \"{agent}\""))?;
    let mut lists = patterns.map(|list| list.iter().map(|it| written(it)).collect::<Vec<_>>());
    for (key, list) in KEYS.into_iter().zip(&mut lists) {
        for kept in texts(table, key).filter(|kept| keeps(kept)) {
            if !list.iter().any(|it| *it == kept) {
                list.push(kept.to_owned());
            }
        }
    }
    let lists = [&lists[0][..], &lists[1]];
    let mut edits = edits(text, table, lists)
        .ok_or_else(|| format!("the zone of \"{agent}\" is written in a form that is not known"))?;
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut edited = text.to_owned();
    for (range, with) in edits {
        edited.replace_range(range, &with);
    }
    let expected = changed(text, at, lists);
    if expected.is_none() || edited.parse::<Table>().ok() != expected {
        return Err(format!("the zone of \"{agent}\" can't be changed without changing more"));
    }
    Ok(edited)
}

/// The table of an agent, and its number.
fn table_of<'a>(root: &'a DeTable<'a>, agent: &str) -> Option<(usize, &'a DeTable<'a>)> {
    let DeValue::Array(agents) = root.get("agents")?.get_ref() else { return None };
    let tables = agents.iter().enumerate().filter_map(|(at, value)| match value.get_ref() {
        DeValue::Table(table) => Some((at, table)),
        _ => None,
    });
    tables.into_iter().find(|(_, table)| {
        matches!(table.get("id").map(Spanned::get_ref), Some(DeValue::String(id)) if id == agent)
    })
}

/// The configuration with the lists, as values.
fn changed(text: &str, agent: usize, lists: [&[String]; 2]) -> Option<Table> {
    let mut all: Table = text.parse().ok()?;
    let table = all.get_mut("agents")?.as_array_mut()?.get_mut(agent)?.as_table_mut()?;
    let zone = table.entry("zone").or_insert_with(|| Table::new().into()).as_table_mut()?;
    for (key, patterns) in KEYS.into_iter().zip(lists) {
        zone.insert(key.to_owned(), patterns.to_vec().into());
    }
    Some(all)
}

/// The patterns of a list of an agent's zone, as they are written.
fn texts<'a>(agent: &'a DeTable<'a>, key: &str) -> impl Iterator<Item = &'a str> {
    let zone = agent.get("zone").and_then(|zone| match zone.get_ref() {
        DeValue::Table(zone) => Some(zone),
        _ => None,
    });
    let list = zone.and_then(|zone| zone.get(key)).and_then(|list| match list.get_ref() {
        DeValue::Array(list) => Some(list),
        _ => None,
    });
    list.into_iter().flat_map(|list| list.iter()).filter_map(|text| match text.get_ref() {
        DeValue::String(text) => Some(&**text),
        _ => None,
    })
}

/// A pattern as the text of the file has it: `$` begins a variable there.
fn written(pattern: &str) -> String {
    pattern.replace('$', "$$")
}

fn edits(text: &str, agent: &DeTable<'_>, lists: [&[String]; 2]) -> Option<Vec<Edit>> {
    let zone = match agent.get("zone").map(Spanned::get_ref) {
        Some(DeValue::Table(zone)) => Some(zone),
        Some(_) => return None,
        None => None,
    };
    let mut edits: Vec<Edit> = Vec::new();
    let mut missing = Vec::new();
    for (key, patterns) in KEYS.into_iter().zip(lists) {
        match zone.and_then(|zone| zone.get(key)) {
            Some(value) => edits.push((value.span(), list(patterns))),
            None => missing.push((key, patterns)),
        }
    }
    if missing.is_empty() {
        return Some(edits);
    }
    if let Some(place) =
        agent.get("zone").map(Spanned::span).filter(|_| zone.is_some_and(DeTable::is_empty))
    {
        let lines = missing.iter().map(|(key, patterns)| format!("{key} = {}", list(patterns)));
        let lines: Vec<String> = lines.collect();
        let end_of_line = end_of_line(text, place.start);
        edits.push(if text[place.clone()].starts_with('{') {
            (place, format!("{{ {} }}", lines.join(", ").replace('\n', "")))
        } else {
            (end_of_line..end_of_line, format!("\n{}", lines.join("\n")))
        });
        return Some(edits);
    }
    // The last key of the zone, or else the agent's id: the others follow it.
    let last = zone.and_then(|zone| zone.iter().max_by_key(|(_, value)| value.span().end));
    let is_of_zone = last.is_some();
    let (key, value) = last.or_else(|| agent.get_key_value("id"))?;
    let (start, end) = (key.span().start, value.span().end);
    let line = line_of(text, start);
    let prefix = &text[line..start];
    // A dotted key, `zone.allowed`, has the zone before it.
    let is_dotted = prefix.trim_start().trim_end_matches([' ', '.']) == "zone";
    let is_own_line = prefix.trim().is_empty() || is_dotted;
    let zone = if is_of_zone { "" } else { "zone." };
    let mut further = String::new();
    if is_own_line {
        let end_of_line = end_of_line(text, end);
        for (key, patterns) in missing {
            let before = format!("{prefix}{zone}{key} = ");
            further.extend(["\n", &before, &list(patterns)]);
        }
        edits.push((end_of_line..end_of_line, further));
    } else {
        for (key, patterns) in missing {
            let patterns = list(patterns).replace('\n', "");
            further.extend([", ", zone, key, " = ", &patterns]);
        }
        edits.push((end..end, further));
    }
    Some(edits)
}

fn end_of_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end)
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// A list in TOML, on one line if it fits.
fn list(patterns: &[String]) -> String {
    let texts: Vec<String> =
        patterns.iter().map(|pattern| Value::from(pattern.as_str()).to_string()).collect();
    let line = format!("[{}]", texts.join(", "));
    if line.len() <= WIDTH {
        return line;
    }
    let lines: Vec<String> = texts.iter().map(|text| format!("    {text},")).collect();
    format!("[\n{}\n]", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn edited(text: &str) -> Result<String, String> {
        let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let lists = [texts(&["src/ui/**", "a$b"]), texts(&["README.md"])];
        with_zone(text, "ui", [&lists[0], &lists[1]], &|kept| kept.starts_with(['/', '$']))
    }

    #[test]
    fn only_the_two_lists_change_in_whatever_form_they_are() {
        for (before, after) in [
            (
                "# Team\n[[agents]]\nid = \"ui\" # me\n\n[agents.zone] # mine\n# why\nallowed = [\n  \"**\", # all\n]\n\
                 enforce = \"observe\" # for now\n\n[[agents]]\nid = \"api\"\n",
                "# Team\n[[agents]]\nid = \"ui\" # me\n\n[agents.zone] # mine\n# why\nallowed = [\"src/ui/**\", \
                 \"a$$b\"]\nenforce = \"observe\" # for now\nreadable = [\"README.md\"]\n\n[[agents]]\nid = \"api\"\n",
            ),
            (
                "[[agents]]\nid = \"ui\"\nzone.allowed = [\"x\"]\n",
                "[[agents]]\nid = \"ui\"\nzone.allowed = [\"src/ui/**\", \"a$$b\"]\nzone.readable = [\"README.md\"]\n",
            ),
            (
                "[[agents]]\nid = \"ui\"\nzone = { denied = [\"x\"] }\n",
                "[[agents]]\nid = \"ui\"\nzone = { denied = [\"x\"], allowed = [\"src/ui/**\", \"a$$b\"], \
                 readable = [\"README.md\"] }\n",
            ),
            (
                "[[agents]]\nprofile = \"gemini\"\nid = \"ui\" # me\nrestart.policy = \"never\"",
                "[[agents]]\nprofile = \"gemini\"\nid = \"ui\" # me\nzone.allowed = [\"src/ui/**\", \"a$$b\"]\n\
                 zone.readable = [\"README.md\"]\nrestart.policy = \"never\"",
            ),
            (
                "agents = [{ id = \"api\" }, { id = \"ui\" }]",
                "agents = [{ id = \"api\" }, { id = \"ui\", zone.allowed = [\"src/ui/**\", \"a$$b\"], \
                 zone.readable = [\"README.md\"] }]",
            ),
        ] {
            assert_eq!(edited(before).as_deref(), Ok(after));
            // Once more changes nothing.
            assert_eq!(edited(after).as_deref(), Ok(after));
        }
    }

    #[test]
    fn patterns_that_are_kept_stand_behind_the_new_ones() {
        let text =
            "[[agents]]\nid = \"ui\"\nzone.allowed = [\"/srv/**\", \"${HOME}/x\", \"lib\"]\n";
        let lists = "zone.allowed = [\"src/ui/**\", \"a$$b\", \"/srv/**\", \"${HOME}/x\"]\n\
                     zone.readable = [\"README.md\"]\n";
        let after = format!("[[agents]]\nid = \"ui\"\n{lists}");
        assert_eq!(edited(text), Ok(after.clone()));
        assert_eq!(edited(&after), Ok(after));
    }

    #[test]
    fn what_can_not_be_changed_alone_is_refused() {
        let told = edited("[[agents]]\nid = \"api\"\n").unwrap_err();
        assert_eq!(told, "no table [[agents]] has the id \"ui\"");
        assert!(edited("[[agents]]\nid = \"ui\"\nzone = 3\n").is_err());
        let empty = "[[agents]]\nid = \"ui\"\n[agents.zone] # mine\n[team]\n";
        let lists = "allowed = [\"src/ui/**\", \"a$$b\"]\nreadable = [\"README.md\"]\n";
        let after = empty.replace("# mine\n", &format!("# mine\n{lists}"));
        assert_eq!(edited(empty), Ok(after));
    }

    #[test]
    fn a_long_list_has_a_line_for_each_pattern() {
        let long: Vec<String> = (0..20).map(|at| format!("src/folder/{at}/**")).collect();
        let text = "[[agents]]\nid = \"ui\"\n[agents.zone]\nallowed = []\n";
        let edited = with_zone(text, "ui", [&long, &[]], &|_| false).unwrap();
        assert!(edited.contains("allowed = [\n    \"src/folder/0/**\",\n"), "{edited}");
        // What may be read is said, too.
        assert!(edited.contains("readable = []\n"), "{edited}");
    }
}
