//! Answers as JSON by a schema: what the agent is asked for, and whether its answer fits.

use std::fmt::Write as _;

use anyhow::{Context as _, anyhow, bail};
use boon::{CompileError, Compiler, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use regex::Regex;
use serde_json::Value;

/// The name of a schema that has none of its own. Its references are relative to this name.
const PLACE: &str = "eisen:///schema";

/// Faults of an answer that the agent is told.
const MOST_FAULTS: usize = 10;

/// Bytes of a fault.
const LONGEST_FAULT: usize = 300;

/// Limits of an agent's schema, with its references followed: values in all, and levels.
const MOST_VALUES: usize = 5_000;
const MOST_LEVELS: usize = 200;

/// Bytes of all patterns of an agent's schema: each is compiled.
const LONGEST_PATTERNS: usize = 4096;

/// The bytes of an answer times the alternatives of an agent's schema, each of which may be a fault of each value.
const MOST_TRIED: usize = 4 << 20;

/// The form that an answer has to have.
pub(crate) struct AnswerSchema {
    text: String,
    schemas: Schemas,
    index: SchemaIndex,
    /// Bytes of an answer that is checked.
    longest: usize,
}

impl AnswerSchema {
    /// References to other documents are not followed.
    pub(crate) fn new(schema: &Value) -> anyhow::Result<Self> {
        let compiled = compile(schema).context("the file of --schema is no JSON Schema");
        let (schemas, index) = compiled?;
        Ok(Self {
            text: serde_json::to_string_pretty(schema)?,
            schemas,
            index,
            longest: usize::MAX,
        })
    }

    /// As [`AnswerSchema::new`], of a schema that an agent wrote. Its supervisor goes on for others: no check
    /// of an answer may take long, or go round in a circle.
    pub(crate) fn of_agent(schema: &Value) -> anyhow::Result<Self> {
        let mut left = Left { values: MOST_VALUES, patterns: LONGEST_PATTERNS, alternatives: 1 };
        bounded(schema, schema, MOST_LEVELS, &mut left)?;
        Ok(Self { longest: MOST_TRIED / left.alternatives, ..Self::new(schema)? })
    }

    /// The prompt with what the answer has to be.
    pub(crate) fn asked_for(&self, prompt: &str) -> String {
        format!(
            "{prompt}\n\nEnd with a message that is one JSON value by this JSON Schema, and nothing else, without a \
             code fence:\n\n{}",
            self.text
        )
    }

    /// Returns the JSON in an answer, or why it does not fit.
    pub(crate) fn check(&self, answer: &str) -> Result<String, String> {
        let json = unfenced(answer);
        if json.len() > self.longest {
            return Err(format!(
                "it has more than the {} bytes that this schema allows",
                self.longest
            ));
        }
        let value: Value =
            serde_json::from_str(json).map_err(|error| format!("it is no JSON: {error}"))?;
        match self.schemas.validate(&value, self.index) {
            Ok(()) => Ok(json.to_owned()),
            Err(error) => Err(faults(&error)),
        }
    }

    /// The prompt after an answer that does not fit.
    pub(crate) fn repair(why: &str) -> String {
        format!(
            "Your last message does not fit the JSON Schema: {why}\n\nAnswer with the corrected JSON value, and \
             nothing else."
        )
    }
}

fn compile(schema: &Value) -> anyhow::Result<(Schemas, SchemaIndex)> {
    let said = |error| match error {
        CompileError::ValidationError { src, .. } => anyhow!("{}", faults(&src)),
        error => anyhow!("{error:#}"),
    };
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.use_loader(Box::new(Nowhere));
    compiler.add_resource(PLACE, without_fractions(schema)).map_err(said)?;
    let index = compiler.compile(PLACE, &mut schemas).map_err(said)?;
    Ok((schemas, index))
}

/// The schema without those `multipleOf` that are no integers: in binary fractions 19.99 is no multiple of 0.01.
fn without_fractions(schema: &Value) -> Value {
    match schema {
        Value::Array(all) => all.iter().map(without_fractions).collect(),
        Value::Object(all) => {
            let is_kept = |key: &str, value: &Value| key != "multipleOf" || !value.is_f64();
            let kept = all.iter().filter(|(key, value)| is_kept(key, value));
            let kept = kept.map(|(key, value)| match key.as_str() {
                "const" | "enum" => (key.clone(), value.clone()),
                _ => (key.clone(), without_fractions(value)),
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

/// Loads no document.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err("references to other documents are not followed".into())
    }
}

/// The faults of a value, in one line.
fn faults(error: &ValidationError<'_, '_>) -> String {
    let (mut text, mut count, mut left) = (String::new(), 0, vec![error]);
    while let Some(error) = left.pop()
        && count < MOST_FAULTS
    {
        left.extend(error.causes.iter().rev());
        let is_within = matches!(
            error.kind,
            ErrorKind::Group
                | ErrorKind::Schema { .. }
                | ErrorKind::Reference { .. }
                | ErrorKind::AllOf
        );
        // Its causes say more.
        if is_within && !error.causes.is_empty() {
            continue;
        }
        let mut fault = format!("at `{}`: {}", error.instance_location, error.kind);
        fault.truncate(fault.floor_char_boundary(LONGEST_FAULT));
        let _ = write!(text, "{}{fault}", if text.is_empty() { "" } else { "; " });
        count += 1;
    }
    text
}

/// The rest of what an agent's schema may have, and what it has of alternatives.
struct Left {
    values: usize,
    patterns: usize,
    alternatives: usize,
}

impl Left {
    /// Takes a pattern off, which has to be one that can be compiled.
    fn pattern(&mut self, pattern: &str) -> anyhow::Result<()> {
        let left = self.patterns.checked_sub(pattern.len());
        self.patterns = left.context("the schema of an agent has too many or too long patterns")?;
        Regex::new(pattern).map(drop).map_err(|error| anyhow!("the pattern `{pattern}`: {error}"))
    }
}

/// Whether a schema stays small with its references followed. `levels`: how deep it may be.
fn bounded(value: &Value, whole: &Value, levels: usize, left: &mut Left) -> anyhow::Result<()> {
    let (Some(levels), Some(values)) = (levels.checked_sub(1), left.values.checked_sub(1)) else {
        bail!(
            "the schema of an agent is too large with its references, or they go round in a circle"
        );
    };
    left.values = values;
    match value {
        Value::Array(all) => all.iter().try_for_each(|it| bounded(it, whole, levels, left)),
        Value::Object(all) => all.iter().try_for_each(|(key, it)| match (key.as_str(), it) {
            ("$ref", Value::String(to)) => {
                // An escaped character would name another part here than where the schema is compiled.
                let at = to.strip_prefix('#').filter(|at| !at.contains('%'));
                let at = at.and_then(|at| whole.pointer(at)).with_context(|| {
                    format!(
                        "the schema of an agent may only refer to a part of itself, not to `{to}`"
                    )
                })?;
                bounded(at, whole, levels, left)
            }
            ("$dynamicRef" | "$recursiveRef" | "$id" | "id", Value::String(_)) => {
                bail!("the schema of an agent may have no `{key}`")
            }
            ("pattern", Value::String(pattern)) => left.pattern(pattern),
            ("patternProperties", Value::Object(all)) => {
                all.keys().try_for_each(|pattern| left.pattern(pattern))?;
                bounded(it, whole, levels, left)
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                left.alternatives += all.len();
                bounded(it, whole, levels, left)
            }
            _ => bounded(it, whole, levels, left),
        }),
        _ => Ok(()),
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
    fn a_schema_of_an_agent_is_bounded_with_its_references() {
        let refused =
            |schema: Value| AnswerSchema::of_agent(&schema).err().map(|it| it.to_string());
        let shared = json!({ "properties": { "a": { "$ref": "#/$defs/n" } }, "$defs": { "n": { "type": "integer" } } });
        assert_eq!(refused(shared), None);
        assert!(refused(json!({ "$ref": "#" })).unwrap().contains("in a circle"));
        let mut steps = json!({ "s40": { "type": "integer" } });
        for at in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/s{}", at + 1) });
            steps[format!("s{at}")] = json!({ "allOf": [next, next] });
        }
        let doubled = json!({ "$defs": steps, "$ref": "#/$defs/s0" });
        assert!(refused(doubled).unwrap().contains("too large"));
        assert!(refused(json!({ "$ref": "other.json" })).unwrap().contains("part of itself"));
        assert!(refused(json!({ "$dynamicRef": "#a" })).unwrap().contains("may have no"));
        assert!(refused(json!({ "type": "sheep" })).is_some());
        let escaped = json!({ "$defs": { "a%30": true, "a0": { "$ref": "#/$defs/a%30" } }, "$ref": "#/$defs/a%30" });
        assert!(refused(escaped).unwrap().contains("part of itself"));
        assert!(
            refused(json!({ "prefixItems": vec![true; 6_000] })).unwrap().contains("too large")
        );
        assert!(
            refused(json!({ "pattern": "a".repeat(5_000) })).unwrap().contains("too long patterns")
        );
        assert!(refused(json!({ "pattern": "(a{999}){999}" })).unwrap().contains("the pattern"));
        assert!(
            refused(json!({ "patternProperties": { "(": true } })).unwrap().contains("the pattern")
        );
        assert_eq!(refused(json!({ "pattern": "^a+$" })), None);
    }

    #[test]
    fn a_long_answer_to_an_agents_wide_schema_is_not_tried() {
        let wide = json!({ "items": { "anyOf": vec![json!({ "type": "null" }); 1_000] } });
        let long = serde_json::to_string(&vec![1; 4_000]).unwrap();
        let why = AnswerSchema::of_agent(&wide).unwrap().check(&long).unwrap_err();
        assert!(why.contains("bytes that this schema allows"), "{why}");
        let narrow = json!({ "items": { "type": "integer" } });
        assert!(AnswerSchema::of_agent(&narrow).unwrap().check(&long).is_ok());
    }

    #[test]
    fn decimal_fractions_are_multiples_of_decimal_fractions() {
        let schema = AnswerSchema::new(&json!({ "multipleOf": 0.01 })).unwrap();
        assert!(schema.check("19.99").is_ok());
        let schema = AnswerSchema::new(&json!({ "multipleOf": 2 })).unwrap();
        assert!(schema.check("3").is_err());
    }

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
            ("{}", "missing properties 'count'"),
            ("{\"count\": \"3\"}", "at `/count`"),
            ("", "it is no JSON"),
        ] {
            let error = schema.check(answer).unwrap_err();
            assert!(error.contains(why), "{answer}: {error}");
        }
        assert!(schema.asked_for("Count.").starts_with("Count.\n\n"));
        // The drafts are known, and patterns take linear time.
        for draft in
            ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"]
        {
            let a = json!({ "$schema": draft, "definitions": { "a": { "pattern": "^a" } }, "$ref": "#/definitions/a" });
            let a = AnswerSchema::new(&a).unwrap();
            assert_eq!(a.check("\"abc\"").unwrap(), "\"abc\"");
            assert_eq!(a.check("\"b\"").unwrap_err(), "at ``: 'b' does not match pattern '^a'");
        }
        assert!(AnswerSchema::new(&json!({ "pattern": "^(?!a)" })).is_err());
        assert!(AnswerSchema::new(&json!({ "type": "sheep" })).is_err());
        // Nothing is fetched.
        assert!(AnswerSchema::new(&json!({ "$ref": "http://127.0.0.1:9/x.json" })).is_err());
        assert!(AnswerSchema::new(&json!({ "$ref": "file:///etc/passwd" })).is_err());
    }
}
