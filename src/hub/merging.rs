//! The answers of all teams to one question, as one answer. Pure.

use serde_json::Value;

/// Methods about a code graph, which a hub has not.
pub(super) const OF_GRAPH: [&str; 2] = ["get_graph", "get_layout"];

/// Methods that all teams are asked, unless one is named: they list, or look.
pub(super) const OF_ALL: [&str; 10] = [
    "list_sessions",
    "list_agents",
    "team_status",
    "list_blocked",
    "list_budgets",
    "list_conflicts",
    "list_streams",
    "overlaps",
    "hot_files",
    "check_tasks",
];

/// Puts an answer behind those before it: lists are joined, totals added up; of all else the first one
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
                    (Some(one), Some(two)) if name == "total" => {
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

    #[test]
    fn lists_are_joined_and_totals_added() {
        let mut all = json!({ "tasks": [1], "total": 1, "version": 3 });
        add(&mut all, json!({ "tasks": [2, 3], "total": 2, "version": 4, "more": [5] }));
        assert_eq!(all, json!({ "tasks": [1, 2, 3], "total": 3, "version": 3, "more": [5] }));
        let mut all = json!([1]);
        add(&mut all, json!([2]));
        add(&mut all, json!("x"));
        assert_eq!(all, json!([1, 2]));
    }
}
