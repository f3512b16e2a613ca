//! `[zones] secrets`.

use super::Bench;
use crate::config::Config;
use crate::model::Decide;

fn config(keys: &str) -> Config {
    let agents = "[[agents]]\nid = \"a\"\nprofile = \"opencode\"\n[profiles.keyed]\nbase = \"opencode\"\n\
                  readable = [\"~/.ssh\"]\n[[agents]]\nid = \"keyed\"\nprofile = \"keyed\"\n";
    let text = format!("[zones]\n{keys}\n{agents}");
    Bench::new().compile(&text).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn without_the_key_nothing_is_kept_from_agents() {
    let config = config("");
    let spec = &config.agents[0].zone.spec;
    assert!(spec.asked.is_empty() && spec.denied.is_empty() && config.routing.is_empty());
}

#[test]
fn secrets_are_asked_for_in_the_workspace_and_denied_outside() {
    let config = config("secrets = \"ask\"");
    let [a, keyed] = &config.agents[..] else { panic!() };
    assert!(a.zone.spec.asked.iter().any(|pattern| pattern == "**/.env"));
    let ssh = "/home/user/.ssh/**";
    let denies = |pattern: &str| a.zone.spec.denied.iter().any(|it| it == pattern);
    assert!(denies(ssh) && denies("/home/user/.netrc"), "{:?}", a.zone.spec.denied);
    // Its own profile names the place.
    assert!(!keyed.zone.spec.denied.iter().any(|it| it == ssh), "{:?}", keyed.zone.spec.denied);
    assert!(keyed.zone.spec.denied.iter().any(|it| it == "/home/user/.aws/**"));
    let [rule] = &config.routing[..] else { panic!() };
    assert_eq!((rule.decide, &rule.paths), (Decide::Person, &a.zone.spec.asked));
}

#[test]
fn secrets_can_be_denied_in_the_workspace_too() {
    let config = config("secrets = \"deny\"");
    let spec = &config.agents[0].zone.spec;
    assert!(spec.asked.is_empty() && spec.denied.iter().any(|it| it == "**/.env"));
    assert!(config.routing.is_empty());
}
