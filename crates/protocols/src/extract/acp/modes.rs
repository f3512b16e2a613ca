//! The mode of a session, as its agent names it: in some of them agents make model calls that they never
//! report.

use super::Acp;
use crate::extract::json::{Members, elements};
use crate::model::SessionId;

/// Bytes of a mode's id; a longer one is none that is known.
const LONGEST: usize = 256;

impl Acp {
    /// Learns the mode that an answer or an update names.
    pub(super) fn learn_mode(&mut self, session: &SessionId, message: &Members<'_>) {
        if self.uncounted_mode.is_some()
            && let Some(mode) = current(message)
        {
            self.mode_chosen(session, &mode);
        }
    }

    pub(super) fn mode_chosen(&mut self, session: &SessionId, mode: &str) {
        let is_uncounted = self.uncounted_mode.as_deref() == Some(mode);
        self.sessions.remember(session).is_uncounted = is_uncounted;
    }
}

/// The id of a mode in the params of a request.
pub(super) fn chosen(params: &Members<'_>) -> Option<String> {
    short(params, "modeId")
}

fn current(message: &Members<'_>) -> Option<String> {
    let of_modes = || short(&Members::of(message.get("modes")?)?, "currentModeId");
    let of_option = || {
        let options = message.get("configOptions").and_then(elements)?;
        let mut options = options.into_iter().filter_map(Members::of);
        short(&options.find(|it| it.text("category").as_deref() == Some("mode"))?, "currentValue")
    };
    short(message, "currentModeId").or_else(of_option).or_else(of_modes)
}

fn short(members: &Members<'_>, key: &str) -> Option<String> {
    members.text(key).filter(|id| id.len() <= LONGEST).map(std::borrow::Cow::into_owned)
}
