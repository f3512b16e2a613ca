//! The places of connections that have shown a credential. Who has one credential, stolen perhaps,
//! takes no place that others need.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::credential::{Credential, SecretHash};
use crate::model::WebScope;

/// Connections at once; a request on one more is answered with 503, and so it is past the other two.
const MOST: usize = 256;

/// Connections of one credential, or of all credentials of one token with a scope. A browser has a WebSocket
/// for each tab, and a few more at most.
const MOST_OF_ONE: usize = 64;

/// Connections of all credentials that don't control the team: the rest is for those that do.
const MOST_BELOW_CONTROL: usize = 192;

/// All places.
#[derive(Clone, Default)]
pub(super) struct KnownPlaces(Arc<Mutex<HashMap<SecretHash, TakenPlaces>>>);

/// The places of one credential.
struct TakenPlaces {
    number: usize,
    scope: WebScope,
}

/// One place, until it is dropped.
pub(super) struct KnownPlace {
    of: SecretHash,
    all: KnownPlaces,
}

impl KnownPlaces {
    /// Takes a place; None if there is none for this credential.
    pub(super) fn take(&self, credential: &Credential) -> Option<KnownPlace> {
        let (of, scope) = (credential.counted_as(), credential.scope());
        let mut all = self.all();
        let number = |is_meant: &dyn Fn(WebScope) -> bool| -> usize {
            all.values().filter(|it| is_meant(it.scope)).map(|it| it.number).sum()
        };
        let is_below = |scope: WebScope| scope < WebScope::Control;
        let of_one = all.get(&of).map_or(0, |it| it.number);
        let is_full =
            number(&|_| true) >= MOST || is_below(scope) && number(&is_below) >= MOST_BELOW_CONTROL;
        if of_one >= MOST_OF_ONE || is_full {
            return None;
        }
        all.insert(of, TakenPlaces { number: of_one + 1, scope });
        Some(KnownPlace { of, all: self.clone() })
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SecretHash, TakenPlaces>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownPlace {
    pub(super) fn is_of(&self, credential: &Credential) -> bool {
        self.of == credential.counted_as()
    }
}

impl Drop for KnownPlace {
    fn drop(&mut self) {
        let mut all = self.all.all();
        if let Some(taken) = all.get_mut(&self.of) {
            taken.number -= 1;
            if taken.number == 0 {
                all.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::OpenedOnWeb;
    use crate::tokens::{TokenHolder, Visitor};
    use crate::web::credential::ShownBy;

    fn credential(name: &str, scope: WebScope) -> Credential {
        Credential::new(SecretHash::of(name), ShownBy::Bearer, OpenedOnWeb::Scope(scope))
    }

    fn all_of(places: &KnownPlaces, credential: &Credential) -> Vec<KnownPlace> {
        std::iter::from_fn(|| places.take(credential)).collect()
    }

    #[test]
    fn one_credential_takes_a_quarter_and_control_stays_reachable() {
        let places = KnownPlaces::default();
        let tokens: Vec<_> =
            (0..4).map(|at| credential(&format!("token {at}"), WebScope::Read)).collect();
        let mut taken: Vec<_> = tokens.iter().map(|token| all_of(&places, token)).collect();
        assert_eq!(taken.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 64, 0]);
        assert!(places.take(&credential("decides", WebScope::Decide)).is_none());
        let controls = all_of(&places, &credential("browser", WebScope::Control));
        assert_eq!(controls.len(), 64);
        assert!(places.take(&credential("other browser", WebScope::Control)).is_none());
        // What is given back is free for another one.
        taken[0].pop();
        assert!(places.take(&tokens[0]).is_some());
        let of_last = places.take(&tokens[3]);
        assert!(of_last.is_some_and(|place| place.is_of(&tokens[3])));
        drop((taken, controls));
        // The browsers of one token with a scope have the places of one.
        let holder = OpenedOnWeb::Holder(TokenHolder::of_visitor(Visitor::default()));
        let browser = |name: &str| {
            let shown = ShownBy::Cookie { token: SecretHash::of("page") };
            Credential::new(SecretHash::of(name), shown, holder.clone())
        };
        let taken = all_of(&places, &browser("desk"));
        assert_eq!((taken.len(), places.take(&browser("phone")).is_some()), (MOST_OF_ONE, false));
        drop(taken);
        assert!(places.all().is_empty());
    }
}
