//! `[gateway]`: the agent at which sessions begin, and where it is served.

use expect_test::expect;

use super::{Bench, errors};

#[test]
fn the_default_agent_is_one_of_the_file() {
    let agents = "[[agents]]\nid = \"ui\"\ncommand = [\"a\"]\n";
    let of = |keys: &str| Bench::new().compile(&format!("{keys}\n{agents}")).unwrap().gateway;
    assert_eq!(of("").default, None);
    assert_eq!(of("[gateway]\ndefault = \"ui\"").default.unwrap().as_str(), "ui");
    expect![[r#"
        2:11 there is no agent "uy" | did you mean "ui"?
    "#]]
    .assert_eq(&errors(&format!("[gateway]\ndefault = \"uy\"\n{agents}")));
}

#[test]
fn it_is_served_where_the_file_says() {
    let agents = "[[agents]]\nid = \"ui\"\ncommand = [\"a\"]\n";
    let of = |keys: &str| Bench::new().compile(&format!("[gateway]\n{keys}\n{agents}"));
    assert_eq!(of("default = \"ui\"").unwrap().gateway.served, None);
    let served = of("listen = \"127.0.0.1:0\"").unwrap().gateway.served.unwrap();
    assert_eq!((served.listen.to_string(), served.origin), ("127.0.0.1:0".to_owned(), None));
    let behind = "listen = \"10.0.0.1:80\"\ntrusted_proxy = \"10.0.0.2\"\norigin = \"https://a\"";
    assert!(of(behind).unwrap().gateway.served.unwrap().trusted_proxy.is_some());
    for (keys, expected) in [
        (
            "listen = \"0.0.0.0:80\"\norigin = \"http://a\"",
            expect![[r#"
            2:10 the gateway can't be served there | other machines reach this address, and the gateway would come without TLS: set `cert` and `key`, or `trusted_proxy`, or listen on 127.0.0.1
        "#]],
        ),
        (
            "origin = \"http://a\"\ncert = \"c\"\nkey = \"k\"",
            expect![[r#"
            2:10 the gateway comes by TLS, and its origin does not say so | write `https://`
            2:10 `origin` needs `listen` | write the address, such as `listen = "127.0.0.1:17322"`
            3:8 `cert` needs `listen` | write the address, such as `listen = "127.0.0.1:17322"`
            4:7 `key` needs `listen` | write the address, such as `listen = "127.0.0.1:17322"`
        "#]],
        ),
        (
            "listen = \"here\"",
            expect![[r#"
            2:10 "here" is not an IP address with a port | write one such as "127.0.0.1:17321" or "[::1]:17321"; port 0 takes a free one
        "#]],
        ),
    ] {
        expected.assert_eq(&errors(&format!("[gateway]\n{keys}\n{agents}")));
    }
}
