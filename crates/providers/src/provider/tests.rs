#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn a_key_is_in_no_text_that_is_shown() {
    let provider =
        ModelProvider::new("work", ProviderKind::OpenAi, "https://api.example/v1").unwrap();
    let provider = provider.with_key("sk-SECRET".to_owned()).unwrap();
    let key = provider.key.as_ref().unwrap();
    assert_eq!(key.name(), "authorization");
    assert_eq!(key.value(), "Bearer sk-SECRET");
    let shown = format!("{provider:?} {:?}", key.value());
    assert!(!shown.contains("SECRET"), "{shown}");
    for bad in ["", "a b", "ä", "a\n", &"x".repeat(9000)] {
        let provider = ModelProvider::new("a", ProviderKind::OpenAi, "http://h").unwrap();
        let fault = provider.with_key(bad.to_owned()).unwrap_err();
        assert_eq!(fault, ProviderFault::Key);
    }
}

#[test]
fn addresses_keep_their_path_and_refuse_what_is_none() {
    for (url, path, at) in [
        ("https://api.example/v1", "/responses", "https://api.example/v1/responses"),
        ("https://api.example/v1/", "/a%20b/", "https://api.example/v1/a%20b/"),
        ("http://127.0.0.1:8080", "", "http://127.0.0.1:8080/"),
        ("http://[::1]:1/a/b", "/x", "http://[::1]:1/a/b/x"),
    ] {
        let url = ProviderUrl::new(url).unwrap();
        assert_eq!(url.at(path, None).unwrap().to_string(), at);
        assert_eq!(url.at(path, Some("k=v&w")).unwrap().to_string(), format!("{at}?k=v&w"));
    }
    for bad in [
        "",
        "api.example",
        "/v1",
        "ftp://api.example",
        "https://user:pw@api.example",
        "https://api.example/v1?x",
        "https://api.example/v1#x",
        "https://",
        "http:///x",
    ] {
        assert_eq!(ProviderUrl::new(bad), Err(ProviderFault::Url), "{bad}");
    }
    for bad in ["", "a/b", "..", "-a", "a b", &"x".repeat(65)] {
        let provider = ModelProvider::new(bad, ProviderKind::Gemini, "http://h");
        assert_eq!(provider.unwrap_err(), ProviderFault::Name, "{bad}");
    }
}
