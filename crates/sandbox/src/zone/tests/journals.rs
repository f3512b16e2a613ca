//! No agent can open a journal outside `$EISEN_DIR`.

use expect_test::expect;

use super::bounds::bounds;
use super::*;

const JOURNALS: &[&str] = &[
    "journal.db",
    "journal.db-wal",
    "journal.db.lock",
    "ws/src/team.db",
    "ws/src/team.db-wal",
    "ws/src/a.ts",
    "logs/team.db",
    "linked.db -> @/logs/team.db",
];

fn spec(bed: &Bed) -> ZoneSpec {
    let journals = ["journal.db", "ws/src/team.db", "linked.db"].map(|path| bed.path(path)).into();
    ZoneSpec { journals, ..bed.spec(&["**", "@/**"]) }
}

#[test]
fn neither_tier_opens_a_journal_or_what_sqlite_lays_beside_it() {
    let bed = Bed::new(JOURNALS);
    let zone = Arc::new(Zone::compile(&spec(&bed)).unwrap());
    let bounds = bounds(&bed, &spec(&bed), Confine::Workspace);
    let mut verdicts = String::new();
    for path in [
        "journal.db",
        "journal.db-wal",
        "journal.db-shm",
        "journal.db.corrupt-7",
        "ws/src/team.db",
        "ws/src/team.db-journal",
        "logs/team.db.lock",
        "linked.db",
        "ws/src/team.sql",
        "journal.d",
    ] {
        let path = bed.path(path);
        let gate = zone.check(&path, Action::Read).map_err(|denied| denied.grantable);
        let bell = bounds.judge(&path, Action::Write).map_err(|denied| denied.grantable);
        let (shown, gate) = (bed.shorten(path.to_str().unwrap()), gate.map(|_| ()));
        let reason = zone.why(&path, Action::Read).reason;
        let is_journals = reason == Reason::Journal;
        writeln!(verdicts, "{shown:<24} {gate:?} {bell:?} {is_journals}").unwrap();
    }
    expect![[r#"
        @/journal.db             Err(false) Err(false) true
        @/journal.db-wal         Err(false) Err(false) true
        @/journal.db-shm         Err(false) Err(false) true
        @/journal.db.corrupt-7   Err(false) Err(false) true
        @/ws/src/team.db         Err(false) Err(false) true
        @/ws/src/team.db-journal Err(false) Err(false) true
        @/logs/team.db.lock      Err(false) Err(false) true
        @/linked.db              Err(false) Err(false) true
        @/ws/src/team.sql        Ok(()) Ok(()) false
        @/journal.d              Ok(()) Ok(()) false
    "#]]
    .assert_eq(&verdicts);
    let search = zone.check_search(&bed.path("ws")).map_err(|denied| denied.grantable);
    assert_eq!(search.map(|_| ()), Err(false));
}

#[test]
fn no_rule_of_the_wall_reaches_a_journal() {
    let bed = Bed::new(JOURNALS);
    let bounds = bounds(&bed, &spec(&bed), Confine::Workspace);
    let rules = bounds.rules();
    let covering = |name: &str| {
        let path = bed.path(name);
        let grants = |rule: &&Rule| rule.grant > Grant::List && path.starts_with(&rule.path);
        rules.iter().any(|rule| grants(&rule))
    };
    let all = ["journal.db-shm", "journal.db.corrupt-7", "ws/src/team.db-journal"];
    for name in JOURNALS[..5].iter().chain(&["logs/team.db", "logs/team.db-wal"]).chain(&all) {
        assert_eq!(covering(name), *name == "ws/src/a.ts", "{name}");
    }
    assert!(covering("ws/src/a.ts"));
    for name in ["", "ws", "ws/src", "logs", "journal.db"] {
        assert!(bounds.is_held(&bed.path(name)), "{name}");
    }
}
