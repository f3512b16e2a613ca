//! Answers to an agent's questions where no user is present: no text is invented. Pure.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    CreateElicitationResponse, ElicitationAcceptAction, ElicitationAction, ElicitationContentValue,
    ElicitationPropertySchema, ElicitationSchema, Error, MultiSelectItems,
    MultiSelectPropertySchema, RequestId, StringPropertySchema,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{PermissionPolicy, rpc};
use crate::model::code;

/// The fields of a question that are used. The protocol's own type reports that it failed to
/// decode, but not where.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    mode: String,
    #[expect(dead_code, reason = "it must be there, and is for people")]
    message: String,
    pub(super) session_id: Option<String>,
    pub(super) request_id: Option<RequestId>,
    requested_schema: Option<Box<RawValue>>,
}

/// Returns the answer to a question; an error if it cannot be decoded. With `allow`, a form is
/// submitted with the agent's own defaults if they complete it. All other questions are declined,
/// and no URL is opened.
pub(super) fn answer(
    policy: PermissionPolicy,
    question: &Question,
) -> Result<CreateElicitationResponse, Error> {
    if question.session_id.is_none() && question.request_id.is_none() {
        return Err(rpc::failure(
            code::INVALID_PARAMS,
            "Invalid params: it names no session and no request",
        ));
    }
    let mut filled = None;
    if question.mode == "form" {
        let schema = rpc::decode(question.requested_schema.as_deref())?;
        filled = untouched(&schema).filter(|_| policy == PermissionPolicy::Allow);
    }
    Ok(CreateElicitationResponse::new(filled.map_or(ElicitationAction::Decline, |content| {
        ElicitationAction::Accept(ElicitationAcceptAction::new().content(content))
    })))
}

/// The answer to a question of a cancelled turn.
pub(super) fn cancelled() -> CreateElicitationResponse {
    CreateElicitationResponse::new(ElicitationAction::Cancel)
}

/// Returns the content of a form submitted unchanged; None if a required field is empty.
fn untouched(schema: &ElicitationSchema) -> Option<BTreeMap<String, ElicitationContentValue>> {
    let filled = |(name, property): (&String, _)| Some((name.clone(), default(property)?));
    let content: BTreeMap<_, _> = schema.properties.iter().filter_map(filled).collect();
    let required = schema.required.iter().flatten();
    required.into_iter().all(|name| content.contains_key(name)).then_some(content)
}

/// Returns a field's default, if it is a valid value of the field.
fn default(property: &ElicitationPropertySchema) -> Option<ElicitationContentValue> {
    use ElicitationPropertySchema as Property;
    match property {
        Property::String(field) => {
            let text = field.default.clone().filter(|text| takes(field, text))?;
            Some(ElicitationContentValue::String(text))
        }
        Property::Integer(field) => field
            .default
            .filter(|number| field.minimum.is_none_or(|least| *number >= least))
            .filter(|number| field.maximum.is_none_or(|most| *number <= most))
            .map(ElicitationContentValue::Integer),
        Property::Number(field) => field
            .default
            .filter(|number| field.minimum.is_none_or(|least| *number >= least))
            .filter(|number| field.maximum.is_none_or(|most| *number <= most))
            .map(ElicitationContentValue::Number),
        Property::Boolean(field) => field.default.map(ElicitationContentValue::Boolean),
        Property::Array(field) => {
            let chosen = field.default.clone().filter(|chosen| offers(field, chosen))?;
            Some(ElicitationContentValue::StringArray(chosen))
        }
        _ => None,
    }
}

/// Patterns and formats are not checked: the default is the agent's own text.
fn takes(field: &StringPropertySchema, text: &str) -> bool {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let is_value = |values: &Vec<String>| values.iter().any(|value| value == text);
    field.min_length.is_none_or(|least| length >= least)
        && field.max_length.is_none_or(|most| length <= most)
        && field.enum_values.as_ref().is_none_or(is_value)
        && field.one_of.as_ref().is_none_or(|of| of.iter().any(|option| option.value == text))
}

