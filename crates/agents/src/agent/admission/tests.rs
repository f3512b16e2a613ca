use super::*;

fn admission(max_running: usize, max_memory_mb: u64) -> Admission {
    Admission::new(Capacity { max_running, max_memory_mb })
}

impl Admission {
    fn ask(&self, agent: &str, mb: u64) -> StartPermit {
        self.enter(AgentId::new(agent), mb * MB)
    }
}

#[test]
fn who_does_not_fit_waits_and_says_for_what() {
    let admission = admission(0, 1000);
    let mut one = admission.ask("one", 600);
    let mut two = admission.ask("two", 500);
    assert_eq!(one.waits_for(), None);
    assert_eq!(
        two.waits_for().unwrap_or_default(),
        "waits for memory: the team uses 600 MB of max_memory_mb = 1000, and `two` may use 500 MB"
    );
    // It would fit, but is not the first of the line.
    let mut three = admission.ask("three", 100);
    assert_eq!(three.waits_for(), two.waits_for());
    drop(one);
    assert_eq!((two.waits_for(), three.waits_for()), (None, None));
}

#[test]
fn places_are_given_in_the_order_in_which_they_were_asked_for() {
    let admission = admission(1, 0);
    let mut running = admission.ask("first", 1);
    let mut line: VecDeque<_> = ["a", "b", "c"].map(|agent| admission.ask(agent, 1)).into();
    while let Some(mut next) = line.pop_front() {
        assert!(next.waits_for().is_some_and(|why| why.starts_with("waits for a place")));
        drop(std::mem::replace(&mut running, next));
        assert_eq!(running.waits_for(), None);
        assert!(line.iter_mut().all(|place| place.waits_for().is_some()));
    }
}

#[test]
fn who_needs_more_than_there_is_runs_alone() {
    let admission = admission(0, 100);
    let mut small = admission.ask("small", 50);
    let mut large = admission.ask("large", 200);
    assert!(small.waits_for().is_none() && large.waits_for().is_some());
    drop(small);
    assert_eq!(large.waits_for(), None);
}

#[test]
fn another_capacity_counts_at_once() {
    let admission = admission(1, 0);
    let _one = admission.ask("one", 10);
    let mut two = admission.ask("two", 10);
    let mut three = admission.ask("three", 10);
    assert!(two.waits_for().is_some_and(|why| why.contains("max_running")));
    admission.set(Capacity { max_running: 0, max_memory_mb: 20 });
    assert_eq!(two.waits_for(), None);
    assert_eq!(
        three.waits_for().unwrap_or_default(),
        "waits for memory: the team uses 20 MB of max_memory_mb = 20, and `three` may use 10 MB"
    );
    admission.set(Capacity::default());
    assert_eq!(three.waits_for(), None);
}

#[test]
fn who_leaves_the_line_holds_up_nobody() {
    let admission = admission(0, 100);
    let _one = admission.ask("one", 60);
    let large = admission.ask("large", 90);
    let mut small = admission.ask("small", 30);
    assert!(small.waits_for().is_some());
    drop(large);
    assert_eq!(small.waits_for(), None);
}
