//! The model of a session, in all its forms.

use expect_test::{Expect, expect};

use super::{acp, observe};
use crate::model::ActivityKind;

fn check(lines: &[&str], expected: &Expect) {
    let mut models = Vec::new();
    for activity in observe(&mut acp(), lines) {
        if let ActivityKind::Model(model) = activity.kind {
            models.push(format!("{} {} ({})", activity.session, model.id, model.name));
        }
    }
    expected.assert_eq(&models.join(", "));
}

const NEW: &str = r#">{"id":1,"method":"session/new","params":{"cwd":"/w"}}"#;
const LOAD: &str = r#">{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w"}}"#;
const RESUME: &str = r#">{"id":1,"method":"session/resume","params":{"sessionId":"s"}}"#;
const MODELS: &str = r#"{"id":1,"result":{"sessionId":"s","models":{"currentModelId":"a","availableModels":[{"modelId":"a","name":"Model A"},{"modelId":"b","name":"Model B"},7]}}}"#;
const OPTIONS: &str = r#"{"id":1,"result":{"sessionId":"s","configOptions":[
    {"id":"effort","category":"thought_level","currentValue":"high","options":[]},
    {"id":"x","category":"model","currentValue":"b","options":[{"group":"g","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]}]}}"#;

#[test]
fn the_model_is_reported_when_a_session_opens() {
    check(&[NEW, MODELS], &expect!["s a (Model A)"]);
    check(&[LOAD, MODELS], &expect!["s a (Model A)"]);
    check(&[RESUME, OPTIONS], &expect!["s b (B)"]);
    check(
        &[NEW, r#"{"id":1,"result":{"sessionId":"s","models":null,"configOptions":{}}}"#],
        &expect![""],
    );
    check(&[NEW, r#"{"id":1,"error":{"code":1,"message":"no"}}"#], &expect![""]);
    // By name where there is no category; what has no name is called by its id.
    let plain = r#"{"id":1,"result":{"sessionId":"s","configOptions":[{"id":"model","currentValue":"z","options":[]}]}}"#;
    check(&[NEW, plain], &expect!["s z (z)"]);
}

#[test]
fn a_model_change_is_reported_when_it_is_accepted() {
    let set_model =
        r#">{"id":2,"method":"session/set_model","params":{"sessionId":"s","modelId":"b"}}"#;
    let ok = r#"{"id":2,"result":{}}"#;
    check(&[NEW, MODELS, set_model], &expect!["s a (Model A)"]);
    check(&[NEW, MODELS, set_model, ok], &expect!["s a (Model A), s b (Model B)"]);
    let refused = r#"{"id":2,"error":{"code":1,"message":"no"}}"#;
    check(&[NEW, MODELS, set_model, refused], &expect!["s a (Model A)"]);

    let set = |option: &str, value: &str| {
        format!(
            r#">{{"id":2,"method":"session/set_config_option","params":{{"sessionId":"s","configId":"{option}","value":{value}}}}}"#
        )
    };
    check(&[NEW, OPTIONS, &set("x", "\"a\""), ok], &expect!["s b (B), s a (A)"]);
    check(&[NEW, OPTIONS, &set("effort", "\"low\""), ok], &expect!["s b (B)"]);
    check(&[NEW, OPTIONS, &set("x", "true"), ok], &expect!["s b (B)"]);
    // The agent's whole state counts more than what was asked.
    let state = OPTIONS
        .replace("\"id\":1", "\"id\":2")
        .replace("\"currentValue\":\"b\"", "\"currentValue\":\"c\"");
    check(&[NEW, OPTIONS, &set("x", "\"a\""), &state], &expect!["s b (B), s c (c)"]);
    let update = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"x","category":"model","currentValue":"a","options":[{"value":"a","name":"A2"}]}]}}}"#;
    check(&[NEW, OPTIONS, update], &expect!["s b (B), s a (A2)"]);
}

#[test]
fn a_load_brings_back_neither_old_counts_nor_old_compactions() {
    let count = |used: u64| {
        format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"usage_update","used":{used},"size":10}}}}}}"#
        )
    };
    let compacted = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"compaction_update","compactionId":"k","status":"completed"}}}"#;
    let observed = |answer: &str| {
        let observed =
            observe(&mut acp(), &[LOAD, &count(9), compacted, &count(4), answer, &count(5)]);
        let observed = observed.into_iter().filter_map(|activity| match activity.kind {
            ActivityKind::Usage { usage, .. } => Some(usage.used.to_string()),
            ActivityKind::Compacted => Some("compacted".to_owned()),
            _ => None,
        });
        observed.collect::<Vec<_>>()
    };
    assert_eq!(observed(r#"{"id":1,"result":{}}"#), ["4", "5"]);
    assert_eq!(observed(r#"{"id":1,"error":{"code":1,"message":"no"}}"#), ["5"]);
}