fn offers(field: &MultiSelectPropertySchema, chosen: &[String]) -> bool {
    let count = chosen.len() as u64;
    let is_offered = |value: &String| match &field.items {
        MultiSelectItems::String(items) => items.values.contains(value),
        MultiSelectItems::Titled(items) => items.options.iter().any(|it| it.value == *value),
        _ => false,
    };
    field.min_items.is_none_or(|least| count >= least)
        && field.max_items.is_none_or(|most| count <= most)
        && chosen.iter().all(is_offered)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn answered(policy: PermissionPolicy, mut question: Value) -> Value {
        question["sessionId"] = json!("s");
        question["message"] = json!("?");
        // A raw value is read from text alone.
        let question: Question = serde_json::from_str(&question.to_string()).unwrap();
        serde_json::to_value(answer(policy, &question).unwrap()).unwrap()
    }

    fn form(properties: &Value, required: &Value) -> Value {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        json!({ "mode": "form", "requestedSchema": schema })
    }

    #[test]
    fn a_form_is_sent_as_the_agent_filled_it_in() {
        let properties = json!({
            "name": { "type": "string", "default": "main" },
            "style": { "type": "string", "enum": ["a", "b"], "default": "b" },
            "port": { "type": "integer", "default": 80, "minimum": 1 },
            "share": { "type": "number", "default": 0.5 },
            "sure": { "type": "boolean", "default": false },
            "tags": { "type": "array", "items": { "anyOf": [{ "const": "x", "title": "X" }] }, "default": ["x"] },
            "note": { "type": "string" },
        });
        let question = form(&properties, &json!(["name", "sure"]));
        let expected = json!({ "action": "accept", "content": {
            "name": "main", "style": "b", "port": 80, "share": 0.5, "sure": false, "tags": ["x"],
        } });
        assert_eq!(answered(PermissionPolicy::Allow, question.clone()), expected);
        for policy in [PermissionPolicy::Deny, PermissionPolicy::Orchestrator] {
            assert_eq!(answered(policy, question.clone()), json!({ "action": "decline" }));
        }
        let empty = json!({ "action": "accept", "content": {} });
        for required in [json!(null), json!([])] {
            assert_eq!(answered(PermissionPolicy::Allow, form(&json!({}), &required)), empty);
        }
    }

    #[test]
    fn nothing_is_invented() {
        let field = |field: Value| form(&json!({ "x": field }), &json!(["x"]));
        let scope = json!({ "mode": "url", "elicitationId": "e", "url": "https://example.com" });
        for question in [
            field(json!({ "type": "string" })),
            field(json!({ "type": "string", "default": null })),
            field(json!({ "type": "string", "default": 7 })),
            field(json!({ "type": "string", "enum": ["a", "b"] })),
            field(json!({ "type": "string", "enum": ["a", "b"], "default": "c" })),
            field(
                json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A" }], "default": "A" }),
            ),
            field(json!({ "type": "string", "minLength": 2, "default": "é" })),
            field(json!({ "type": "integer", "maximum": 3, "default": 4 })),
            field(json!({ "type": "number", "minimum": 3, "default": 2.5 })),
            field(json!({ "type": "boolean" })),
            field(
                json!({ "type": "array", "items": { "type": "string", "enum": ["a"] }, "minItems": 1, "default": [] }),
            ),
            field(
                json!({ "type": "array", "items": { "type": "string", "enum": ["a"] }, "default": ["b"] }),
            ),
            field(json!({ "type": "colour", "default": "red" })),
            form(&json!({}), &json!(["elsewhere"])),
            scope,
            json!({ "mode": "voice", "default": "yes" }),
        ] {
            let answer = answered(PermissionPolicy::Allow, question.clone());
            assert_eq!(answer, json!({ "action": "decline" }), "{question}");
        }
    }
}
