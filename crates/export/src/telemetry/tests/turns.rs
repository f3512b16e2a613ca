//! Turns: their tree of spans, tokens and cost, and texts only where they are asked for.

use std::collections::HashMap;

use expect_test::expect;

use super::{fold, fold_all, record, text, turn_end, update};
use crate::model::{Charge, Cost, Event, Figure, Model, Record, Spending, TokenKind, Tokens};
use crate::telemetry::{Traceparent, outbox};

fn spending() -> Spending {
    let tokens = Tokens::of(|kind| match kind {
        TokenKind::Input => Figure::Measured(100),
        TokenKind::CachedRead => Figure::Measured(40),
        TokenKind::CachedWrite => Figure::Measured(2),
        TokenKind::Output => Figure::Measured(30),
        TokenKind::Reasoning => Figure::Unknown,
        TokenKind::Total => Figure::Measured(172),
    });
    let cost = Charge::Estimated(Cost { amount: 0.25, currency: text("USD") });
    Spending { model: None, tokens: Some(tokens), cost: Some(cost) }
}

fn a_turn() -> Vec<(u64, Event)> {
    let model = Model { id: text("claude-sonnet-4-5"), name: text("Sonnet") };
    let prompt = r#"[{"type":"text","text":"Mend the cart, please"}]"#;
    let call = r#"{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Read src/cart.ts","kind":"read",
        "status":"pending","rawInput":{"path":"src/cart.ts","api_key":"k-123"},
        "_meta":{"claudeCode":{"toolName":"Read"}}}"#;
    let done = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed",
        "rawOutput":"total = 1"}"#;
    let failed = r#"{"sessionUpdate":"tool_call","toolCallId":2,"kind":"execute","title":"rm -r src",
        "status":"failed"}"#;
    let chunk = |text: &str| {
        format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
        )
    };
    vec![
        (1_001, record("ui", Record::Model(model), 1_001)),
        (2_000, record("ui", Record::TurnBegan, 2_000)),
        (2_000, record("ui", Record::Prompt(text(prompt)), 2_000)),
        (2_100, update("ui", call, 2_100)),
        (2_200, update("ui", done, 2_200)),
        // A late repetition of a call that is over.
        (2_250, update("ui", done, 2_250)),
        (2_300, update("ui", failed, 2_300)),
        (2_400, update("ui", &chunk("It is "), 2_400)),
        (2_450, update("ui", &chunk("mended."), 2_450)),
        (2_500, record("ui", Record::Spent(spending()), 2_500)),
        (2_600, turn_end("ui", "end_turn", None)),
    ]
}

