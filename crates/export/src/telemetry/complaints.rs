//! Complaints about a collector that does not take spans: each reason once an hour, with advice.

use std::time::Duration;

use indexmap::IndexMap;
use tokio::time::Instant;

use crate::post::PostFailed;

/// How long a reason is not said again.
const AGAIN: Duration = Duration::from_hours(1);

/// Reasons within that time; more are not said.
const MOST: usize = 16;

#[derive(Default)]
pub(super) struct Complaints(IndexMap<String, Instant>);

impl Complaints {
    /// Whether to say a reason now.
    pub(super) fn is_due(&mut self, why: &str, now: Instant) -> bool {
        self.0.retain(|_, said| now.duration_since(*said) < AGAIN);
        let is_due = self.0.len() < MOST && !self.0.contains_key(why);
        if is_due {
            self.0.insert(why.to_owned(), now);
        }
        is_due
    }
}

/// Why a request failed, and what to do if that is known.
pub(super) fn reason(url: &str, failed: &PostFailed) -> String {
    let why = &failed.why;
    let advice = match failed.status {
        Some(401 | 403) => "it wants a key, or another one: see `headers` of `[telemetry]`",
        Some(404 | 405) => {
            "`otlp` is the base address of OTLP over HTTP; `/v1/traces` is added to it"
        }
        Some(300..=399) => "redirects are not followed: `otlp` has to name where it leads",
        Some(415) => "it does not take OTLP as protobuf",
        None if url.contains(":4317/") => {
            "4317 is mostly the port of OTLP over gRPC; over HTTP it is 4318"
        }
        _ => return why.clone(),
    };
    format!("{why}: {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once_an_hour_and_each_on_its_own() {
        let (mut complaints, start) = (Complaints::default(), Instant::now());
        let after = |minutes| start + Duration::from_mins(minutes);
        assert!(complaints.is_due("refused", after(0)));
        assert!(!complaints.is_due("refused", after(1)));
        assert!(complaints.is_due("http status: 401", after(2)));
        assert!(!complaints.is_due("refused", after(59)));
        assert!(complaints.is_due("refused", after(60)));
        assert!(!complaints.is_due("http status: 401", after(61)));
        // However many there are.
        let said = (0..100).filter(|n| complaints.is_due(&n.to_string(), after(61))).count();
        assert_eq!(said, MOST - 2);
    }

    #[test]
    fn a_reason_says_what_to_do() {
        let of = |url: &str, status| {
            let why = "it failed".to_owned();
            reason(url, &PostFailed { status, ..PostFailed::for_good(why) })
        };
        let url = "http://127.0.0.1:4318/v1/traces";
        for (status, wanted) in [
            (401, "`headers`"),
            (403, "`headers`"),
            (404, "`/v1/traces` is added"),
            (307, "redirects are not followed"),
            (415, "protobuf"),
        ] {
            let said = of(url, Some(status));
            assert!(said.starts_with("it failed: ") && said.contains(wanted), "{said}");
        }
        assert_eq!(of(url, Some(500)), "it failed");
        assert_eq!(of(url, None), "it failed");
        assert!(of("http://127.0.0.1:4317/v1/traces", None).contains("over HTTP it is 4318"));
    }
}
