//! `url` and `headers`: agents that run elsewhere.

use std::time::Duration;

use expect_test::expect;

use super::{Bench, errors};
use crate::config::{Enforce, RestartPolicy};

#[test]
fn what_can_not_be_the_address_of_an_agent_is_a_mistake() {
    let of = |keys: &str| errors(&format!("[[agents]]\nid = \"cloud\"\n{keys}\n"));
    let url = "url = \"wss://agents.example/acp\"";
    let all = [
        "url = \"ftp://agents.example\"",
        "url = \"agents.example\"",
        "url = \"https:///acp\"",
        "url = \"https://me:pw@agents.example\"",
        "url = 1",
        "headers = { key = \"x\" }\ncommand = [\"a\"]",
        &format!("{url}\ncommand = [\"a\"]"),
        &format!("{url}\nprofile = \"codex\""),
        &format!("{url}\nheaders = {{ \"a b\" = \"x\" }}"),
        &format!("{url}\n[agents.zone]\nenforce = \"kernel\""),
        &format!("{url}\n[agents.zone]\nenforce = \"protocol\""),
        &format!(
            "{url}\nparent = \"held\"\n[[agents]]\nid = \"held\"\ncommand = [\"a\"]\nzone.enforce = \"kernel\""
        ),
    ];
    let opencode = "protocol = \"opencode\"";
    let base = "base_url = \"http://127.0.0.1:4096\"";
    let of_opencode = [
        opencode,
        &format!("{opencode}\ncommand = [\"opencode\", \"serve\"]"),
        base,
        &format!("protocol = \"acp\"\n{base}"),
        &format!("{opencode}\n{url}"),
        &format!("{opencode}\n{base}\n{url}"),
        &format!("{opencode}\n{base}\nprofile = \"opencode\""),
        &format!("{opencode}\nbase_url = \"ws://127.0.0.1:4096\""),
        &format!("{opencode}\nbase_url = \"http://opencode:pw@127.0.0.1\""),
        &format!("{opencode}\nbase_url = \"http://127.0.0.1/?a=b\""),
        &format!("{opencode}\nbase_url = 4096"),
        &format!("{opencode}\n{base}\n[agents.zone]\nenforce = \"kernel\""),
        &format!("{opencode}\n{base}\nheaders = {{ authorization = \"Basic eA==\" }}"),
    ];
    let all: String = all.iter().chain(&of_opencode).map(|keys| of(keys)).collect();
    assert!(!all.contains("pw"), "{all}");
    expect![[r#"
        3:7 "ftp://agents.example" is not the address of an agent | write one such as "https://agents.example/acp" or "wss://agents.example/acp"
        3:7 "agents.example" is not the address of an agent | write one such as "https://agents.example/acp" or "wss://agents.example/acp"
        3:7 "https:///acp" is not the address of an agent | write one such as "https://agents.example/acp" or "wss://agents.example/acp"
        3:7 this address has a name or password in it | write a header: `headers = { authorization = "Bearer ${TOKEN}" }`
        3:7 `url` must be a string, not an integer | write it in quotes
        3:11 `headers` need `url` | `headers` are sent to the `url` or `base_url` of an agent that runs elsewhere
        4:11 `command` and `url` can't both be given | an agent runs here or elsewhere: keep one
        4:11 `profile` and `url` can't both be given | an agent runs here or elsewhere: keep one
        4:13 no header can be called "a b" | write one such as "x-api-key"
        4:1 the kernel here can't hold the zone of an agent that runs elsewhere | leave `enforce` out, or write "protocol"
        no error
        4:10 `cloud` runs elsewhere, where no kernel here holds its zone, and its parent `held` has `enforce = "kernel"` | give it a parent without that, or a command instead of the address
        3:12 `protocol = "opencode"` needs `base_url` | write `base_url = "http://127.0.0.1:4096"`, where `opencode serve` listens; `opencode acp` is a `command` without `protocol`
        3:12 `protocol = "opencode"` needs `base_url` | write `base_url = "http://127.0.0.1:4096"`, where `opencode serve` listens; `opencode acp` is a `command` without `protocol`
        3:12 `base_url` needs `protocol = "opencode"` | OpenCode's own server has one; an agent that speaks the Agent Client Protocol has a `url`
        4:12 `base_url` needs `protocol = "opencode"` | OpenCode's own server has one; an agent that speaks the Agent Client Protocol has a `url`
        4:7 `protocol = "opencode"` needs `base_url`, not `url` | write `base_url` in place of `url`, where `opencode serve` listens
        4:12 `base_url` and `url` can't both be given | `base_url` is of OpenCode's server, `url` of others: keep one
        5:11 `profile` and `base_url` can't both be given | an agent runs here or elsewhere: keep one
        4:12 "ws://127.0.0.1:4096" is not the address of OpenCode's server | write one such as "http://127.0.0.1:4096", where `opencode serve` listens
        4:12 this address has a name or password in it | write a header: `headers = { authorization = "Bearer ${TOKEN}" }`
        4:12 "http://127.0.0.1/?a=b" is not the address of OpenCode's server | write one such as "http://127.0.0.1:4096", where `opencode serve` listens
        4:12 `base_url` must be a string, not an integer | write it in quotes
        5:1 the kernel here can't hold the zone of an agent that runs elsewhere | leave `enforce` out, or write "protocol"
        no error
    "#]].assert_eq(&all);
}

#[test]
fn an_agent_elsewhere_is_held_by_the_protocol_and_tried_for_ever() {
    let url = "[[agents]]\nid = \"cloud\"\nurl = \"wss://agents.example/acp\"\n";
    let text = format!(
        "{url}headers = {{ authorization = \"Bearer k-123\" }}\n\
         [[agents]]\nid = \"helper\"\nparent = \"cloud\"\ncommand = [\"a\"]\n\
         [[agents]]\nid = \"twin\"\nparent = \"cloud\"\n"
    );
    let config = Bench::new().compile(&text).unwrap();
    let [cloud, helper, twin] = &config.agents[..] else { panic!("{config:?}") };
    assert_eq!(cloud.command[1..], ["team", "connect", "wss://agents.example/acp"]);
    assert!(!format!("{config:?}").contains("k-123"));
    assert_eq!(cloud.zone.enforce, Enforce::Protocol);
    let has_tools = [cloud, helper, twin].map(|agent| agent.has_tools(&config.team));
    assert_eq!(has_tools, [false, true, false]);
    let restart = cloud.restart;
    assert_eq!((restart.policy, restart.max_restarts), (RestartPolicy::Always, u32::MAX));
    assert_eq!(restart.backoff[1], Duration::from_secs(60));
    // One that runs here is held as others are.
    assert_eq!((helper.zone.enforce, helper.remote.is_some()), (Enforce::Auto, false));
    assert_eq!((twin.zone.enforce, &twin.remote), (Enforce::Protocol, &cloud.remote));
    assert_eq!(twin.restart.max_restarts, u32::MAX);

    let server =
        "[[agents]]\nid = \"oc\"\nprotocol = \"opencode\"\nbase_url = \"http://127.0.0.1:4096\"\n";
    let config = Bench::new().compile(server).unwrap();
    let oc = &config.agents[0];
    let words = ["team", "connect", "--protocol", "opencode", "http://127.0.0.1:4096"];
    assert_eq!(oc.command[1..], words);
    assert!(oc.plugin.is_none() && !oc.has_tools(&config.team));
    assert_eq!((oc.zone.enforce, oc.restart.max_restarts), (Enforce::Protocol, u32::MAX));

    let own = format!("{url}[agents.restart]\nmax_restarts = 3\n");
    assert_eq!(Bench::new().compile(&own).unwrap().agents[0].restart.max_restarts, 3);
}
