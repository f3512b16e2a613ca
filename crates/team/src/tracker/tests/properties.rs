//! Whatever happens, a client that follows the events sees what the server has, and the server has
//! what a slow and simple rendering of the rules says.

#![allow(clippy::unwrap_used)]

mod plain;

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use self::plain::Plain;
use crate::model::{AgentId, Event, TurnEnd};
use crate::tracker::inbox::{Inbox, TrackerMsg};
use crate::tracker::session_input::SessionInput;
use crate::tracker::sessions::Sessions;
use crate::tracker::testing::{Client, Functions, SETTINGS, activity, key};
use crate::tracker::{OrchestratorView, Settings};

#[derive(Clone, Debug)]
enum ModelStep {
    Input(&'static str, String),
    /// The disk shows a file written.
    Disk(&'static str),
    Tick,
    /// Asks for snapshots.
    Look,
    Orchestrate(&'static str),
}

fn steps() -> impl Strategy<Value = Vec<ModelStep>> {
    let session = select(vec!["a/s", "a/t", "b/s", "lead/l", "lead/m", "lead/"]);
    let touch = (
        select(vec![
            "read",
            "write",
            "search",
            "blocked",
            "user_provided",
            "seen read",
            "seen write",
            "performed",
            "written",
        ]),
        select(vec!["w", "x", "y", "z"]),
        select(vec!["", "", ":1-2", ":2-2", ":4-7"]),
    )
        .prop_map(|(touch, path, lines)| {
            let has_lines =
                !["seen", "perf", "writt", "block"].iter().any(|it| touch.starts_with(it));
            format!("{touch} {path}{}", if has_lines { lines } else { "" })
        });
    let usage = (0u64..20).prop_map(|used| format!("usage {used}/20"));
    let other = select(vec!["opened", "closed", "compacted", "update {}"]).prop_map(str::to_owned);
    let turn = select(vec!["began", "began", "ended", "ended", "ended"]).prop_map(str::to_owned);
    let activity = prop_oneof![12 => touch, 2 => usage, 1 => other, 4 => turn];
    let step = prop_oneof![
        12 => (session, activity).prop_map(|(name, line)| ModelStep::Input(name, line)),
        2 => select(vec!["w", "x", "y", "v"]).prop_map(ModelStep::Disk),
        6 => Just(ModelStep::Tick),
        1 => Just(ModelStep::Look),
        1 => select(vec!["lead/l", "lead/m", "a/s"]).prop_map(ModelStep::Orchestrate),
    ];
    vec(step, 1..120)
}

fn view() -> impl Strategy<Value = OrchestratorView> {
    select(vec![
        OrchestratorView::None(key("a/")),
        OrchestratorView::External(key("orchestrator/team-t")),
        OrchestratorView::Agent(AgentId::new("lead")),
    ])
}

fn settings() -> Settings {
    // 0.2 is cold after three ticks, so that nodes come and go within one run.
    Settings { context_turns: 1, decay_rate: 0.2, ..SETTINGS }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_client_that_follows_sees_what_the_server_has(view in view(), steps in steps()) {
        let mut plain = Plain::new(&view);
        let mut sessions = Sessions::new(settings(), view);
        sessions.join(Arc::new(Functions::default()));
        let mut client = Client::default();
        let mut turns = Vec::new();
        // Two steps are of one write, and four are not.
        for (at, step) in (1..).map(|at| at * 2_000).zip(steps.into_iter().chain([ModelStep::Look])) {
            match &step {
                ModelStep::Disk(path) => {
                    plain.disk_wrote(path, at);
                    sessions.disk_wrote(&(*path).into(), at);
                }
                ModelStep::Input(name, line) => {
                    plain.input(&key(name), activity(line), at);
                    sessions.input(&key(name), SessionInput::from_activity(activity(line)).unwrap(), at);
                }
                ModelStep::Tick => {
                    plain.tick();
                    sessions.tick();
                }
                ModelStep::Look => {
                    plain.show_all();
                    sessions.flush();
                }
                ModelStep::Orchestrate(name) => {
                    plain.orchestrate(&key(name));
                    sessions.orchestrate(key(name));
                }
            }
            for event in sessions.take_events() {
                client.follow(&event);
                if let Event::Turn(TurnEnd { key, turn, .. }) = event {
                    turns.push((key, turn));
                }
            }
            if let ModelStep::Look = step {
                let snapshots = sessions.snapshots();
                client.compare(&snapshots);
                let mut nodes: Vec<_> =
                    snapshots.iter().map(|it| (it.key.clone(), it.nodes.clone())).collect();
                if plain.view.is_none() && plain.sessions.is_empty() {
                    prop_assert_eq!(nodes.pop(), Some((key("a/"), Vec::new())));
                }
                prop_assert_eq!(plain.snapshots(), nodes);
                prop_assert_eq!(&plain.ended, &turns);
            }
        }
    }

    /// However the inputs are batched, merging them in the inbox changes nothing.
    #[test]
    fn merged_inputs_have_the_same_effect(
        view in view(),
        steps in steps(),
        takes in vec(any::<bool>(), 120),
    ) {
        let mut each = Sessions::new(settings(), view.clone());
        let mut merged = Sessions::new(settings(), view);
        for sessions in [&mut each, &mut merged] {
            sessions.join(Arc::new(Functions::default()));
        }
        let inbox = Inbox::default();
        let take = |sessions: &mut Sessions| {
            for message in inbox.take() {
                let TrackerMsg::Input(key, input, at) = message else { unreachable!() };
                sessions.input(&key, input, at);
            }
        };
        let mut usages = [None, None];
        for (at, (step, is_taken)) in (1..).zip(steps.into_iter().zip(takes)) {
            let ModelStep::Input(name, line) = step else { continue };
            let input = SessionInput::from_activity(activity(&line)).unwrap();
            each.input(&key(name), input.clone(), at);
            inbox.push_input(key(name), input, at);
            if is_taken {
                take(&mut merged);
                merged.flush();
                each.flush();
            }
        }
        take(&mut merged);
        let mut turns = [Vec::new(), Vec::new()];
        for (place, sessions) in [&mut each, &mut merged].into_iter().enumerate() {
            sessions.flush();
            usages[place] = Some(sessions.usages());
            let input = sessions.take_events().into_iter();
            turns[place].extend(input.filter_map(|event| match event {
                Event::Turn(turn) => Some(turn),
                _ => None,
            }));
        }
        let nodes = |sessions: &mut Sessions| {
            let snapshots = sessions.snapshots();
            let all = snapshots.iter().map(|it| (it.key.clone(), it.mode, it.nodes.clone()));
            all.collect::<Vec<_>>()
        };
        prop_assert_eq!(nodes(&mut each), nodes(&mut merged));
        prop_assert_eq!(&usages[0], &usages[1]);
        prop_assert_eq!(&turns[0], &turns[1]);
    }
}
