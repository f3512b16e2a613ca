//! A run by a tier: one candidate after the other, until one's turn ends otherwise than by a setback.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::config::{AgentTier, OnFailover, SharedConfig, TierCandidate};
use crate::failover::begin_cooldown;
use crate::failover::candidates::Untried;
use crate::failover::handover::{PastWork, hand_over};
use crate::failover::past_work::{look, take_back};
use crate::failover::told::{Failed, none_left, told};
use crate::jobs::run::Job;
use crate::jobs::run::repository::Repository;
use crate::jobs::run::work::{Patience, closed, work};
use crate::model::now_ms;
use crate::program::{StopSignals, outlet};
use crate::runs::{RunAttempt, RunFolder, RunState, RunStatus};
use crate::team_file::of_run::for_candidate;
use crate::tiers::{CandidateStanding, Cooldowns, Setback};
use crate::turn::{FAILED, NOT_STARTED, Used, WorkEnd, clipped, keep};

/// A run by a tier, on its way.
struct Tour<'a> {
    job: &'a Job<'a>,
    run: String,
    shared: SharedConfig,
    tier: AgentTier,
    kept: Cooldowns,
    repository: Repository,
    task: String,
    /// Candidates that were tried.
    failed: Vec<Failed>,
    /// The work of the candidates that were prompted.
    past: Vec<PastWork>,
    used: Used,
    /// Candidates of which it was said why they are passed over.
    said: HashSet<String>,
    /// How often an id was used.
    ids: HashMap<String, usize>,
}

/// Performs a run by a tier.
pub(super) async fn by_tier(
    job: &Job<'_>,
    state: &mut RunState,
    tier: &str,
    task: String,
    stop: &mut StopSignals,
) -> WorkEnd {
    let shared = match SharedConfig::read(job.eisen_dir, Some(&job.folder.config())) {
        Ok(shared) => shared,
        Err(errors) => return WorkEnd::not_started(errors.to_string()),
    };
    let Some(tier) = shared.tier(tier).cloned() else {
        return WorkEnd::not_started(format!("there is no tier `{tier}` any more"));
    };
    let mut tour = Tour {
        job,
        run: state.id.clone(),
        shared,
        tier,
        kept: Cooldowns::new(job.eisen_dir),
        repository: Repository::new(&state.workspace),
        task,
        failed: Vec::new(),
        past: Vec::new(),
        used: Used::default(),
        said: HashSet::new(),
        ids: HashMap::new(),
    };
    let mut end = tour.go(state, stop).await;
    end.used = std::mem::take(&mut tour.used);
    end
}

