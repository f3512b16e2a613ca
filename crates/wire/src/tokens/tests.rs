//! Tests of the tokens, and of their file.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use super::{NewToken, ScopedTokens, TokenRight, TokensError};
use crate::kept::power_cut::survives;
use crate::model::AgentId;

fn new(owner: &str) -> NewToken {
    NewToken {
        owner: owner.to_owned(),
        may: BTreeSet::from([TokenRight::Read, TokenRight::Prompt]),
        agents: Some(BTreeSet::from([AgentId::new("ui")])),
        lasts: None,
        is_of_browser: false,
    }
}

#[test]
fn a_token_is_kept_as_a_hash_that_only_its_owner_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = ScopedTokens::open(&folder.path().join("shop")).unwrap();
    let (token, record) = tokens.create(new("ada")).unwrap();
    let file = folder.path().join("shop/tokens.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&token) && !text.contains(&token["eisen_".len()..]), "{text}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // Another run of the team knows it, too.
    let again = ScopedTokens::open(&folder.path().join("shop")).unwrap();
    assert_eq!(again.list(), [record]);
    let holder = again.holder(&token).unwrap();
    assert!(holder.may(TokenRight::Read) && !holder.may(TokenRight::Decide));
    assert!(holder.covers(&AgentId::new("ui")) && !holder.covers(&AgentId::new("api")));
    for wrong in ["", "eisen_", &token[1..], &token[..token.len() - 1], &format!("{token} ")] {
        assert!(again.holder(wrong).is_none(), "{wrong}");
    }
}

#[tokio::test]
async fn a_revoked_token_ends_at_once_and_also_what_was_opened_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = ScopedTokens::open(folder.path()).unwrap();
    let (token, record) = tokens.create(new("ada")).unwrap();
    let (other, _) = tokens.create(new("bob")).unwrap();
    let (holder, stays) = (tokens.holder(&token).unwrap(), tokens.holder(&other).unwrap());
    survives(&folder.path().join("tokens.json"), || tokens.revoke(record.id()).unwrap());
    holder.ended().await;
    assert!(!holder.is_good() && stays.is_good() && tokens.holder(&token).is_none());
    assert!(matches!(tokens.revoke(record.id()), Err(TokensError::Unknown(_))));
    assert_eq!(ScopedTokens::open(folder.path()).unwrap().list().len(), 1);
    // One of a browser is known as such as long as this team runs.
    let (token, _) = tokens.create(NewToken { is_of_browser: true, ..new("ann") }).unwrap();
    assert!(tokens.holder(&token).unwrap().is_of_browser());
    assert!(!tokens.holder(&other).unwrap().is_of_browser());
}

#[tokio::test]
async fn a_token_expires_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = ScopedTokens::open(folder.path()).unwrap();
    let lasts = Some(Duration::from_millis(50));
    let (token, _) = tokens.create(NewToken { lasts, ..new("ada") }).unwrap();
    if let Some(holder) = tokens.holder(&token) {
        holder.ended().await;
        assert!(!holder.is_good());
    }
    assert!(tokens.holder(&token).is_none());
}

#[test]
fn two_processes_change_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let open = || ScopedTokens::open(folder.path()).unwrap();
    let (one, other) = (open(), open());
    let (token, record) = one.create(new("ada")).unwrap();
    let holder = one.holder(&token).unwrap();
    other.create(new("bob")).unwrap();
    other.revoke(record.id()).unwrap();
    // The next change finds that it is gone.
    one.create(new("eve")).unwrap();
    assert!(!holder.is_good());
    let owners: Vec<_> = open().list().into_iter().map(|record| record.owner).collect();
    assert_eq!(owners, ["bob", "eve"]);
}

#[test]
fn a_file_that_can_t_be_read_opens_nothing() {
    let whole =
        format!(r#"{{"hash":"{}","owner":"a","may":["read"],"created_ms":1}}"#, "a".repeat(64));
    for (text, is_good) in [
        (format!(r#"{{"tokens":[{whole}]}}"#), true),
        (String::new(), false),
        ("{".to_owned(), false),
        (format!(r#"{{"tokens":[{whole}"#), false),
        (format!(r#"{{"tokens":[{}]}}"#, whole.replace("read", "rule")), false),
        (format!(r#"{{"tokens":[{}]}}"#, whole.replace("created_ms", "made")), false),
        // A later version may know limits that this one would not keep.
        (format!(r#"{{"tokens":[{}]}}"#, whole.replace(r#""may""#, r#""only":1,"may""#)), false),
        (format!(r#"{{"tokens":[{}]}}"#, whole.replace("aaaa", "zzzz")), false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokens.json"), &text).unwrap();
        let opened = ScopedTokens::open(folder.path());
        assert_eq!(opened.is_ok(), is_good, "{text}");
    }
}

#[test]
fn there_is_a_limit_and_what_has_expired_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = ScopedTokens::open(folder.path()).unwrap();
    let hash = |at: usize| blake3::hash(&at.to_le_bytes()).to_hex().to_string();
    let kept = |at: usize| {
        let expires = if at == 0 { r#","expires_ms":2"# } else { "" };
        let hash = hash(at);
        format!(r#"{{"hash":"{hash}","owner":"a","may":[],"created_ms":1{expires}}}"#)
    };
    let all: Vec<_> = (0..256).map(kept).collect();
    let text = format!(r#"{{"tokens":[{}]}}"#, all.join(","));
    std::fs::write(folder.path().join("tokens.json"), text).unwrap();
    tokens.create(new("ada")).unwrap();
    assert!(matches!(tokens.create(new("bob")), Err(TokensError::Full)));
}
