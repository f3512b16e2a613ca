//! Answers as JSON by a schema: what the agent is asked for, and whether its answer fits.

use std::fmt::Write as _;

use anyhow::{Context as _, anyhow};
use jsonschema::Validator;
use serde_json::Value;

/// Faults of an answer that the agent is told.
const MOST_FAULTS: usize = 10;

/// Bytes of a fault.
const LONGEST_FAULT: usize = 300;

/// The form that an answer has to have.
pub(in crate::app) struct AnswerSchema {
    text: String,
    validator: Validator,
}

impl AnswerSchema {
    /// References to other documents are not followed.
    pub(in crate::app) fn new(schema: &Value) -> anyhow::Result<Self> {
        let validator = jsonschema::validator_for(schema);
        let validator = validator.map_err(|error| anyhow!("{error}"));
        let validator = validator.context("the file of --schema is no JSON Schema")?;
        Ok(Self { text: serde_json::to_string_pretty(schema)?, validator })
    }

    /// The prompt with what the answer has to be.
    pub(in crate::app) fn asked_for(&self, prompt: &str) -> String {
        format!(
            "{prompt}\n\nEnd with a message that is one JSON value by this JSON Schema, and nothing else, without a \
             code fence:\n\n{}",
            self.text
        )
    }

    /// Returns the JSON in an answer, or why it does not fit.
    pub(in crate::app) fn check(&self, answer: &str) -> Result<String, String> {
        let json = unfenced(answer);
        let value: Value =
            serde_json::from_str(json).map_err(|error| format!("it is no JSON: {error}"))?;
        let mut faults = String::new();
        for error in self.validator.iter_errors(&value).take(MOST_FAULTS) {
            let mut fault = format!("at `{}`: {error}", error.instance_path());
            fault.truncate(fault.floor_char_boundary(LONGEST_FAULT));
            let _ = write!(faults, "{}{fault}", if faults.is_empty() { "" } else { "; " });
        }
        if faults.is_empty() { Ok(json.to_owned()) } else { Err(faults) }
    }

    /// The prompt after an answer that does not fit.
    pub(in crate::app) fn repair(why: &str) -> String {
        format!(
            "Your last message does not fit the JSON Schema: {why}\n\nAnswer with the corrected JSON value, and \
             nothing else."
        )
    }
}

/// Takes off the code fence that many models put around JSON all the same.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let fenced = || {
        let (_, inner) = answer.strip_suffix("```")?.rsplit_once("```")?;
        let (language, json) = inner.split_once('\n')?;
        matches!(language.trim(), "" | "json").then_some(json.trim())
    };
    fenced().unwrap_or(answer)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_json_by_the_schema_with_or_without_a_fence() {
        let schema = json!({ "type": "object", "required": ["count"], "properties": { "count": { "type": "integer" } } });
        let schema = AnswerSchema::new(&schema).unwrap();
        for answer in [
            "{\"count\": 3}",
            " {\"count\": 3}\n",
            "```json\n{\"count\": 3}\n```",
            "Here it is:\n```\n{\"count\": 3}\n```\n",
        ] {
            assert_eq!(schema.check(answer).unwrap(), "{\"count\": 3}", "{answer}");
        }
        for (answer, why) in [
            ("three", "it is no JSON"),
            ("{}", "\"count\" is a required property"),
            ("{\"count\": \"3\"}", "at `/count`"),
            ("", "it is no JSON"),
        ] {
            let error = schema.check(answer).unwrap_err();
            assert!(error.contains(why), "{answer}: {error}");
        }
        assert!(schema.asked_for("Count.").starts_with("Count.\n\n"));
        assert!(AnswerSchema::new(&json!({ "type": "sheep" })).is_err());
        // Nothing is fetched.
        assert!(AnswerSchema::new(&json!({ "$ref": "http://127.0.0.1:9/x.json" })).is_err());
        assert!(AnswerSchema::new(&json!({ "$ref": "file:///etc/passwd" })).is_err());
    }
}
