//! Accesses that rules of `[[routing]]` put before the owners of their paths.

use super::rules::{on, owned, rule};
use super::*;
use crate::model::{Decide, OwnerAnswer, TokensSaved};

#[allow(clippy::unnecessary_wraps, reason = "as an owner answers")]
pub(super) fn answer_of(owner: &str, text: &str) -> Result<(OwnerAnswer, String), String> {
    Ok((OwnerAnswer { owner: AgentId::new(owner), saved: None }, text.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn an_owner_answers_in_place_of_the_file() {
    let bench = ruled(false, lead(), owned(vec![on("own/**", Decide::Owner)]), Vec::new());
    let mut questions = bench.routing.take_questions().unwrap();
    let asked = bench.ask(read("a", "s", "own/x"));
    let question = questions.recv().await.unwrap();
    assert_eq!((question.asker.as_str(), &*question.path), ("a", "own/x"));
    assert_eq!(question.owners, [AgentId::new("o")]);
    let saved = Some(TokensSaved { tokens: 7, is_estimated: false });
    let answer = OwnerAnswer { owner: AgentId::new("o"), saved };
    bench.routing.owner_answered(question.id, Ok((answer.clone(), "it is so".to_owned()))).await;
    assert_eq!(asked.await.unwrap(), Some(Settlement::Answered("it is so".to_owned())));
    assert_eq!(bench.routing.list(None).await[0].owner_answer, Some(answer));
    // A program gets no answer: the agent has it with the denial, and by its next prompt.
    let asked = bench.ask(Request { via: Via::Kernel, ..read("a", "s", "own/y") });
    let question = questions.recv().await.unwrap();
    bench.routing.owner_answered(question.id, answer_of("o", "y is empty")).await;
    assert!(matches!(asked.await.unwrap(), Some(Settlement::Denied { .. })));
    let notes = bench.routing.notes(AgentId::new("a")).await;
    assert_eq!(notes, ["- read `own/y`: denied: its owner, `o`, answers: y is empty"]);
    // Nobody asks an owner for itself, nor for what it would write.
    for request in
        [read("o", "s", "own/x"), Request { action: Action::Write, ..read("a", "s", "own/x") }]
    {
        let settled = bench.routing.request(request).await;
        assert!(matches!(settled, Some(Settlement::Denied { .. })), "{settled:?}");
    }
    assert!(questions.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn without_an_owner_s_answer_the_next_rule_counts() {
    let owner = || on("own/**", Decide::Owner);
    let failed = || Err("`o` is not ready".to_owned());
    for (next, hold, settles) in [
        (None, false, "denied"),
        (None, true, "pending"),
        (Some(Decide::Allow), false, "allowed"),
        (Some(Decide::Person), false, "pending"),
        (Some(Decide::Deny), true, "denied"),
    ] {
        let specs = [owner()].into_iter().chain(next.map(rule)).collect();
        let bench = ruled(hold, lead(), owned(specs), Vec::new());
        let mut questions = bench.routing.take_questions().unwrap();
        let asked = bench.ask(read("a", "s", "own/x"));
        let question = questions.recv().await.unwrap();
        bench.routing.owner_answered(question.id.clone(), failed()).await;
        bench.routing.settled(&AgentId::new("a")).await;
        assert_eq!(bench.statuses().await, [format!("b1 {settles}")], "{next:?}");
        if settles == "denied" {
            let Some(Settlement::Denied { message, .. }) = asked.await.unwrap() else {
                unreachable!()
            };
            let message = message.unwrap();
            assert_eq!(message, "Its owner could not be asked: `o` is not ready.");
        } else {
            let is_briefed = bench.routing.briefing().await.is_some();
            assert_eq!(is_briefed, next.is_none() && settles == "pending");
        }
        // A late answer changes nothing that was settled.
        bench.routing.owner_answered(question.id, answer_of("o", "late")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_decides_in_place_of_an_owner_has_time_of_its_own() {
    let failed = || Err("`o` is not ready".to_owned());
    let specs = vec![on("own/**", Decide::Owner), rule(Decide::Person)];
    let bench = ruled(false, lead(), owned(specs), Vec::new());
    let mut questions = bench.routing.take_questions().unwrap();
    let _asked = bench.ask(read("a", "s", "own/x"));
    let question = questions.recv().await.unwrap();
    bench.routing.owner_answered(question.id, failed()).await;
    tokio::time::advance(Duration::from_hours(48)).await;
    assert_eq!(bench.statuses().await, ["b1 pending"]);
    assert_eq!(bench.routing.queue().borrow().len(), 1);
    // The lead waits for the asker: it is not held for the lead.
    let bench = ruled(true, lead(), owned(vec![on("own/**", Decide::Owner)]), Vec::new());
    let mut questions = bench.routing.take_questions().unwrap();
    let (decider, of) = (AgentId::new("lead"), [AgentId::new("a")]);
    let _waits = bench.waits.begin(&decider, &of, crate::tasks::WaitKind::Answer).unwrap();
    let asked = bench.ask(read("a", "s", "own/x"));
    let question = questions.recv().await.unwrap();
    bench.routing.owner_answered(question.id, failed()).await;
    let Some(Settlement::Denied { message, .. }) = asked.await.unwrap() else { unreachable!() };
    assert!(message.as_ref().unwrap().contains("`a` → `lead` → `a`"), "{message:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_is_withdrawn_when_its_agent_gives_up_or_time_is_over() {
    let bench = ruled(false, lead(), owned(vec![on("own/**", Decide::Owner)]), Vec::new());
    let mut questions = bench.routing.take_questions().unwrap();
    let asked = bench.ask(read("a", "s", "own/x"));
    let question = questions.recv().await.unwrap();
    asked.abort();
    question.withdrawn.cancelled().await;
    let asked = bench.ask(read("a", "s", "own/x"));
    let question = questions.recv().await.unwrap();
    question.withdrawn.cancelled().await;
    let Some(Settlement::Denied { message, .. }) = asked.await.unwrap() else { unreachable!() };
    assert_eq!(message.as_deref(), Some("Nobody decided in time."));
}
