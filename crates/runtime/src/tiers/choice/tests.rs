#![allow(clippy::unwrap_used)]

use std::path::Path;

use super::super::Cooldown;
use super::*;
use crate::model::now_ms;

/// A home with a user's file, in which `one` and `two` are installed.
struct Home(tempfile::TempDir);

const PROFILES: &str = r#"
[profiles.one]
command = ["/bin/sh"]
login_env = ["ONE_KEY"]
[profiles.two]
command = ["/bin/sh"]
[profiles.gone]
command = ["/nowhere/agent"]
"#;

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn kept(&self) -> Cooldowns {
        Cooldowns::new(self.path())
    }

    fn shared(&self, tier: &str) -> SharedConfig {
        let text = format!("{PROFILES}[[tiers]]\nname = \"t\"\n{tier}");
        std::fs::write(self.path().join("config.toml"), text).unwrap();
        SharedConfig::read(self.path(), None).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn look(&self, tier: &str, key: &str) -> Vec<CandidateStanding> {
        let shared = self.shared(tier);
        let variable = |name: &str| (name == "ONE_KEY").then(|| key.to_owned());
        standings(&shared, shared.tier("t").unwrap(), &self.kept(), &variable, now_ms()).0
    }

    /// The candidates in their order, each with what hinders it.
    fn seen(&self, tier: &str, key: &str) -> Vec<String> {
        let line = |it: &CandidateStanding| match &it.hindrance {
            Some(hindrance) => format!("{} {}", it.candidate, hindrance.what),
            None => it.candidate.to_string(),
        };
        self.look(tier, key).iter().map(line).collect()
    }
}

const BOTH: &str = "candidates = [{ profile = \"gone\" }, { profile = \"one\", model = \"a\" }, \
                    { profile = \"one\", model = \"b\" }, { profile = \"two\" }]";

#[test]
fn a_cool_down_is_for_an_account_and_is_kept_over_runs() {
    let home = Home::new();
    assert_eq!(home.seen(BOTH, "k1"), ["gone not installed", "one/a", "one/b", "two"]);
    let now = now_ms();
    let login = home.look(BOTH, "k1").remove(1).login;
    let cooldown = |reason: &str| Cooldown::new("one", login.clone(), reason, now + 60_000);
    home.kept().begin(cooldown("overloaded").of_model(Some("a")), now).unwrap();
    assert_eq!(home.seen(BOTH, "k1")[1..], ["one/a overloaded", "one/b", "two"]);
    home.kept().begin(cooldown("rate limited"), now).unwrap();
    assert_eq!(home.seen(BOTH, "k1")[1..], ["one/a rate limited", "one/b rate limited", "two"]);
    // Another account of the same vendor.
    assert_eq!(home.seen(BOTH, "k2")[1..], ["one/a", "one/b", "two"]);
    // Over.
    let over = Cooldown::new("one", login, "rate limited", now);
    home.kept().begin(over, now).unwrap();
    assert_eq!(home.seen(BOTH, "k1")[1..], ["one/a overloaded", "one/b", "two"]);
    let files = std::fs::read_dir(home.path().join("cooldowns")).unwrap();
    for file in files {
        let text = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("k1"), "a secret is kept");
    }
}

#[test]
fn each_pick_has_its_order() {
    let home = Home::new();
    let three = "candidates = [{ profile = \"one\", model = \"a\" }, { profile = \"two\" }, \
                 { profile = \"one\", model = \"b\" }]\n";
    assert_eq!(home.seen(three, "k"), ["one/a", "two", "one/b"]);
    let rotate = format!("pick = \"rotate\"\n{three}");
    assert_eq!(home.seen(&rotate, "k"), ["one/a", "two", "one/b"]);
    let take = |at: usize| {
        let taken = home.look(&rotate, "k").remove(at).candidate.key();
        home.kept().take("t", &taken, now_ms()).unwrap();
    };
    take(0);
    assert_eq!(home.seen(&rotate, "k"), ["two", "one/b", "one/a"]);
    take(1);
    assert_eq!(home.seen(&rotate, "k"), ["one/a", "two", "one/b"]);
    let cheapest = format!(
        "pick = \"cheapest\"\n{three}[prices.a]\ninput = 3\noutput = 4\n[prices.b]\ninput = 1\n\
         output = 9\n"
    );
    assert_eq!(home.seen(&cheapest, "k"), ["one/b", "one/a", "two"]);
    let other = cheapest.replace("output = 9", "output = 9\ncurrency = \"EUR\"");
    assert_eq!(home.seen(&other, "k"), ["one/a", "two", "one/b"], "it can't be compared");
}

#[test]
fn a_broken_file_is_told_and_begun_anew() {
    let home = Home::new();
    let shared = home.shared(BOTH);
    let now = now_ms();
    home.kept().take("t", "one", now).unwrap();
    std::fs::write(home.path().join("cooldowns/state.json"), "[").unwrap();
    let read = |now| standings(&shared, &shared.tiers[0], &home.kept(), &|_| None, now);
    let (standings, trouble) = read(now);
    assert!(trouble.is_some() && standings.len() == 4);
    home.kept().take("t", "one", now).unwrap();
    assert!(read(now).1.is_none());
}

#[test]
fn many_at_once_lose_nothing() {
    let home = Home::new();
    let now = now_ms();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let kept = home.kept();
            scope.spawn(move || {
                for at in 0..5 {
                    let profile = format!("p{number}-{at}");
                    let cooldown = Cooldown::new(&profile, LoginId::default(), "x", now + 60_000);
                    kept.begin(cooldown, now).unwrap();
                }
            });
        }
    });
    assert_eq!(home.kept().read(now).unwrap().len(), 40);
}

#[test]
fn a_new_login_ends_what_was_said_of_the_old_one() {
    let home = Home::new();
    let (file, now) = (home.path().join("auth.json"), now_ms());
    std::fs::write(&file, "a login of ours").unwrap();
    let found = |file: &Path| crate::config::installed::ProfileOnMachine {
        program: None,
        login: Login::File(file.to_owned()),
        login_value: None,
        install: String::new(),
    };
    let old = home.kept().login(&found(&file)).unwrap();
    let cooldown = Cooldown::new("one", old.clone(), "not authenticated", now + 60_000);
    let (of_login, of_account) = (cooldown.clone().of_login(), cooldown);
    assert!(of_login.is_for("one", &old, None, now));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    std::fs::File::open(&file).unwrap().set_modified(later).unwrap();
    let new = home.kept().login(&found(&file)).unwrap();
    assert!(!of_login.is_for("one", &new, None, now));
    assert!(of_account.is_for("one", &new, None, now), "a limit stays with the account");
}
