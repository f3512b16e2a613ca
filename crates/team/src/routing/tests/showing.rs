//! Shown accesses, and decisions on what was shown.

use std::fs;
use std::path::Path;

use super::*;
use crate::preview::FoundFile;
use crate::zone::{GitAccess, ZoneSpec};

/// A team of `ui`, whose accesses are shown, and of `lead`, which may read `api/**`.
struct Shop {
    bench: Bench,
    folder: tempfile::TempDir,
}

fn zone(workspace: &Path, allowed: &str) -> Arc<Zone> {
    let spec = ZoneSpec {
        workspace: workspace.to_owned(),
        allowed: vec![allowed.to_owned()],
        asked: Vec::new(),
        readable: Vec::new(),
        shared: Vec::new(),
        denied: Vec::new(),
        terminals: true,
        git: GitAccess::None,
        branch: None,
        beside: Vec::new(),
        eisen_dir: workspace.join("eisen"),
        sealed: Vec::new(),
        journals: Vec::new(),
    };
    Arc::new(Zone::compile(&spec).unwrap())
}

impl Shop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for made in ["api", "db", "eisen", "ui"] {
            fs::create_dir(at.join(made)).unwrap();
        }
        let zones = [("ui", "ui/**"), ("lead", "api/**")];
        let zones = zones.map(|(agent, allowed)| (AgentId::new(agent), zone(at, allowed)));
        let rules = Rules { zones: zones.into(), ..Rules::default() };
        Self { bench: ruled(true, lead(), rules, Vec::new()), folder }
    }

    fn put(&self, path: &str, content: &str) {
        fs::write(self.folder.path().join(path), content).unwrap();
    }

    /// Has `ui` wait for an access.
    async fn wait(&mut self, request: Request) -> BlockedId {
        self.bench.ask(request);
        self.bench.access().await.id
    }

    async fn see(&self, id: &BlockedId) -> ShownAccess {
        self.bench.routing.show(id.clone(), None).await.unwrap()
    }

    async fn allow(&self, id: &BlockedId, version: &str) -> Result<BlockedAccess, ResolveError> {
        self.bench.routing.resolve_shown(id.clone(), ALLOW, Decider::Person, version).await
    }
}

fn there(content: &str) -> FoundFile {
    FoundFile::There { content: content.into(), is_whole: true }
}

fn write(path: &str, text: &str) -> Request {
    let wanted = Some(Wanted::new(text));
    Request { action: Action::Write, wanted, ..read("ui", "s", path) }
}

#[tokio::test]
async fn what_changed_since_it_was_shown_is_not_decided() {
    let mut shop = Shop::new();
    shop.put("db/x", "before");
    let id = shop.wait(read("ui", "s", "db/x")).await;
    let shown = shop.see(&id).await;
    assert_eq!(shown.file, there("before"));
    assert_eq!(shop.see(&id).await.version, shown.version);
    shop.put("db/x", "behind");
    let refused = shop.allow(&id, &shown.version).await.unwrap_err();
    assert_eq!(refused, ResolveError::Changed(id.clone()));
    assert_eq!(shop.bench.statuses().await, ["b1 pending"]);
    let again = shop.see(&id).await;
    assert_eq!(again.file, there("behind"));
    shop.allow(&id, &again.version).await.unwrap();
    assert_eq!(shop.bench.statuses().await, ["b1 allowed"]);
    let late = shop.bench.routing.show(id, None).await.unwrap_err();
    assert_eq!(late.to_string(), "b1 is decided already: allowed by a person");
}

#[tokio::test]
async fn a_decision_is_for_writes_of_what_was_shown() {
    let mut shop = Shop::new();
    let first = shop.wait(write("db/new", "a\n")).await;
    let shown = shop.see(&first).await;
    assert_eq!(shown.file, FoundFile::Missing);
    assert_eq!(shown.wanted.as_ref().unwrap().text(), Some("a\n"));
    let other = shop.wait(write("db/new", "b\n")).await;
    shop.wait(write("db/new", "a\n")).await;
    assert_ne!(shop.see(&other).await.version, shown.version);
    shop.allow(&first, &shown.version).await.unwrap();
    assert_eq!(shop.bench.statuses().await, ["b1 allowed", "b2 pending", "b3 allowed"]);
}

