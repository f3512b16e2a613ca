//! Decisions that open more than the path that was asked for.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::model::{Decide, DecidedBy, RuleSpec};
use crate::zone::{GitAccess, ZoneSpec};

/// A zone that has `src`, without `denied.txt` anywhere, and in which `.env` is asked for.
fn zone(workspace: &Path) -> Zone {
    let all = |patterns: &[&str]| patterns.iter().map(|&it| it.to_owned()).collect();
    let spec = ZoneSpec {
        workspace: workspace.to_owned(),
        allowed: all(&["src/**", "lib/a.ts"]),
        shared: Vec::new(),
        denied: all(&["**/denied.txt"]),
        asked: all(&["**/.env"]),
        readable: Vec::new(),
        git: GitAccess::Read,
        branch: None,
        beside: Vec::new(),
        terminals: true,
        eisen_dir: workspace.join(".eisen"),
        sealed: vec![workspace.join("eisen.toml")],
        journals: Vec::new(),
    };
    Zone::compile(&spec).unwrap()
}

struct Place {
    _dir: tempfile::TempDir,
    zones: HashMap<AgentId, Arc<Zone>>,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join(".git/objects")).unwrap();
    std::fs::create_dir(dir.path().join(".git/refs")).unwrap();
    std::fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let zone = Arc::new(zone(dir.path()));
    let zones = ["a", "b"].map(|agent| (AgentId::new(agent), Arc::clone(&zone))).into();
    Place { _dir: dir, zones }
}

impl Place {
    fn bench(&self, hold: bool, orchestrator: Orchestrator) -> Bench {
        ruled(
            hold,
            orchestrator,
            Rules { zones: self.zones.clone(), ..Rules::default() },
            Vec::new(),
        )
    }

    fn team(&self, granted: Vec<TeamGrant>, store: Option<Arc<dyn GrantStore>>) -> Bench {
        let rules = Rules { zones: self.zones.clone(), ..Rules::default() };
        started(Settings { granted, store, ..Settings::new(external(), rules) })
    }
}

fn write(session: &str, path: &str) -> Request {
    Request { action: Action::Write, ..read("a", session, path) }
}

fn allow(scope: GrantSpan, pattern: &str) -> Decision {
    let pattern = (!pattern.is_empty()).then(|| pattern.into());
    Decision::Allow { scope, ttl: None, pattern }
}

/// Keeps grants in memory; fails while it is broken.
#[derive(Default, Debug)]
struct Shelf {
    kept: Mutex<Vec<TeamGrant>>,
    is_broken: bool,
}

impl Shelf {
    fn kept(&self) -> Vec<String> {
        self.kept.lock().unwrap().iter().map(TeamGrant::to_string).collect()
    }
}

impl GrantStore for Shelf {
    fn keep(&self, grants: &[TeamGrant]) -> Result<(), String> {
        if self.is_broken {
            return Err("the disk is full".to_owned());
        }
        *self.kept.lock().unwrap() = grants.to_vec();
        Ok(())
    }
}

impl Bench {
    async fn is_open(&self, request: Request) -> bool {
        self.routing.request(request).await == Some(Settlement::Allowed)
    }

    async fn allows(&self, of: &str, scope: GrantSpan, pattern: &str) -> Result<(), String> {
        let decided = self.routing.resolve(id(of), allow(scope, pattern), Decider::Person).await;
        decided.map(drop).map_err(|error| error.to_string())
    }
}