#[test]
fn a_turn_is_a_trace_with_its_calls_tokens_and_cost() {
    let spans = fold_all(&mut fold(false, None), &a_turn());
    expect![[r#"
        6/4 in 8 execute_tool Read (internal, 2100-2200)
          gen_ai.operation.name = execute_tool
          gen_ai.tool.name = Read
          gen_ai.tool.call.id = c1
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          eisen.tool.kind = read
        6/9 in 8 execute_tool execute (internal, 2300-2300)
          error ""
          gen_ai.operation.name = execute_tool
          gen_ai.tool.name = execute
          gen_ai.tool.call.id = 2
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          eisen.tool.kind = execute
          error.type = tool_failed
        6/7 invoke_workflow shop (internal, 2000-2600)
          links 2/3
          gen_ai.operation.name = invoke_workflow
          gen_ai.agent.name = shop
          gen_ai.conversation.id = ui-s1
          eisen.turn.number = 0
        6/8 in 7 invoke_agent ui (client, 2000-2600)
          gen_ai.operation.name = invoke_agent
          gen_ai.provider.name = anthropic
          gen_ai.agent.id = ui
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          gen_ai.request.model = claude-sonnet-4-5
          gen_ai.usage.input_tokens = 142
          gen_ai.usage.cache_read.input_tokens = 40
          gen_ai.usage.cache_write.input_tokens = 2
          gen_ai.usage.output_tokens = 30
          eisen.cost.amount = 0.25
          eisen.cost.currency = USD
          eisen.cost.estimated = true
          gen_ai.response.finish_reasons = [end_turn]
          eisen.turn.number = 0
    "#]]
    .assert_eq(&spans);
}

#[test]
fn texts_and_arguments_are_there_only_where_they_are_asked_for() {
    let sent = |contents| {
        let mut fold = fold(contents, None);
        for (at, event) in &a_turn() {
            fold.event(event, *at);
        }
        fold.event(&record("ui", Record::TurnBegan, 3_000), 3_000);
        fold.event(&turn_end("ui", "error", Some("can't read src/cart.ts")), 3_100);
        fold.end(4_000);
        String::from_utf8_lossy(&outbox::encode("shop", &fold.take())).into_owned()
    };
    let (with, without) = (sent(true), sent(false));
    for secret in ["Mend the cart", "src/cart.ts", "rm -r src", "It is mended", "total = 1"] {
        assert!(with.contains(secret), "{secret} is missing");
        assert!(!without.contains(secret), "{secret} was sent");
    }
    assert!(with.contains("can't read src"), "the reason is missing");
    assert!(!with.contains("k-123"), "a key was sent");
    assert!(with.contains(
        r#"[{"role":"user","parts":[{"type":"text","content":"Mend the cart, please"}]}]"#
    ));
    assert!(
        with.contains(
            r#"[{"role":"assistant","parts":[{"type":"text","content":"It is mended."}]}]"#
        )
    );
    assert!(without.contains("execute_tool Read") && without.contains("execute_tool execute"));
}

#[test]
fn a_failed_turn_is_an_error_and_what_has_no_end_is_incomplete() {
    let call = r#"{"sessionUpdate":"tool_call","toolCallId":"c1","title":"x"}"#;
    let mut fold = fold(false, None);
    let spans = fold_all(
        &mut fold,
        &[
            (2_000, record("ui", Record::TurnBegan, 2_000)),
            (2_100, update("ui", call, 2_100)),
            (2_200, turn_end("ui", "error", Some("x"))),
            (3_000, record("ui", Record::TurnBegan, 3_000)),
        ],
    );
    expect![[r#"
        6/4 in 8 execute_tool other (internal, 2100-2200)
          gen_ai.operation.name = execute_tool
          gen_ai.tool.name = other
          gen_ai.tool.call.id = c1
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          eisen.incomplete = true
        6/7 invoke_workflow shop (internal, 2000-2200)
          links 2/3
          error ""
          gen_ai.operation.name = invoke_workflow
          gen_ai.agent.name = shop
          gen_ai.conversation.id = ui-s1
          eisen.turn.number = 0
          error.type = turn_failed
        6/8 in 7 invoke_agent ui (client, 2000-2200)
          error ""
          gen_ai.operation.name = invoke_agent
          gen_ai.provider.name = opencode
          gen_ai.agent.id = ui
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          gen_ai.response.finish_reasons = [error]
          eisen.turn.number = 0
          error.type = turn_failed
    "#]]
    .assert_eq(&spans);
    fold.end(4_000);
    let spans = super::shown(&fold.take());
    expect![[r#"
        10/11 invoke_workflow shop (internal, 3000-4000)
          links 2/3
          gen_ai.operation.name = invoke_workflow
          gen_ai.agent.name = shop
          gen_ai.conversation.id = ui-s1
          eisen.incomplete = true
        10/12 in 11 invoke_agent ui (client, 3000-4000)
          gen_ai.operation.name = invoke_agent
          gen_ai.provider.name = opencode
          gen_ai.agent.id = ui
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          eisen.incomplete = true
        2/3 run shop (internal, 1000-4000)
          eisen.team.name = shop
    "#]]
    .assert_eq(&spans);
}

#[test]
fn turns_at_once_are_a_trace_each_and_each_span_has_its_parent_in_it() {
    let mut fold = fold(false, None);
    let agents = ["ui", "api", "lead"];
    let call = r#"{"sessionUpdate":"tool_call","toolCallId":"c1","kind":"execute"}"#;
    let asked = r#"{"toolCall":{"toolCallId":"c1"}}"#;
    for at in [2_000, 3_000] {
        let each = |what: &dyn Fn(&str) -> Event| agents.map(what);
        let ask = |agent: &str| {
            record(agent, Record::PermissionAsked { id: text("1"), params: text(asked) }, at)
        };
        for event in each(&|agent| record(agent, Record::TurnBegan, at))
            .into_iter()
            .chain(each(&|agent| update(agent, call, at)))
            .chain(each(&ask))
            .chain(each(&|agent| turn_end(agent, "end_turn", None)))
        {
            fold.event(&event, at);
        }
    }
    let mut traces: HashMap<Vec<u8>, Vec<_>> = HashMap::new();
    for span in fold.take() {
        traces.entry(span.trace_id.clone()).or_default().push(span);
    }
    assert_eq!(traces.len(), 6);
    for spans in traces.values() {
        let mut names: Vec<_> =
            spans.iter().map(|span| span.name.split(' ').next().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["execute_tool", "invoke_agent", "invoke_workflow", "permission"]);
        let is_there = |id: &[u8]| spans.iter().any(|span| span.span_id == id);
        let roots = spans.iter().filter(|span| !is_there(&span.parent_span_id));
        let roots: Vec<_> = roots.map(|span| (&*span.name, span.parent_span_id.len())).collect();
        assert_eq!(roots, [("invoke_workflow shop", 0)]);
    }
}

#[test]
fn a_run_is_a_part_of_the_span_that_it_was_started_for() {
    let parent = "00-0000000000000000000000000000004d-0000000000000058-00";
    let mut fold = fold(false, Traceparent::parse(parent));
    assert_eq!(
        fold.run_context().to_string(),
        "00-0000000000000000000000000000004d-0000000000000001-00"
    );
    let turn = [
        (2_000, record("ui", Record::TurnBegan, 2_000)),
        (2_200, turn_end("ui", "end_turn", None)),
    ];
    let spans = fold_all(&mut fold, &turn);
    let places: Vec<_> = spans.lines().filter(|line| !line.starts_with("  ")).collect();
    assert_eq!(
        places,
        [
            "77/2 in 88 invoke_workflow shop (internal, 2000-2200)",
            "77/3 in 2 invoke_agent ui (client, 2000-2200)",
        ]
    );
    fold.end(3_000);
    let run = fold.take();
    assert_eq!(super::number(&run[0].parent_span_id), 88);
    // Both bits of a parent in another process.
    assert_eq!(run[0].flags & 0x300, 0x300);
}

#[test]
fn prompts_that_follow_each_other_are_turns_of_their_own() {
    let mut fold = fold(false, None);
    let spans = fold_all(
        &mut fold,
        &[
            (2_000, record("ui", Record::TurnBegan, 2_000)),
            (2_100, record("ui", Record::TurnBegan, 2_100)),
            (2_200, turn_end("ui", "cancelled", None)),
            (2_400, turn_end("ui", "end_turn", None)),
            // Nothing began.
            (2_500, turn_end("ui", "end_turn", None)),
        ],
    );
    let agents: Vec<_> = spans.lines().filter(|line| line.contains(" invoke_agent ")).collect();
    assert_eq!(
        agents,
        [
            "5/7 in 6 invoke_agent ui (client, 2000-2200)",
            "9/11 in 10 invoke_agent ui (client, 2200-2400)",
        ]
    );
}

#[test]
fn a_session_that_is_loaded_repeats_nothing() {
    let call = r#"{"sessionUpdate":"tool_call","toolCallId":"c1","status":"completed"}"#;
    let spans = fold_all(
        &mut fold(false, None),
        &[
            (2_000, update("ui", call, 2_000)),
            (2_000, record("ui", Record::Replays(true), 2_000)),
            (2_000, record("ui", Record::TurnBegan, 2_000)),
            (2_100, update("ui", call, 2_100)),
            (2_200, record("ui", Record::Replays(false), 2_200)),
            (2_300, turn_end("ui", "end_turn", None)),
        ],
    );
    assert!(!spans.contains("execute_tool"), "{spans}");
}
