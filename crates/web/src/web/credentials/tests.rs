//! Tests of the browsers of persons, and of the holders of tokens with a scope.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::{Credentials, Entered, MOST_SESSIONS};
use crate::model::WebScope;
use crate::serve::OpenedOnWeb;
use crate::tokens::{NewToken, ScopedTokens, TokenHolder, TokenRight};

const PERSON: OpenedOnWeb = OpenedOnWeb::Scope(WebScope::Control);

struct Place {
    credentials: Credentials,
    tokens: ScopedTokens,
    _folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let credentials = Credentials::open("shop", folder.path().join("web.json")).unwrap();
        let tokens = ScopedTokens::open(folder.path()).unwrap();
        Self { credentials, tokens, _folder: folder }
    }

    fn holder(&self) -> TokenHolder {
        let may = BTreeSet::from([TokenRight::Read]);
        let new = NewToken {
            owner: "ada".to_owned(),
            may,
            agents: None,
            lasts: None,
            is_of_browser: false,
        };
        let (token, _) = self.tokens.create(new).unwrap();
        self.tokens.holder(&token).unwrap()
    }

    fn enter(&self, opens: &OpenedOnWeb) -> Entered {
        let link = self.credentials.link(opens.clone()).unwrap();
        self.credentials.enter(&link.code).unwrap().unwrap()
    }

    fn is_known(&self, entered: &Entered) -> bool {
        self.credentials.by_cookie(&entered.cookie).is_some()
    }
}

#[test]
fn a_browser_of_a_holder_opens_what_the_token_does_and_ends_with_it() {
    let place = Place::new();
    let holder = place.holder();
    let opens = OpenedOnWeb::Holder(holder.clone());
    let (left, stays) = (place.enter(&opens), place.enter(&opens));
    let of = |entered: &Entered| place.credentials.by_cookie(&entered.cookie).unwrap();
    assert_eq!(of(&left).opened_by(&left.token), Some(opens.clone()));
    assert_eq!(of(&left).opened_by(&stays.token), None);
    // One browser that leaves ends neither the token nor the other one.
    let credential = of(&left);
    place.credentials.leave(&credential);
    assert!(credential.revoked.is_cancelled() && !place.is_known(&left));
    assert!(holder.is_good() && place.is_known(&stays));

    let (credential, link) = (of(&stays), place.credentials.link(opens).unwrap());
    let person = place.enter(&PERSON);
    place.tokens.revoke(&holder.id).unwrap();
    assert!(credential.revoked.is_cancelled() && !place.is_known(&stays));
    assert_eq!(credential.opened_by(&stays.token), None);
    assert!(place.credentials.enter(&link.code).unwrap().is_none(), "a link outlasts its token");
    assert!(place.is_known(&person));
}

#[test]
fn holders_take_the_place_of_their_own_browsers_only() {
    let place = Place::new();
    let [ada, bob] = [place.holder(), place.holder()].map(OpenedOnWeb::Holder);
    let (person, of_bob, first) = (place.enter(&PERSON), place.enter(&bob), place.enter(&ada));
    let link = place.credentials.link(PERSON).unwrap();
    for _ in 0..MOST_SESSIONS {
        place.enter(&ada);
        place.credentials.link(ada.clone()).unwrap();
    }
    assert!(!place.is_known(&first), "a holder has as many browsers as there are links");
    assert!(place.is_known(&person) && place.is_known(&of_bob));
    assert!(place.credentials.enter(&link.code).unwrap().is_some());
    for _ in 0..MOST_SESSIONS {
        place.enter(&PERSON);
    }
    assert!(!place.is_known(&person) && place.is_known(&of_bob));
}

#[test]
fn revoking_all_ends_browsers_of_holders_and_no_token() {
    let place = Place::new();
    let holder = place.holder();
    let browser = place.enter(&OpenedOnWeb::Holder(holder.clone()));
    assert_eq!(place.credentials.revoke(None).unwrap(), 1);
    assert!(!place.is_known(&browser) && holder.is_good());
}
