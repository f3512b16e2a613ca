//! The requests to a team over NATS: each is performed once, however often it arrives, and one that comes too
//! late is refused. Pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use indexmap::IndexMap;

use super::message::HubRequest;
use super::presence::EVERY;
use crate::serve;

/// Requests that are performed at once, and how many of them may be of the methods that last; a further one
/// is refused. So decisions find a place beside any number of prompts.
const MOST_RUNNING: usize = 256;
const MOST_LASTING: usize = 192;

/// Answers that are kept for requests that are sent again, their bytes, and how long.
const MOST_KEPT: usize = 4_096;
const MOST_BYTES: usize = 64 << 20;
const KEPT: Duration = Duration::from_mins(10);

/// A request whose hub heard no beat for so long is late: who asked was told that the team is away.
const LATE: Duration = Duration::from_secs(15);

/// Stands for an answer that is not kept any more.
const GONE: &[u8] =
    br#"{"error":{"code":500,"message":"this was done, and its answer is not kept any more"}}"#;

/// Beats whose time is known.
const BEATS: usize = 64;
const _: () = assert!(EVERY.as_secs() * BEATS as u64 > LATE.as_secs());

#[derive(Debug)]
pub(super) struct Answers {
    epoch: String,
    known: IndexMap<String, KnownRequest>,
    bytes: usize,
    running: usize,
    lasting: usize,
    beats: VecDeque<(u64, Instant)>,
}

#[derive(Debug)]
enum KnownRequest {
    Running { is_lasting: bool },
    Done(Bytes, Instant),
}

/// The decision on a request.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Admission {
    Run,
    Running,
    Done(Bytes),
    Refused(u16, String),
    /// The request is for another start of the team, which may answer.
    Ignored,
}

impl Answers {
    pub(super) fn new(epoch: String) -> Self {
        let (known, beats) = (IndexMap::new(), VecDeque::new());
        Self { epoch, known, bytes: 0, running: 0, lasting: 0, beats }
    }

    /// Notes when a beat was sent.
    pub(super) fn beat(&mut self, beat: u64, now: Instant) {
        self.beats.push_back((beat, now));
        if self.beats.len() > BEATS {
            self.beats.pop_front();
        }
    }

    /// Decides on a request that arrives.
    pub(super) fn admit(&mut self, request: &HubRequest, now: Instant) -> Admission {
        if request.epoch != self.epoch {
            return Admission::Ignored;
        }
        match self.known.get_mut(&request.id) {
            Some(KnownRequest::Done(answer, _)) => return Admission::Done(answer.clone()),
            Some(KnownRequest::Running { .. }) => return Admission::Running,
            None => {}
        }
        let heard = self.beats.iter().find(|(beat, _)| *beat == request.beat);
        let is_late = heard.is_none_or(|(_, sent)| now.duration_since(*sent) > LATE);
        if is_late {
            let message = "this request came too late: unless it was done before, it is not done";
            return Admission::Refused(409, message.to_owned());
        }
        let is_lasting = serve::facts(&request.method).is_some_and(|facts| facts.lasts);
        let are_too_many = self.running >= MOST_RUNNING || self.known.len() >= 2 * MOST_KEPT;
        if are_too_many || is_lasting && self.lasting >= MOST_LASTING {
            let message = format!(
                "{} requests of hubs are under way, {} of them prompts and others that last",
                self.running, self.lasting
            );
            return Admission::Refused(409, message);
        }
        self.running += 1;
        self.lasting += usize::from(is_lasting);
        self.known.insert(request.id.clone(), KnownRequest::Running { is_lasting });
        Admission::Run
    }

    /// Keeps the answer of a request.
    pub(super) fn done(&mut self, id: &str, answer: &Bytes, now: Instant) {
        let Some(&KnownRequest::Running { is_lasting }) = self.known.get(id) else { return };
        // The newest is the last one.
        self.known.shift_remove(id);
        self.running -= 1;
        self.lasting -= usize::from(is_lasting);
        self.bytes += answer.len();
        self.known.insert(id.to_owned(), KnownRequest::Done(answer.clone(), now));
        self.forget(now);
    }

