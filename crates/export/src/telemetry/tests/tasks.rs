//! Tasks: the turn of the agent that works on one is below the call that gave it.

use expect_test::expect;

use super::{fold, fold_all, record, task, turn_end, update};
use crate::model::{Event, Record, TaskId, TaskState};

fn places(spans: &str) -> String {
    let lines = spans.lines().filter(|line| !line.starts_with("  ") || line.contains("task"));
    lines.map(|line| format!("{line}\n")).collect::<Vec<_>>().concat()
}

/// The turn of a lead that gives a task.
fn given(middle: Vec<(u64, Event)>) -> Vec<(u64, Event)> {
    let call =
        r#"{"sessionUpdate":"tool_call","toolCallId":"d1","title":"mcp__eisen__delegate_task"}"#;
    let done = r#"{"sessionUpdate":"tool_call_update","toolCallId":"d1","status":"completed"}"#;
    let mut events = vec![
        (2_000, record("lead", Record::TurnBegan, 2_000)),
        (2_100, update("lead", call, 2_100)),
        (2_200, task("lead", "ui", false, TaskState::Running, 2_200)),
    ];
    events.extend(middle);
    events.push((4_100, update("lead", done, 4_100)));
    events.push((4_200, turn_end("lead", "end_turn", None)));
    events
}

