//! The troubles for which another candidate takes over.

use std::time::Duration;

use crate::extract::Trouble;
use crate::model::TimestampMs;

/// Troubles of an account or a model, as they are named: with another one the same task may succeed.
const OF_OTHERS: [&str; 6] = [
    "rate limited",
    "usage limit reached",
    "overloaded",
    "no credit",
    "not authenticated",
    "model unknown",
];

/// The troubles of one model: another model of the same account may be free of them.
const OF_MODEL: [&str; 3] = ["overloaded", "model unknown", SILENT];

/// Nothing came from it since its prompt: its model's service may be why.
const SILENT: &str = "silent";

/// The candidate went on for a while, and then no more.
const STUCK: &str = "stuck";

/// How the reasons of [`Setback::silence`] begin.
const SINCE_PROMPT: &str = "it showed no progress since its prompt, for ";
const NO_MORE: &str = "it showed no progress any more, for ";

const NOT_INSTALLED: &str = "not installed";

/// Why a candidate can't work now, where another one may.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setback {
    /// Such as `rate limited`.
    pub what: &'static str,
    /// Waiting helps.
    pub is_transient: bool,
    /// When its vendor says to try again.
    pub again_at: Option<TimestampMs>,
}

impl Setback {
    /// Its program is not there.
    pub fn not_installed() -> Self {
        Self { what: NOT_INSTALLED, is_transient: false, again_at: None }
    }

    /// The reason of an agent whose turn was ended after a silence. Where it reported a setback itself, that
    /// is the reason: it asks its model's service again and again.
    pub fn silence(since_prompt: bool, trouble: Option<&str>, time: Duration) -> String {
        let beginning = if since_prompt { SINCE_PROMPT } else { NO_MORE };
        let silence = format!("{beginning}{} s", time.as_secs());
        match trouble.filter(|trouble| Self::of(trouble, 0).is_some()) {
            Some(trouble) => format!("{trouble}; {silence}"),
            None => silence,
        }
    }

    /// Reads why a turn failed, or why an agent did not get ready. None: another candidate would
    /// not do better.
    pub fn of(reason: &str, now: TimestampMs) -> Option<Self> {
        // Errors of the start, in this program's own words.
        if reason.starts_with("cannot start") && reason.contains("not found on PATH") {
            return Some(Self::not_installed());
        }
        if reason.starts_with("the agent offers no model ") {
            return Some(Self { what: "model unknown", is_transient: false, again_at: None });
        }
        for (beginning, what) in [(SINCE_PROMPT, SILENT), (NO_MORE, STUCK)] {
            if reason.starts_with(beginning) {
                return Some(Self { what, is_transient: false, again_at: None });
            }
        }
        let trouble = Trouble::of(reason)?;
        OF_OTHERS.contains(&trouble.what()).then(|| Self {
            what: trouble.what(),
            is_transient: trouble.is_transient(),
            again_at: trouble.again_at(now),
        })
    }

    /// Whether only the model has it, and not the whole account.
    pub fn is_of_model(&self) -> bool {
        OF_MODEL.contains(&self.what)
    }

    /// Whether it says something of the login, which ends with another one.
    pub fn is_of_login(&self) -> bool {
        self.what == "not authenticated"
    }

    /// Whether the candidate is to be left alone for a while.
    pub fn cools_down(&self) -> bool {
        // Who is stuck could work before: the task may be why.
        self.what != NOT_INSTALLED && self.what != STUCK
    }

    /// Whether it was ended since it showed no progress.
    pub fn is_silence(what: &str) -> bool {
        [SILENT, STUCK].contains(&what)
    }

    /// How long to wait before the same candidate is tried once more.
    pub fn wait(&self, now: TimestampMs, patience: Duration) -> Option<Duration> {
        let until = self.again_at.filter(|_| self.is_transient)?;
        let wait = Duration::from_millis(until.saturating_sub(now));
        (wait <= patience).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_troubles_are_for_another_candidate() {
        let now = 1_760_000_000_000;
        for (reason, what, again_in_s) in [
            (
                "rate limited (transient, try again in 20 s): 429 Too Many Requests, retry after 20 s",
                Some("rate limited"),
                Some(20),
            ),
            (
                "the agent answered `session/prompt` with error -32603: 529 overloaded_error",
                Some("overloaded"),
                None,
            ),
            (
                "usage limit reached (transient, try again at 2025-10-09T09:00:00Z): Claude AI usage limit reached|1760000400",
                Some("usage limit reached"),
                Some(400),
            ),
            ("no credit (user's to mend): Your credit balance is too low", Some("no credit"), None),
            (
                "Authentication required; set `auth_method` to one that the agent offers (`key`)",
                Some("not authenticated"),
                None,
            ),
            (
                "the agent answered `session/new` with error -32000: Please log in",
                Some("not authenticated"),
                None,
            ),
            (
                "cannot start `codex-acp`: not found on PATH; install it or give its full path",
                Some("not installed"),
                None,
            ),
            ("the agent offers no model `x`; it offers `a`", Some("model unknown"), None),
            ("model_not_found", Some("model unknown"), None),
            // Another one would do no better, or nobody knows.
            ("context too long (terminal): prompt is too long", None, None),
            ("refused by policy (terminal): content_policy", None, None),
            ("server error (transient): 502 Bad Gateway", None, None),
            ("connection failed (transient): ECONNREFUSED", None, None),
            ("the agent ended: it exited with code 3", None, None),
            ("the agent ended its turn without an answer", None, None),
            ("its time is up", None, None),
        ] {
            let setback = Setback::of(reason, now);
            assert_eq!(setback.as_ref().map(|it| it.what), what, "{reason}");
            let again = setback.and_then(|it| it.again_at).map(|at| (at - now) / 1000);
            assert_eq!(again, again_in_s, "{reason}");
        }
    }

    #[test]
    fn a_silence_is_a_setback_of_the_model_or_of_the_task() {
        let of = |since_prompt| {
            let reason = Setback::silence(since_prompt, None, Duration::from_secs(90));
            Setback::of(&reason, 1).map(|it| (it.what, it.cools_down(), it.is_of_model()))
        };
        assert_eq!(of(true), Some(("silent", true, true)));
        assert_eq!(of(false), Some(("stuck", false, false)));
    }

    #[test]
    fn a_short_hint_is_waited_out() {
        let now = 1_760_000_000_000;
        let patience = Duration::from_secs(60);
        let wait = |reason| Setback::of(reason, now).and_then(|it| it.wait(now, patience));
        assert_eq!(wait("429, retry after 20 s"), Some(Duration::from_secs(20)));
        assert_eq!(wait("429, retry after 61 s"), None);
        assert_eq!(wait("429"), None);
        // A hint does not help there.
        assert_eq!(wait("payment required, try again in 20 s"), None);
    }
}