impl Tour<'_> {
    async fn go(&mut self, state: &mut RunState, stop: &mut StopSignals) -> WorkEnd {
        let mut last: Option<WorkEnd> = None;
        loop {
            let (next, skipped) = self.next();
            let Some(next) = next else { return self.exhausted(last, &skipped) };
            self.say_next(&next, &skipped);
            let prompt = self.prompt(state).await;
            if let Some(signal) = stop.next().now_or_never() {
                return WorkEnd::stopped(signal);
            }
            let end = self.attempt(&next, state, prompt, stop).await;
            let Some(setback) = end.setback() else { return end };
            self.fell_back(next, &setback, &end, state);
            if state.no_failover {
                return end;
            }
            last = Some(end);
        }
    }

    /// The candidate that is taken now, and those before it that can't be.
    fn next(&self) -> (Option<CandidateStanding>, Vec<Failed>) {
        let untried = Untried::look(&self.shared, &self.tier, &self.kept, &self.failed);
        if let Some(error) = &untried.trouble {
            self.say(&format!("cannot read the cool-downs, so none counts: {error}"));
        }
        untried.next()
    }

    /// Says who is passed over for whom, and each reason once.
    fn say_next(&mut self, next: &CandidateStanding, skipped: &[Failed]) {
        let known = &mut self.said;
        let mut is_news = |failed: &&Failed| known.insert(failed.candidate.key());
        let passed = self.failed.last().into_iter().chain(skipped);
        let passed: Vec<_> = passed.filter(|it| is_news(it)).map(told).collect();
        if !passed.is_empty() {
            let verb = if self.failed.is_empty() { "begins" } else { "goes on" };
            self.say(&format!("{}: {verb} with {}", passed.join(", "), next.candidate));
        }
    }

    /// The prompt of the next candidate: the task, with what was done so far.
    async fn prompt(&mut self, state: &RunState) -> String {
        let (eisen_dir, team) = (self.job.eisen_dir, state.team.as_str());
        // Whoever was not prompted did nothing, and who was is looked at once.
        if let Some(past) = self.past.last_mut().filter(|past| past.done.is_none()) {
            if self.shared.runs.on_failover == OnFailover::Undo {
                past.undone = Some(take_back(eisen_dir, team, &state.workspace, &past.agent).await);
            }
            past.done = Some(look(eisen_dir, team, past).await);
        }
        if let Some(sentence) = self.past.last().and_then(PastWork::summary) {
            self.say(&sentence);
        }
        hand_over(&self.task, &self.past)
    }

    async fn attempt(
        &mut self,
        next: &CandidateStanding,
        state: &mut RunState,
        prompt: String,
        stop: &mut StopSignals,
    ) -> WorkEnd {
        let candidate = &next.candidate;
        if let Err(error) = self.kept.take(&self.tier.name, &candidate.key(), now_ms()) {
            self.say(&format!("cannot note which candidate is taken: {error}"));
        }
        let agent = self.id_of(candidate);
        if let Err(error) = rewrite(self.job.folder, &agent, candidate) {
            return WorkEnd::not_started(format!("cannot write the run's configuration: {error}"));
        }
        // By these it waits for its slot.
        state.profile = Some(candidate.profile.clone());
        state.model.clone_from(&candidate.model);
        let (start, admitted) = match self.job.start(state, None, stop).await {
            Ok(started) => started,
            Err(end) => return end,
        };
        state.command.clone_from(&start.layered.config.agents[0].command);
        state.attempts.push(RunAttempt {
            profile: candidate.profile.clone(),
            model: candidate.model.clone(),
            started_at_ms: now_ms(),
            ended_at_ms: None,
            reason: None,
        });
        if let Err(failure) = keep(self.job.folder, state) {
            return WorkEnd::not_started(format!("{:#}", failure.error()));
        }
        let head = self.repository.head();
        let tell = |setback: &Setback, wait: Duration| {
            let (what, wait) = (setback.what, wait.as_secs_f64().ceil());
            self.say(&format!("{candidate} is {what}: is asked again in {wait} s"));
        };
        let silence = self.silence(candidate, state);
        let patience = Patience { longest: self.shared.runs.patience, silence, tell: &tell };
        let (request, deadline) = (self.job.request, self.job.deadline);
        let work = Box::pin(work(start, request, prompt.clone(), deadline, Some(patience), |_| {}));
        let (mut end, closing) = self.job.recorded(state, work).await;
        closed(closing).await;
        drop(admitted);
        if let Some(attempt) = state.attempts.last_mut() {
            attempt.ended_at_ms = Some(now_ms());
            let named = |reason: &String| match end.setback() {
                Some(setback) => format!("{}: {reason}", setback.what),
                None => reason.clone(),
            };
            attempt.reason = end.reason.as_ref().map(named).map(clipped);
        }
        if end.began {
            let what = end.setback().map_or_else(String::new, |setback| setback.what.to_owned());
            let candidate = candidate.to_string();
            let commits = head.zip(self.repository.head()).filter(|(old, new)| old != new);
            self.past.push(PastWork {
                agent,
                candidate,
                what,
                prompt,
                commits,
                ..PastWork::default()
            });
        }
        self.used.add(std::mem::take(&mut end.used));
        end
    }

    /// How long a candidate may show no progress; None: for ever, as nobody could take over.
    fn silence(&self, candidate: &TierCandidate, state: &RunState) -> Option<Duration> {
        if state.no_failover {
            return None;
        }
        let untried = Untried::look(&self.shared, &self.tier, &self.kept, &self.failed);
        untried.silence(candidate, self.shared.runs.silence)
    }

    /// Keeps why a candidate did not come to an end.
    fn fell_back(
        &mut self,
        standing: CandidateStanding,
        setback: &Setback,
        end: &WorkEnd,
        state: &mut RunState,
    ) {
        let CandidateStanding { candidate, base, login, .. } = standing;
        let (kept, shared, model) = (&self.kept, &self.shared, candidate.model.as_deref());
        let again_at = match begin_cooldown(kept, shared, &base, login, model, setback) {
            Ok(until) => until,
            Err(error) => {
                self.say(&format!("cannot keep the cool-down of {candidate}: {error}"));
                setback.again_at
            }
        };
        state.session_id = end.session.clone().map(clipped);
        self.failed.push(Failed { candidate, what: setback.what.to_owned(), again_at });
    }

    /// No candidate is left.
    fn exhausted(&self, last: Option<WorkEnd>, skipped: &[Failed]) -> WorkEnd {
        let all: Vec<_> = self.failed.iter().chain(skipped).collect();
        let reason = none_left(&self.tier.name, &all);
        let exit_code = if self.past.is_empty() { NOT_STARTED } else { FAILED };
        let ended = WorkEnd::new(RunStatus::Failed, exit_code);
        let last = last.unwrap_or_else(|| WorkEnd::new(RunStatus::Failed, exit_code));
        WorkEnd {
            reason: Some(reason),
            session: last.session,
            answer: last.answer,
            stop_reason: last.stop_reason,
            ..ended
        }
    }

    /// A name for a candidate's agent: each has its own events in the journal.
    fn id_of(&mut self, candidate: &TierCandidate) -> String {
        let count = self.ids.entry(candidate.profile.clone()).or_default();
        *count += 1;
        let cut: String = candidate.profile.chars().take(60).collect();
        if *count == 1 { candidate.profile.clone() } else { format!("{cut}-{count}") }
    }

    fn say(&self, sentence: &str) {
        let line = format!("run {}: {sentence}\n", self.run);
        let _ = outlet::stderr().clone().write_all(line.as_bytes());
    }
}

/// Names another candidate in the run's configuration.
fn rewrite(run: &RunFolder, agent: &str, candidate: &TierCandidate) -> std::io::Result<()> {
    let text = std::fs::read_to_string(run.config())?;
    let text = for_candidate(&text, agent, candidate)
        .ok_or_else(|| std::io::Error::other("it can't be read any more"))?;
    run.keep_config(&text)
}