#[tokio::test]
async fn a_person_s_queue_shows_what_its_agent_wanted_last() {
    let mut shop = Shop::new();
    let specs = vec![super::rules::rule(crate::model::Decide::Person)];
    let routing = RoutingRules::compile(specs).unwrap();
    let zones = [(AgentId::new("ui"), zone(shop.folder.path(), "ui/**"))].into();
    let changed = Rules { hold: true, routing, zones, ..Rules::default() };
    shop.bench.routing.change(changed).await;
    let asked = shop.bench.ask(write("db/x", "a"));
    let id = shop.bench.access().await.id;
    let shown = shop.see(&id).await;
    asked.abort();
    let _ = asked.await;
    shop.bench.routing.settled(&AgentId::new("ui")).await;
    let _asked = shop.bench.ask(write("db/x", "b"));
    shop.bench.routing.settled(&AgentId::new("ui")).await;
    assert_eq!(shop.see(&id).await.wanted.unwrap().text(), Some("b"));
    assert!(matches!(shop.allow(&id, &shown.version).await, Err(ResolveError::Changed(_))));
}

#[tokio::test]
async fn nothing_is_shown_but_the_file_that_was_judged() {
    let mut shop = Shop::new();
    let at = shop.folder.path().to_owned();
    shop.put("db/x", "x");
    shop.put("ui/own", "own");
    shop.put("eisen/token", "secret");
    let id = shop.wait(read("ui", "s", "db/x")).await;
    let withheld = async |shop: &Shop, id: &BlockedId| match shop.see(id).await.file {
        FoundFile::Withheld(why) => why,
        file => panic!("{file:?}"),
    };
    for target in ["eisen/token", "ui/own", "/etc/hostname"] {
        fs::remove_file(at.join("db/x")).unwrap();
        std::os::unix::fs::symlink(at.join(target), at.join("db/x")).unwrap();
        assert_eq!(
            withheld(&shop, &id).await,
            "its path leads to another place since it was judged"
        );
    }
    fs::remove_file(at.join("db/x")).unwrap();
    assert_eq!(shop.see(&id).await.file, FoundFile::Missing);
    nix::unistd::mkfifo(&at.join("db/x"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(withheld(&shop, &id).await, "is not a regular file");
    fs::remove_file(at.join("db/x")).unwrap();
    fs::create_dir(at.join("db/x")).unwrap();
    assert_eq!(withheld(&shop, &id).await, "is a folder");
    let id = shop.wait(read("ui", "s", "eisen/token")).await;
    assert_eq!(withheld(&shop, &id).await, "it cannot be opened to any agent");
}

#[tokio::test]
async fn the_lead_sees_what_its_zone_lets_it_see() {
    let mut shop = Shop::new();
    shop.put("api/x", "x");
    shop.put("db/x", "secret");
    let look = async |shop: &Shop, id: BlockedId, reader: &str| {
        shop.bench.routing.show(id, Some(AgentId::new(reader))).await
    };
    let own = shop.wait(read("ui", "s", "api/x")).await;
    assert_eq!(look(&shop, own, "lead").await.unwrap().file, there("x"));
    let id = shop.wait(read("ui", "s", "db/x")).await;
    let shown = look(&shop, id.clone(), "lead").await.unwrap();
    assert!(matches!(&shown.file, FoundFile::Withheld(why) if why.contains("`lead`")));
    assert!(matches!(look(&shop, id.clone(), "ui").await, Err(ResolveError::Own { .. })));
    // It can decide on the little that it sees.
    let by = Decider::Agent(AgentId::new("lead"));
    shop.bench.routing.resolve_shown(id, ALLOW, by, &shown.version).await.unwrap();
}

#[tokio::test]
async fn a_long_file_is_shown_in_part_and_its_end_counts() {
    let mut shop = Shop::new();
    shop.put("db/x", &"x".repeat(3 << 20));
    let id = shop.wait(read("ui", "s", "db/x")).await;
    let shown = shop.see(&id).await;
    let FoundFile::There { content, is_whole: false } = shown.file else { panic!() };
    assert_eq!(content.len(), 1 << 20);
    shop.put("db/x", &("x".repeat(3 << 20) + "y"));
    assert!(matches!(shop.allow(&id, &shown.version).await, Err(ResolveError::Changed(_))));
}

#[tokio::test]
async fn texts_that_wait_are_bounded() {
    let mut shop = Shop::new();
    let text = "x".repeat(1 << 20);
    for n in 0..66 {
        shop.wait(write(&format!("db/{n}"), &format!("{n:03}{}", &text[3..]))).await;
    }
    let kept = async |shop: &Shop, n: usize| {
        let wanted = shop.see(&id(&format!("b{n}"))).await.wanted.unwrap();
        wanted.text().is_some()
    };
    assert!(kept(&shop, 64).await && !kept(&shop, 65).await);
    // What is decided makes room.
    let deny = Decision::Deny { message: None };
    shop.bench.routing.resolve(id("b1"), deny, Decider::Person).await.unwrap();
    shop.bench.access().await;
    let last = shop.wait(write("db/last", &text)).await;
    let wanted = shop.see(&last).await.wanted.unwrap();
    assert_eq!(wanted.text(), Some(&*text));
}
