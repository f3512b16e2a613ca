//! Message chunks that are merged into one update.

use proptest::prelude::*;
use serde_json::Value;

use super::acp;
use super::properties::chunk;
use crate::extract::{Acp, Extractor};
use crate::line::Direction;
use crate::model::{Activity, ActivityKind, UpdateDetail};

fn says(text: &str) -> Vec<u8> {
    let chunk = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"@"}}"#;
    let params = chunk.replace('@', text);
    format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{params}}}}}"#)
        .into()
}

fn observed(acp: &mut Acp, lines: &[Vec<u8>]) -> Vec<Activity> {
    let mut activities = Vec::new();
    for line in lines {
        acp.observe(Direction::ToClient, line, &mut activities);
    }
    acp.flush_updates(&mut activities);
    activities
}

/// Returns the activities in words, and joins the texts of updates that differ in nothing else.
fn joined(activities: Vec<Activity>) -> Vec<(String, Option<String>)> {
    let mut all: Vec<(String, Option<String>)> = Vec::new();
    for Activity { session, kind } in activities {
        let said = if let ActivityKind::Update(update) = &kind
            && let Ok(mut update) = serde_json::from_str::<Value>(update)
            && let Some(text @ Value::String(_)) = update.pointer_mut("/content/text")
        {
            let text = text.take().as_str().unwrap_or_default().to_owned();
            (format!("{session:?} {update}"), Some(text))
        } else {
            (format!("{session:?} {kind:?}"), None)
        };
        match (all.last_mut(), &said.1) {
            (Some((rest, Some(text))), Some(more)) if *rest == said.0 => text.push_str(more),
            _ => all.push(said),
        }
    }
    all
}

#[test]
fn chunks_that_follow_each_other_are_one_update_until_another_line() {
    let mut acp = acp();
    acp.report_updates(UpdateDetail::Merged);
    // The first teaches the shape.
    observed(&mut acp, &[says("-")]);
    let plan = br#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[]}}}"#;
    let lines = [says("a"), says(r"\n"), says("é"), plan.to_vec(), says("b"), says(r"\ud83d")];
    let texts: Vec<_> = joined(observed(&mut acp, &lines));
    let texts: Vec<_> = texts.iter().map(|(_, text)| text.as_deref()).collect();
    assert_eq!(texts[..], [Some("a\né"), None, Some("b\u{fffd}")]);
    let activities = observed(&mut acp, &lines);
    // Half of a surrogate pair stays by itself: joined, it would spoil the others.
    assert_eq!(activities.len(), 4, "{activities:?}");
    assert!(!acp.merges());
}

proptest! {
    #[test]
    fn merged_updates_say_the_same_in_the_same_order(
        lines in prop::collection::vec(chunk(), 2..12),
    ) {
        let (mut each, mut merged) = (acp(), acp());
        merged.report_updates(UpdateDetail::Merged);
        prop_assert_eq!(joined(observed(&mut merged, &lines)), joined(observed(&mut each, &lines)));
    }
}
