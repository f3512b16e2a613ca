//! The answers of all teams to one question, as one answer. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::wire::{AtHub, Facts, Merging};

/// Fields that count.
const COUNTS: [&str; 2] = ["total", "pending"];

/// The items of an answer that is a list, or of the lists in an answer of all teams.
pub(super) fn items<'a>(method: &Facts, answer: &'a mut Value) -> Vec<&'a mut Value> {
    match answer {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) if matches!(method.hub, AtHub::All(_)) => {
            fields.values_mut().filter_map(Value::as_array_mut).flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// The answer to `hot_files`.
#[derive(Serialize, Deserialize)]
struct HotAnswer {
    files: Vec<Value>,
    /// Fields of other versions.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct FileHeat {
    heat: f64,
}

/// Puts the items of all answers in the order that those of one have.
pub(super) fn sort(merge: Merging, answer: &mut Value) {
    if merge == Merging::Hottest
        && let Ok(mut all) = HotAnswer::deserialize(&*answer)
    {
        let heat = |file: &Value| FileHeat::deserialize(file).unwrap_or_default().heat;
        all.files.sort_by(|one, other| heat(other).total_cmp(&heat(one)));
        *answer = serde_json::to_value(all).unwrap_or_default();
    }
}

/// Puts an answer behind those before it: lists are joined, counts added up; of all else the first one
/// stays.
pub(super) fn add(all: &mut Value, next: Value) {
    match (all, next) {
        (Value::Array(all), Value::Array(next)) => all.extend(next),
        (Value::Object(all), Value::Object(next)) => {
            for (name, field) in next {
                let Some(known) = all.get_mut(&name) else {
                    all.insert(name, field);
                    continue;
                };
                match (known.as_u64(), field.as_u64()) {
                    (Some(one), Some(two)) if COUNTS.contains(&name.as_str()) => {
                        *known = one.saturating_add(two).into();
                    }
                    _ => add(known, field),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::{AgentStatus, HotFiles, Method as _};

    #[test]
    fn lists_are_joined_and_counts_added() {
        let mut all = json!({ "tasks": [1], "total": 1, "version": 3 });
        add(&mut all, json!({ "tasks": [2, 3], "total": 2, "version": 4, "more": [5] }));
        assert_eq!(all, json!({ "tasks": [1, 2, 3], "total": 3, "version": 3, "more": [5] }));
        let mut all = json!({ "agents": [{ "pending": 1 }], "pending": 1 });
        add(&mut all, json!({ "agents": [{ "pending": 2 }], "pending": 2 }));
        assert_eq!(all, json!({ "agents": [{ "pending": 1 }, { "pending": 2 }], "pending": 3 }));
        let mut all = json!([1]);
        add(&mut all, json!([2]));
        add(&mut all, json!("x"));
        assert_eq!(all, json!([1, 2]));
    }

    #[test]
    fn the_hottest_file_of_all_hosts_is_first() {
        let mut all = json!({ "files": [{ "heat": 0.5 }, { "heat": 0.1 }] });
        add(&mut all, json!({ "files": [{ "heat": 0.9 }, { "heat": 0.3 }] }));
        sort(Merging::Hottest, &mut all);
        let heats: Vec<_> =
            items(&HotFiles::FACTS, &mut all).iter().map(|it| it["heat"].clone()).collect();
        assert_eq!(heats, [0.9, 0.5, 0.3, 0.1]);
        assert!(items(&AgentStatus::FACTS, &mut all).is_empty());
    }
}