#[tokio::test(start_paused = true)]
async fn a_pattern_for_the_session_opens_what_comes_later_as_a_zone_would() {
    let place = place();
    let bench = place.bench(false, external());
    assert!(!bench.is_open(write("s", "test/new/a.ts")).await);
    bench.allows("b1", GrantSpan::Session, "test/**").await.unwrap();
    for path in ["test/new/a.ts", "test/b.ts", "test/deep/er/c.ts"] {
        assert!(bench.is_open(write("s", path)).await, "{path}");
        assert!(bench.is_open(read("a", "s", path)).await, "to read {path}");
    }
    // What the zone closes stays closed, and so does what the pattern does not match.
    let denied =
        Request { denied_by: Some("**/denied.txt".into()), ..write("s", "test/denied.txt") };
    assert!(!bench.is_open(denied).await);
    assert!(!bench.is_open(write("s", "test/.env")).await);
    assert!(!bench.is_open(write("s", "tests/a.ts")).await);
    assert!(!bench.is_open(write("s", "/elsewhere/test/a.ts")).await);
    assert!(!bench.is_open(write("s2", "test/b.ts")).await);
    assert!(!bench.is_open(read("b", "s", "test/b.ts")).await);
    // A search would find what is closed.
    let search = Request { scope: AccessScope::Below, ..read("a", "s", "test") };
    assert!(!bench.is_open(search).await);
}

