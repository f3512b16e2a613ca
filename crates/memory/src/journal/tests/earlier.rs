//! The journal's knowledge of earlier runs: spending, turns, and the run that goes on.

use std::time::Duration;

use serde_json::{Value, json};

use super::{key, opened};
use crate::journal::{EventType, Journal, NewEvent, Place, Store};
use crate::model::{BudgetLimits, EarlierUse, Used};

async fn append(journal: &Journal, kind: EventType, turn: u64, at: u64, payload: &Value) -> String {
    let event = NewEvent::new(Place::Wire(key("a/s")), kind, payload).in_turn(turn).at(at);
    journal.append(event).await.unwrap().id
}

fn used(store: &Store, run: Option<&str>, since: Option<u64>) -> Vec<EarlierUse> {
    let mut all = Vec::new();
    store.used_earlier(run, since, |it| all.push(it)).unwrap();
    all
}

#[tokio::test]
async fn turns_and_their_time_are_counted_also_those_that_were_killed() {
    use EventType as Kind;
    let (_folder, path, journal) = opened().await;
    // Times never go back, and the first is that of the clock's event.
    let start = crate::model::now_ms() + 1_000;
    let (none, spent) = (json!({}), json!({ "model": "m", "tokens": { "total": 7 } }));
    let first = append(&journal, Kind::SESSION_START, 0, start, &none).await;
    append(&journal, Kind::MESSAGE_USER, 0, start, &none).await;
    append(&journal, Kind::TURN_END, 0, start + 5_000, &none).await;
    append(&journal, Kind::MESSAGE_USER, 1, start + 6_000, &none).await;
    append(&journal, Kind::USAGE_SPENT, 1, start + 8_000, &spent).await;
    // The next start completes what a kill left, an hour later.
    let (hour, left) = (start + 3_600_000, json!({ "incomplete": true }));
    append(&journal, Kind::MESSAGE_ASSISTANT, 1, hour, &left).await;
    append(&journal, Kind::SESSION_END, 1, hour, &json!({ "reason": "interrupted" })).await;
    // The loaded session counts its turns from 0 again.
    append(&journal, Kind::MESSAGE_USER, 0, hour + 1_000, &none).await;
    append(&journal, Kind::TURN_FAILED, 0, hour + 2_000, &none).await;

    let store = Store::open(&path).unwrap();
    let all = used(&store, Some(&first), None);
    let turns = all.iter().filter(|it| it.used == Used::Turn).count();
    let times: Vec<_> = all
        .iter()
        .filter_map(|it| match it.used {
            Used::Time(time) => Some((it.timestamp_ms - start, time.as_secs())),
            _ => None,
        })
        .collect();
    assert_eq!(turns, 3);
    assert_eq!(times, [(5_000, 5), (8_000, 2), (3_602_000, 1)]);
    let spent: Vec<_> = all.iter().filter(|it| matches!(it.used, Used::Spent(_))).collect();
    assert_eq!((spent.len(), spent[0].timestamp_ms), (1, start + 8_000));
    assert!(all.iter().all(|it| it.is_of_run && it.agent == Some(key("a/s").agent)));

    // By time, of no run; the turn that began earlier counts with its end.
    let late = used(&store, None, Some(start + 4_000));
    assert_eq!(late.iter().filter(|it| it.used == Used::Turn).count(), 3);
    assert!(late.iter().all(|it| !it.is_of_run));
    assert!(used(&store, None, None).is_empty());
}

#[tokio::test]
async fn raised_totals_come_with_those_of_the_configuration() {
    let (_folder, path, journal) = opened().await;
    let payload = json!({
        "tokens": { "used": 5, "limit": 20 }, "cost": { "used": null, "limit": 1.5 },
        "turns": {}, "minutes": {}, "configured": { "tokens": 10, "cost": 1.5 },
    });
    for payload in [payload, json!({ "tokens": { "limit": 10 } }), json!("torn")] {
        let event = NewEvent::new(Place::Team, EventType::BUDGET, &payload);
        journal.append(event).await.unwrap();
    }
    let all = used(&Store::open(&path).unwrap(), Some(""), None);
    let totals = |limit: (Option<u64>, Option<f64>), configured: (Option<u64>, Option<f64>)| {
        let limits = |(tokens, cost)| BudgetLimits { tokens, cost, ..BudgetLimits::default() };
        Used::Totals { limits: limits(limit), configured: limits(configured) }
    };
    let expected = [
        totals((Some(20), Some(1.5)), (Some(10), Some(1.5))),
        totals((Some(10), None), (Some(10), None)),
        totals((None, None), (None, None)),
    ];
    assert!(all.iter().all(|it| it.agent.is_none()));
    assert_eq!(all.into_iter().map(|it| it.used).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_run_goes_on_until_it_ended() {
    let (_folder, path, journal) = opened().await;
    let store = Store::open(&path).unwrap();
    assert_eq!(store.killed_run().unwrap(), None);
    for after in [Some(store.new_run().unwrap()), None] {
        journal.note_run(after.clone());
        // What is queued later is committed later.
        let id = append(&journal, EventType::SESSION_START, 0, 0, &json!({})).await;
        assert_eq!(store.killed_run().unwrap(), after);
        assert!(after.is_none_or(|after| after < id));
        assert_eq!(store.new_run().unwrap(), id);
    }
    tokio::time::timeout(Duration::from_secs(60), journal.close()).await.unwrap();
}
