//! The cost of a tick with 100, 2,000 and 20,000 known files of which 50 change: from the touches to
//! the delta on the bus, the orchestrator's view included, as ratios in one run. An agent's maps hold
//! no more than 20,000 files.
//!
//! The cost must not grow with what is known. Where the 50 are others at each tick, what grows is
//! the processor's own cost of memory that it has not seen for long.
use std::sync::Arc;
use std::time::{Duration, Instant};

use eisen_core::bus::{Backlog, Bus, Received, Subscriber};
use eisen_core::model::{
    Activity, ActivityKind, AgentId, Event, Lines, SessionId, SessionKey, Source, Touch,
};
use eisen_core::tracker::{OrchestratorView, Settings, TrackerHandle};
use tokio::runtime::Builder;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const KNOWN: [usize; 3] = [100, 2_000, 20_000];
const CHANGING: usize = 50;
const TICKS: usize = 100;
const ROUNDS: usize = 10;

struct Team {
    handle: TrackerHandle,
    events: Subscriber,
    paths: Vec<Arc<str>>,
    /// Where the next changing files are, in a walk that passes all of them in no order.
    place: usize,
    ticks: usize,
}

impl Team {
    async fn knowing(known: usize) -> Self {
        let bus = Bus::new(Backlog { events: 10_000, bytes: usize::MAX });
        let settings = Settings {
            context_turns: 3,
            compaction_threshold: 0.5,
            decay_rate: 0.95,
            tick: Duration::from_millis(100),
            idle_tick: Duration::from_millis(500),
        };
        let key = SessionKey::new(AgentId::new("orchestrator"), SessionId::new("team-bench"));
        let view = OrchestratorView::External(key);
        let (handle, task) =
            TrackerHandle::spawn(settings, view, bus.clone(), CancellationToken::new());
        tokio::spawn(task);
        let paths: Vec<Arc<str>> = (0..known)
            .map(|number| format!("src/room_{}/{number}.rs", number % 100).into())
            .collect();
        for (place, path) in paths.iter().enumerate() {
            record(&handle, path, Touch::UserProvided);
            // The inbox is bounded.
            if place % 10_000 == 9_999 {
                handle.settled().await;
            }
        }
        handle.settled().await;
        Self { handle, events: bus.subscribe(), paths, place: 0, ticks: 0 }
    }

    /// Returns the median cost of a tick in seconds.
    async fn cost(&mut self, others_each_tick: bool) -> f64 {
        let mut costs = Vec::with_capacity(TICKS);
        for _ in 0..TICKS {
            // The same again within a millisecond would be no change.
            let touch = [Touch::Read, Touch::Write, Touch::Search][self.ticks % 3];
            self.ticks += 1;
            let begun = Instant::now();
            for change in 0..CHANGING {
                let place = self.place + change * 7_919;
                record(&self.handle, &self.paths[place % self.paths.len()], touch);
            }
            // Time is paused: it jumps to the next tick as soon as all is taken in.
            while !self.is_whole_delta().await {}
            costs.push(begun.elapsed().as_secs_f64());
            if others_each_tick {
                self.place += CHANGING * 7_919;
            }
        }
        costs.sort_by(f64::total_cmp);
        costs[TICKS / 2]
    }

    async fn is_whole_delta(&mut self) -> bool {
        let received = timeout(Duration::from_secs(1), self.events.recv()).await.unwrap();
        let Some(Received::Event(_, event)) = received else { panic!("{received:?}") };
        let Event::Delta(delta) = &**event else { return false };
        assert_eq!(delta.updates.len(), CHANGING);
        delta.key.agent.as_str() == "orchestrator"
    }
}

fn record(handle: &TrackerHandle, path: &Arc<str>, touch: Touch) {
    let (path, source, lines) = (Arc::clone(path), Source::Request, Lines::default());
    let kind = ActivityKind::Touched { path, touch, source, lines };
    handle.record(&AgentId::new("a"), Activity { session: SessionId::new("s"), kind });
}

pub(crate) fn run() {
    // Each team has a clock of its own, so that no other's ticks are measured; the rounds take
    // turns, so that what else the machine does falls on all alike.
    let mut teams = KNOWN.map(|known| {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let team = runtime.block_on(Team::knowing(known));
        (runtime, team, [f64::INFINITY; 2])
    });
    for _ in 0..ROUNDS {
        for (runtime, team, [same, others]) in &mut teams {
            *same = same.min(runtime.block_on(team.cost(false)));
            *others = others.min(runtime.block_on(team.cost(true)));
        }
    }
    let [same, others] = teams[0].2;
    println!("tick with {CHANGING} files changing, cost against that with {} known", KNOWN[0]);
    println!("{:>12} {:>12} {:>18}", "known files", "the same 50", "others each tick");
    for (known, (_, _, [same_here, others_here])) in KNOWN.iter().zip(&teams) {
        println!("{known:>12} {:>12.2} {:>18.2}", same_here / same, others_here / others);
    }
}
