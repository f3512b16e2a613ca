//! The order in which the candidates of a tier are tried, and what hinders each now.

use std::io;

use crate::budget::PriceList;
use crate::config::installed::Login;
use crate::config::{AgentTier, Pick, SharedConfig, TierCandidate};
use crate::model::{Price, TimestampMs};

use super::cooldowns::{Cooldowns, LoginId};
use super::setback::Setback;

/// A candidate as it stands now.
#[derive(Debug)]
pub struct CandidateStanding {
    pub candidate: TierCandidate,
    /// The profile at the end of its bases.
    pub base: String,
    /// Which account it works for.
    pub login: LoginId,
    /// No login of it is found, where its maker keeps one.
    pub seems_logged_out: bool,
    /// None: it can be taken.
    pub hindrance: Option<Hindrance>,
}

/// Why a candidate is not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hindrance {
    pub what: String,
    /// When it may be over; None: nobody knows.
    pub until: Option<TimestampMs>,
}

/// Looks the candidates of a tier up, in the order in which they are tried. `variable` looks up a
/// variable of the environment. The error is why not all cool-downs count.
pub fn standings(
    shared: &SharedConfig,
    tier: &AgentTier,
    kept: &Cooldowns,
    variable: &dyn Fn(&str) -> Option<String>,
    now: TimestampMs,
) -> (Vec<CandidateStanding>, Option<io::Error>) {
    let mut trouble = None;
    let cooldowns = kept.read(now).unwrap_or_else(|error| {
        trouble = Some(error);
        Vec::new()
    });
    let last = match tier.pick {
        Pick::Rotate => kept.last_taken(&tier.name).unwrap_or_default(),
        Pick::First | Pick::Cheapest => None,
    };
    let mut all = Vec::new();
    for candidate in in_order(shared, tier, last.as_deref()) {
        let provider = candidate.provider.as_deref();
        let found = shared.on_machine(&candidate.profile, provider, variable);
        let nobody = || Ok(LoginId::default());
        let login = found.as_ref().map_or_else(nobody, |found| kept.login(found));
        let login = login.unwrap_or_else(|error| {
            trouble = Some(error);
            LoginId::default()
        });
        let base = shared.base_of(&candidate.profile).to_owned();
        let model = candidate.model.as_deref();
        let cooling = cooldowns.iter().filter(|it| it.is_for(&base, &login, model, now));
        let longest = cooling.max_by_key(|it| it.until_ms);
        let hindrance = match &found {
            Some(found) if found.program.is_some() => {
                longest.map(|it| Hindrance { what: it.reason.clone(), until: Some(it.until_ms) })
            }
            _ => Some(Hindrance { what: Setback::not_installed().what.to_owned(), until: None }),
        };
        let seems_logged_out = found.is_some_and(|found| matches!(found.login, Login::NotFound(_)));
        all.push(CandidateStanding { candidate, base, login, seems_logged_out, hindrance });
    }
    (all, trouble)
}

fn in_order(shared: &SharedConfig, tier: &AgentTier, last: Option<&str>) -> Vec<TierCandidate> {
    let mut candidates = tier.candidates.clone();
    match tier.pick {
        Pick::First => {}
        Pick::Rotate => {
            let last = candidates.iter().position(|it| Some(it.key().as_str()) == last);
            let next = last.map_or(0, |last| (last + 1) % candidates.len());
            candidates.rotate_left(next);
        }
        Pick::Cheapest => {
            let prices = PriceList::new(shared.prices.clone());
            let price = |it: &TierCandidate| prices.price(it.model.as_deref()?).cloned();
            let currency = candidates.iter().find_map(price).map(|price| price.currency);
            // In another currency it can't be compared.
            let amount = |it: &TierCandidate| {
                let price = price(it).filter(|price| Some(&price.currency) == currency.as_ref());
                price.as_ref().map_or(f64::INFINITY, weighed)
            };
            candidates.sort_by(|a, b| amount(a).total_cmp(&amount(b)));
        }
    }
    candidates
}

/// A price in one number: agents read several times what they write.
fn weighed(price: &Price) -> f64 {
    price.input * 3.0 + price.output
}

#[cfg(test)]
mod tests;