    /// Forgets the oldest answers past the limits.
    fn forget(&mut self, now: Instant) {
        let mut at = 0;
        while let Some((_, known)) = self.known.get_index(at) {
            let KnownRequest::Done(answer, since) = known else {
                at += 1;
                continue;
            };
            let age = now.duration_since(*since);
            let is_over = self.known.len() - self.running > MOST_KEPT;
            if age > KEPT || is_over && age > LATE {
                self.bytes -= answer.len();
                self.known.shift_remove_index(at);
            } else if self.bytes > MOST_BYTES {
                // Its id stays: it is not to be done again.
                let since = *since;
                self.bytes = self.bytes - answer.len() + GONE.len();
                self.known[at] = KnownRequest::Done(Bytes::from_static(GONE), since);
                at += 1;
            } else {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tokens::Visitor;

    fn request(id: &str, epoch: &str, beat: u64) -> HubRequest {
        let by = Visitor { owner: "ada".to_owned(), ..Visitor::default() };
        let (id, epoch, method) = (id.to_owned(), epoch.to_owned(), "prompt".to_owned());
        HubRequest { id, epoch, inbox: "inbox".to_owned(), beat, by, method, params: None }
    }

    fn refusal(admission: &Admission) -> &str {
        let Admission::Refused(409, message) = admission else { return "" };
        message
    }

    #[test]
    fn a_request_is_performed_once_however_often_it_arrives() {
        let (mut answers, now) = (Answers::new("e".to_owned()), Instant::now());
        answers.beat(1, now);
        let asked = request("r1", "e", 1);
        assert_eq!(answers.admit(&asked, now), Admission::Run);
        assert_eq!(answers.admit(&asked, now), Admission::Running);
        let answer = Bytes::from_static(b"{}");
        answers.done("r1", &answer, now);
        answers.done("r1", &answer, now);
        // Also when it comes late.
        let late = now + LATE * 2;
        assert_eq!(answers.admit(&asked, late), Admission::Done(answer));
    }

    #[test]
    fn requests_of_an_earlier_start_and_late_ones_are_not_performed() {
        let (mut answers, now) = (Answers::new("e2".to_owned()), Instant::now());
        answers.beat(7, now);
        let late = now + LATE + Duration::from_millis(1);
        assert_eq!(answers.admit(&request("r1", "e1", 7), now), Admission::Ignored);
        for (asked, at) in [(request("r2", "e2", 6), now), (request("r3", "e2", 7), late)] {
            let admission = answers.admit(&asked, at);
            assert!(refusal(&admission).contains("too late"), "{admission:?}");
        }
        assert_eq!(answers.admit(&request("r4", "e2", 7), now), Admission::Run);
    }

    #[test]
    fn what_runs_and_what_is_kept_is_bounded() {
        let (mut answers, now) = (Answers::new("e".to_owned()), Instant::now());
        answers.beat(1, now);
        for n in 0..MOST_RUNNING {
            let asked = request(&format!("r{n}"), "e", 1);
            // Past the places of what lasts there are some for decisions.
            if n >= MOST_LASTING {
                let prompt = answers.admit(&asked, now);
                assert!(refusal(&prompt).contains("under way"), "{prompt:?}");
            }
            let method = if n < MOST_LASTING { "prompt" } else { "resolve_blocked" };
            let asked = HubRequest { method: method.to_owned(), ..asked };
            assert_eq!(answers.admit(&asked, now), Admission::Run);
        }
        let more = HubRequest { method: "resolve_blocked".to_owned(), ..request("more", "e", 1) };
        let more = answers.admit(&more, now);
        assert!(refusal(&more).contains("under way"), "{more:?}");
        let answer = Bytes::from(vec![b'x'; MOST_BYTES / 4]);
        for n in 0..MOST_RUNNING {
            answers.done(&format!("r{n}"), &answer, now);
        }
        assert!(answers.bytes <= MOST_BYTES);
        assert_eq!((answers.running, answers.lasting), (0, 0));
        // None of them is done again.
        let first = answers.admit(&request("r0", "e", 1), now);
        assert_eq!(first, Admission::Done(Bytes::from_static(GONE)));
        answers.admit(&request("next", "e", 1), now);
        answers.done("next", &Bytes::new(), now + KEPT * 2);
        assert_eq!(answers.known.len(), 1);
    }
}
