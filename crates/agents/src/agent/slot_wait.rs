//! The slot of an agent's profile, which it shares with all teams and runs of the user: waits for it, and
//! holds it until the agent's process has ended.

use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::model::AgentId;
use crate::slots::{SlotError, SlotPlace, SlotRequest, SlotWaiter, Slots, TakenSlot, Wait};

/// The slot that an agent needs.
#[derive(Clone, Debug)]
pub struct SlotWish {
    pub slots: Slots,
    /// The profile that the agent's goes back to.
    pub base: String,
    /// How many slots there are.
    pub limit: u32,
    pub team: String,
    /// The agents that it is a helper of, the nearest first.
    pub above: Vec<String>,
}

pub(super) struct SlotWait {
    /// Ends once.
    taking: BoxFuture<'static, Result<TakenSlot, SlotError>>,
    waits_for: watch::Receiver<Option<String>>,
    held: Option<TakenSlot>,
}

impl SlotWait {
    pub(super) fn new(wish: &SlotWish, agent: &AgentId) -> Self {
        let SlotWish { slots, base, limit, team, above } = wish.clone();
        let request = SlotRequest {
            tool_name: "eisen-core up".to_owned(),
            reason: format!("the agent `{agent}` of the team `{team}`"),
            run: None,
            team: Some(team.clone()),
            agent: Some(agent.to_string()),
        };
        let (sender, waits_for) = watch::channel(None);
        let taking = async move {
            let on_wait =
                |standing: &SlotWaiter| drop(sender.send_replace(Some(standing.to_string())));
            let place = slots.place_of(&base, &team, &above)?;
            let limit = if matches!(place, SlotPlace::Base(_)) { limit } else { 1 };
            slots.acquire(&place, limit, request, Wait::Forever, on_wait).await
        };
        Self { taking: taking.boxed(), waits_for, held: None }
    }

    /// Waits until it has the slot (None), or what it waits for has changed. Cancel-safe.
    pub(super) async fn news(&mut self) -> Option<String> {
        let Self { taking, waits_for, held } = self;
        if held.is_some() {
            return None;
        }
        tokio::select! {
            biased;
            taken = &mut *taking => {
                // It is not asked again.
                *taking = std::future::pending().boxed();
                match taken {
                    Ok(slot) => {
                        *held = Some(slot);
                        None
                    }
                    Err(error) => {
                        let why = format!("it can't take its slot: {error}");
                        tracing::error!(%why);
                        Some(why)
                    }
                }
            }
            Ok(()) = waits_for.changed() => waits_for.borrow_and_update().clone(),
            else => std::future::pending().await,
        }
    }
}

impl fmt::Debug for SlotWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotWait").field("held", &self.held).finish_non_exhaustive()
    }
}