#[test]
fn a_delegated_task_is_below_the_call_that_gave_it() {
    let spans = fold_all(
        &mut fold(false, None),
        &given(vec![
            (2_300, record("ui", Record::TurnBegan, 2_300)),
            (2_310, task("lead", "ui", true, TaskState::Running, 2_310)),
            (3_000, task("lead", "ui", true, TaskState::NeedsApproval, 3_000)),
            (3_900, turn_end("ui", "end_turn", None)),
            (4_000, task("lead", "ui", true, TaskState::Done, 4_000)),
        ]),
    );
    expect![[r#"
        6/10 in 9 invoke_agent ui (client, 2300-3900)
        6/9 in 4 invoke_workflow shop (internal, 2200-4000)
          eisen.task.id = t-1
          eisen.task.by = lead
          eisen.task.state = done
        6/4 in 8 execute_tool delegate_task (internal, 2100-4100)
          gen_ai.tool.name = delegate_task
        6/7 invoke_workflow shop (internal, 2000-4200)
        6/8 in 7 invoke_agent lead (client, 2000-4200)
    "#]]
    .assert_eq(&places(&spans));
}

#[test]
fn tasks_that_are_given_at_once_are_below_their_own_calls() {
    let call = |id: &str| {
        format!(r#"{{"sessionUpdate":"tool_call","toolCallId":"{id}","title":"delegate_task"}}"#)
    };
    let another = |agent: &str, at| {
        let Event::Task(mut report) = task("lead", agent, false, TaskState::Running, at) else {
            unreachable!()
        };
        report.id = TaskId::new(format!("t-{agent}"));
        Event::Task(report)
    };
    let mut fold = fold(false, None);
    let spans = fold_all(
        &mut fold,
        &[
            (2_000, record("lead", Record::TurnBegan, 2_000)),
            (2_100, update("lead", &call("d1"), 2_100)),
            (2_100, update("lead", &call("d2"), 2_100)),
            (2_200, another("ui", 2_200)),
            (2_201, another("api", 2_201)),
            (2_300, turn_end("lead", "end_turn", None)),
        ],
    );
    fold.end(3_000);
    let spans = spans + &super::shown(&fold.take());
    expect![[r#"
        7/4 in 9 execute_tool delegate_task (internal, 2100-2300)
        7/5 in 9 execute_tool delegate_task (internal, 2100-2300)
        7/8 invoke_workflow shop (internal, 2000-2300)
        7/9 in 8 invoke_agent lead (client, 2000-2300)
        7/10 in 4 invoke_workflow shop (internal, 2200-3000)
        7/11 in 5 invoke_workflow shop (internal, 2201-3000)
        2/3 run shop (internal, 1000-3000)
    "#]]
    .assert_eq(
        &spans.split_inclusive('\n').filter(|line| !line.starts_with("  ")).collect::<String>(),
    );
}

#[test]
fn the_turn_of_a_task_is_found_also_if_it_is_said_before_it_began() {
    let spans = fold_all(
        &mut fold(false, None),
        &given(vec![
            // Another prompt, whose end is on its way.
            (2_150, record("ui", Record::TurnBegan, 2_150)),
            (2_310, task("lead", "ui", true, TaskState::Running, 2_310)),
            (2_320, turn_end("ui", "end_turn", None)),
            (2_330, record("ui", Record::TurnBegan, 2_330)),
            (3_900, turn_end("ui", "refusal", None)),
            (4_000, task("lead", "ui", true, TaskState::Failed, 4_000)),
        ]),
    );
    expect![[r#"
        11/12 invoke_workflow shop (internal, 2150-2320)
        11/13 in 12 invoke_agent ui (client, 2150-2320)
        6/14 in 9 invoke_agent ui (client, 2330-3900)
        6/9 in 4 invoke_workflow shop (internal, 2200-4000)
          eisen.task.id = t-1
          eisen.task.by = lead
          eisen.task.state = failed
          error.type = task_failed
        6/4 in 8 execute_tool delegate_task (internal, 2100-4100)
          gen_ai.tool.name = delegate_task
        6/7 invoke_workflow shop (internal, 2000-4200)
        6/8 in 7 invoke_agent lead (client, 2000-4200)
    "#]]
    .assert_eq(&places(&spans));
    assert!(!spans.contains("src/secret.rs"), "{spans}");
}

#[test]
fn a_turn_that_is_said_to_be_for_a_task_too_late_is_linked_with_it() {
    let call = r#"{"sessionUpdate":"tool_call","toolCallId":"c1","status":"completed"}"#;
    let spans = fold_all(
        &mut fold(false, None),
        &given(vec![
            (2_300, record("ui", Record::TurnBegan, 2_300)),
            (2_305, update("ui", call, 2_305)),
            (2_310, task("lead", "ui", true, TaskState::Running, 2_310)),
            (3_900, turn_end("ui", "end_turn", None)),
        ]),
    );
    let agent = spans.split("invoke_agent ui").nth(1).unwrap();
    assert_eq!(agent.lines().nth(1), Some("  links 6/9"), "{spans}");
}

#[test]
fn a_task_of_a_person_is_a_trace_of_its_own() {
    let spans = fold_all(
        &mut fold(false, None),
        &[
            (2_000, task("orchestrator", "ui", false, TaskState::Running, 2_000)),
            (2_010, task("orchestrator", "ui", true, TaskState::Running, 2_010)),
            (2_020, record("ui", Record::TurnBegan, 2_020)),
            (3_000, turn_end("ui", "end_turn", None)),
            (3_100, task("orchestrator", "ui", true, TaskState::Done, 3_100)),
            (3_200, task("orchestrator", "ui", true, TaskState::Done, 3_200)),
        ],
    );
    expect![[r#"
        5/7 in 6 invoke_agent ui (client, 2020-3000)
        5/6 invoke_workflow shop (internal, 2000-3100)
          eisen.task.id = t-1
          eisen.task.by = orchestrator
          eisen.task.state = done
    "#]]
    .assert_eq(&places(&spans));
}

#[test]
fn a_turn_stays_below_a_task_that_is_told_to_be_over_first() {
    let spans = fold_all(
        &mut fold(false, None),
        &[
            (2_000, task("orchestrator", "ui", false, TaskState::Running, 2_000)),
            (2_010, task("orchestrator", "ui", true, TaskState::Running, 2_010)),
            (2_020, record("ui", Record::TurnBegan, 2_020)),
            (3_000, task("orchestrator", "ui", true, TaskState::Done, 3_000)),
            (3_010, turn_end("ui", "end_turn", None)),
        ],
    );
    assert!(spans.contains("5/7 in 6 invoke_agent ui"), "{spans}");
}