#[tokio::test(start_paused = true)]
async fn a_pattern_of_all_opens_neither_git_nor_the_configuration() {
    let place = place();
    let bench = place.bench(false, external());
    assert!(!bench.is_open(write("s", "docs/a.md")).await);
    bench.allows("b1", GrantSpan::Session, "**").await.unwrap();
    assert!(bench.is_open(write("s", "docs/b.md")).await);
    for path in [".git/hooks/pre-commit", ".git/config", ".env", ".eisen/run", "eisen.toml"] {
        assert!(!bench.is_open(write("s", path)).await, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pattern_of_files_makes_the_folders_that_lead_to_them() {
    let place = place();
    let bench = place.bench(false, external());
    let folder = |path: &str| Request { making: Making::Folder, ..write("s", path) };
    assert!(!bench.is_open(write("s", "test/unit/a.ts")).await);
    bench.allows("b1", GrantSpan::Session, "test/unit/*.ts").await.unwrap();
    assert!(bench.is_open(folder("test")).await && bench.is_open(folder("test/unit")).await);
    for path in ["test/other", "tes", "test/unit/deeper"] {
        assert!(!bench.is_open(folder(path)).await, "{path}");
    }
    assert!(!bench.is_open(write("s", "test")).await, "a file in the folder's place");
}

#[tokio::test(start_paused = true)]
async fn a_pattern_that_opens_something_else_is_refused_with_what_to_do() {
    let place = place();
    let bench = place.bench(false, external());
    bench.routing.request(write("s", "test/a.ts")).await;
    bench.routing.request(write("s", "test/.env")).await;
    bench.routing.request(write("s", ".git/config")).await;
    bench.routing.request(write("s", "/elsewhere/a.ts")).await;
    for (access, pattern, part) in [
        ("b1", "docs/**", "does not match"),
        ("b1", "/etc/**", "absolute"),
        ("b1", "~/**", "absolute"),
        ("b1", "../**", "contains `..`"),
        ("b1", "{..,test}/**", "leaves the workspace"),
        ("b1", " ", "is empty"),
        ("b1", "test/{a", "can't be read"),
        ("b1", "!test/**", "starts with `!`"),
        ("b2", "test/**", "allow it alone"),
        ("b3", "**", "allow it alone"),
        ("b4", "**", "does not match"),
    ] {
        let error = bench.allows(access, GrantSpan::Session, pattern).await.unwrap_err();
        assert!(error.contains(part), "{pattern}: {error}");
    }
    let long = format!("test/{}", "x".repeat(2000));
    assert!(bench.allows("b1", GrantSpan::Session, &long).await.unwrap_err().contains("longer"));
    assert_eq!(bench.statuses().await.iter().filter(|it| it.ends_with("denied")).count(), 4);
    // The very path that is asked for is a person's to open.
    bench.allows("b2", GrantSpan::Session, "").await.unwrap();
    assert!(bench.is_open(write("s", "test/.env")).await);
}

#[tokio::test(start_paused = true)]
async fn what_waits_of_a_pattern_is_allowed_together() {
    let place = place();
    let mut bench = place.bench(true, external());
    let mut asked = Vec::new();
    for path in ["test/a.ts", "test/b.ts", "test/.env", "docs/a.md"] {
        asked.push(bench.ask(write("s", path)));
        bench.blocked().await;
    }
    bench.allows("b1", GrantSpan::Once, "test/**").await.unwrap();
    assert_eq!(bench.statuses().await, ["b1 allowed", "b2 allowed", "b3 pending", "b4 pending"]);
    for asked in asked.drain(..2) {
        assert_eq!(asked.await.unwrap(), Some(Settlement::Allowed));
    }
    // Once is for what waits, not for what comes.
    asked.push(bench.ask(write("s", "test/c.ts")));
    assert_eq!(bench.access().await.id, id("b1"));
    while bench.access().await.id != id("b5") {}
    assert_eq!(bench.statuses().await.last().unwrap(), "b5 pending");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_denies_is_stronger_than_a_pattern() {
    let place = place();
    let spec = RuleSpec {
        paths: vec!["test/kept/**".to_owned()],
        agents: Vec::new(),
        via: Vec::new(),
        action: None,
        decide: Decide::Deny,
    };
    let routing = RoutingRules::compile([spec]).unwrap();
    let rules = Rules { zones: place.zones.clone(), routing, ..Rules::default() };
    let bench = ruled(false, external(), rules, Vec::new());
    bench.routing.request(write("s", "test/a.ts")).await;
    bench.allows("b1", GrantSpan::Session, "test/**").await.unwrap();
    assert!(bench.is_open(write("s", "test/b.ts")).await);
    assert!(!bench.is_open(write("s", "test/kept/b.ts")).await);
}

#[tokio::test(start_paused = true)]
async fn what_a_person_allows_for_the_team_outlasts_it_until_it_is_revoked() {
    let place = place();
    let shelf = Arc::new(Shelf::default());
    let bench = place.team(Vec::new(), Some(shelf.clone()));
    bench.routing.request(write("s", "test/a.ts")).await;
    bench.allows("b1", GrantSpan::Team, "test/**").await.unwrap();
    assert_eq!(shelf.kept(), ["g1: a may write `test/**`: allowed by a person for the team"]);
    assert!(bench.is_open(write("another", "test/b.ts")).await);
    let kept = shelf.kept.lock().unwrap().clone();
    let next = place.team(kept, Some(shelf.clone()));
    assert!(next.is_open(write("s", "test/b.ts")).await);
    assert!(!next.is_open(write("s", "test/.env")).await);
    assert_eq!(next.routing.revoke("g1".to_owned()).await.unwrap().id, "g1");
    assert!(!next.is_open(write("s", "test/b.ts")).await, "at once");
    let system_call = Request { via: Via::Kernel, ..write("s", "test/b.ts") };
    assert!(!next.is_open(system_call).await, "nothing is left of it for the turn");
    assert_eq!((shelf.kept().len(), next.routing.grants().await.len()), (0, 0));
    let error = next.routing.revoke("g1".to_owned()).await.unwrap_err();
    assert_eq!(error, ResolveError::UnknownGrant("g1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_allowed_for_the_team_is_that_path_alone() {
    let place = place();
    let bench = place.team(Vec::new(), Some(Arc::new(Shelf::default())));
    bench.routing.request(read("a", "s", "src/.env")).await;
    bench.allows("b1", GrantSpan::Team, "").await.unwrap();
    assert!(bench.is_open(read("a", "s2", "src/.env")).await);
    assert!(!bench.is_open(read("a", "s2", "lib/.env")).await);
    assert!(!bench.is_open(write("s2", "src/.env")).await, "to read is not to write");
    let of_write = place.team(Vec::new(), Some(Arc::new(Shelf::default())));
    of_write.routing.request(write("s", "lib/.env")).await;
    of_write.allows("b1", GrantSpan::Team, "").await.unwrap();
    assert!(of_write.is_open(write("s2", "lib/.env")).await);
    assert!(!of_write.is_open(read("a", "s2", "lib/.env")).await, "to write is not to read");
    of_write.routing.request(write("s", "lib/b.ts")).await;
    of_write.allows("b3", GrantSpan::Team, "").await.unwrap();
    assert!(of_write.is_open(read("a", "s2", "lib/b.ts")).await, "but of what is no secret");
}

#[tokio::test(start_paused = true)]
async fn only_a_person_allows_for_the_team_and_only_where_it_is_kept() {
    let place = place();
    let broken = Arc::new(Shelf { is_broken: true, ..Shelf::default() });
    let bench = place.team(Vec::new(), Some(broken));
    bench.routing.request(write("s", "test/a.ts")).await;
    let lead = Decider::Agent(AgentId::new("lead"));
    let token = DecidedBy::Token("ci".to_owned());
    for by in [lead, Decider::Holder { by: token, insists: false }] {
        let refused = bench.routing.resolve(id("b1"), allow(GrantSpan::Team, "test/**"), by).await;
        assert_eq!(refused.unwrap_err(), ResolveError::TeamByAgent);
    }
    let error = bench.allows("b1", GrantSpan::Team, "test/**").await.unwrap_err();
    assert!(error.contains("the disk is full"), "{error}");
    assert!(!bench.is_open(write("s", "test/a.ts")).await, "what can't be kept opens nothing");
    let none = place.team(Vec::new(), None);
    none.routing.request(write("s", "test/a.ts")).await;
    assert!(none.allows("b1", GrantSpan::Team, "").await.unwrap_err().contains("for the session"));
}

#[tokio::test(start_paused = true)]
async fn a_grant_of_an_agent_that_left_or_of_another_workspace_opens_nothing() {
    let place = place();
    let shelf = Arc::new(Shelf::default());
    let bench = place.team(Vec::new(), Some(shelf.clone()));
    bench.routing.request(write("s", "test/a.ts")).await;
    bench.allows("b1", GrantSpan::Team, "test/**").await.unwrap();
    bench.routing.forget(AgentId::new("a")).await;
    assert!(!bench.is_open(write("s", "test/a.ts")).await, "another may take its name");
    let web = Decider::Holder { by: DecidedBy::Web, insists: false };
    let again = allow(GrantSpan::Team, "test/**");
    bench.routing.resolve(id("b2"), again, web).await.unwrap();
    assert_eq!(shelf.kept.lock().unwrap()[0].by, DecidedBy::Web, "whoever allowed it last");
    let mut kept = shelf.kept.lock().unwrap().clone();
    kept[0].applies = false;
    let next = place.team(kept, Some(shelf));
    assert!(!next.is_open(write("s", "test/a.ts")).await);
}

#[tokio::test(start_paused = true)]
async fn the_narrowest_pattern_of_what_waits_is_offered() {
    let place = place();
    let mut bench = place.bench(true, external());
    let mut asked = Vec::new();
    for (path, offered) in [
        // A folder of which the zone opens nothing.
        ("test/unit/a.ts", Some("test/unit/**")),
        // A file at the top, and one beside what the zone opens.
        ("package.json", Some("package.json")),
        ("lib/b[1].ts", Some("lib/b[[]1[]].ts")),
        // Nothing but the path itself can be allowed.
        ("src/.env", None),
        (".git/config", None),
        ("/elsewhere/a.ts", None),
    ] {
        asked.push(bench.ask(write(path, path)));
        assert_eq!(bench.access().await.offered.as_deref(), offered, "{path}");
    }
    for waiting in asked {
        waiting.abort();
    }
    let place = self::place();
    let mut bench = place.bench(true, external());
    let first = bench.ask(write("s", "test/unit/a.ts"));
    bench.blocked().await;
    let second = bench.ask(write("s", "test/cart/b.ts"));
    assert_eq!(bench.access().await.offered.as_deref(), Some("test/**"));
    let listed = bench.routing.list(None).await;
    let offered = listed.iter().map(|access| access.offered.as_deref()).collect::<Vec<_>>();
    assert_eq!(offered, [Some("test/**"), Some("test/**")], "of both, as they are listed");
    // What another session waits for is not offered with it, nor a folder of which the zone opens a part.
    let other = bench.ask(write("s2", "docs/a.md"));
    assert_eq!(bench.access().await.offered.as_deref(), Some("docs/**"));
    let beside = bench.ask(write("s2", "lib/new/b.ts"));
    assert_eq!(bench.access().await.offered.as_deref(), Some("lib/new/**"));
    drop((first, second, other, beside));
}
