//! The choice among the options of a permission request. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::PermissionPolicy;

/// The fields of a permission request that are used; an unknown kind of option does not invalidate
/// the others.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionRequest {
    pub(super) session_id: String,
    #[serde(default)]
    pub(super) options: Vec<Offered>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Offered {
    option_id: String,
    #[serde(default)]
    kind: String,
}

/// Chooses an option by kind. Never `allow_always`: the agent would stop asking, and the zone would
/// no longer see its accesses.
pub(super) fn choose(policy: PermissionPolicy, options: &[Offered]) -> Option<&str> {
    let kinds: &[&str] = match policy {
        PermissionPolicy::Allow | PermissionPolicy::Orchestrator => {
            &["allow_once", "reject_once", "reject_always"]
        }
        PermissionPolicy::Deny => &["reject_once", "reject_always"],
    };
    kinds
        .iter()
        .find_map(|kind| options.iter().find(|option| option.kind == *kind))
        .map(|option| option.option_id.as_str())
}

/// Returns the result of a permission request; None means `cancelled`.
pub(super) fn outcome(chosen: Option<&str>) -> Value {
    match chosen {
        Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option } }),
        None => json!({ "outcome": { "outcome": "cancelled" } }),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn an_option_is_chosen_by_kind_and_only_if_offered() {
        let check = |offered: &[(&str, &str)], chosen: Expect| {
            let options: Vec<_> = offered
                .iter()
                .map(|(id, kind)| Offered { option_id: (*id).into(), kind: (*kind).into() })
                .collect();
            let by = |policy| choose(policy, &options).unwrap_or("cancelled").to_owned();
            let allow = by(PermissionPolicy::Allow);
            let deny = by(PermissionPolicy::Deny);
            chosen.assert_eq(&format!("allow: {allow}, deny: {deny}"));
        };
        let once = ("once", "allow_once");
        let always = ("always", "allow_always");
        let no = ("no", "reject_once");
        let never = ("never", "reject_always");
        check(&[once, always, no, never], expect!["allow: once, deny: no"]);
        check(&[always, never, no, once], expect!["allow: once, deny: no"]);
        check(&[always, never], expect!["allow: never, deny: never"]);
        check(&[always, never, no], expect!["allow: no, deny: no"]);
        check(&[always], expect!["allow: cancelled, deny: cancelled"]);
        check(&[once], expect!["allow: once, deny: cancelled"]);
        check(&[("a", "allow_once"), once], expect!["allow: a, deny: cancelled"]);
        check(&[("x", "allow_for_today"), ("y", "")], expect!["allow: cancelled, deny: cancelled"]);
        check(&[], expect!["allow: cancelled, deny: cancelled"]);
    }
}
