//! Reviews of the branches of the team's agents, over the port.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eisen_base::task;
use tokio::sync::{Mutex, watch};

use crate::agent::{self, AgentHandle};
use crate::branches::{Reviewed, TeamTrees, reviewed};
use crate::client_host::{PromptDraft, Said};
use crate::config::Config;
use crate::model::{AgentId, AgentState, DecidedBy};
use crate::program::Failure;
use crate::review::{Comment, FileStatus, Hunk, HunkOrigin, ReviewedFile};
use crate::serve::{Refused, ReviewRequest, blocking};
use crate::supervisor::Roster;
use crate::wire::{
    BranchReview, CheckResult, HunkComment, HunkDecision, HunkWriter, ReviewFile, ReviewHunkRow,
};

/// The branches that a team's port shows.
#[derive(Clone)]
pub(crate) struct TeamReviews {
    pub(crate) workspace: PathBuf,
    pub(crate) trees: TeamTrees,
    /// Held by the one call at a time that keeps what persons say.
    keeping: Arc<Mutex<()>>,
}

impl TeamReviews {
    pub(crate) fn of(config: &Config, trees: &TeamTrees) -> Self {
        let (workspace, trees) = (config.team.workspace.clone(), trees.clone());
        Self { workspace, trees, keeping: Arc::default() }
    }

    /// Performs a call of a person, and answers how the branch stands then.
    pub(crate) async fn perform(
        &self,
        roster: &Roster,
        request: ReviewRequest,
    ) -> Result<BranchReview, Refused> {
        let (is_whole, sends) = match &request {
            ReviewRequest::Comment(call) => {
                let is_comment = call.hunk.is_some() && call.text.is_some();
                let is_bare = call.hunk.is_none() && call.text.is_none();
                (is_comment || is_bare && call.send, call.send)
            }
            ReviewRequest::Look(_) | ReviewRequest::Decide(_) => (true, false),
        };
        if !is_whole {
            return Err(Refused::wrong("a comment has `hunk` and `text`, or `send`"));
        }
        let _kept = self.keeping.lock().await;
        let (workspace, trees) = (self.workspace.clone(), self.trees.clone());
        let acting = move || act(&workspace, &trees, request);
        let (mut review, agent, prompt) = blocking(acting).await?.map_err(|it| refused(&it))?;
        if sends && let Some((prompt, told)) = prompt {
            let handle = agent.and_then(|agent| roster.get(&agent)).ok_or_else(|| {
                let message = "no agent of this team works on the branch: `eisen-core review --send` begins a run";
                Refused::new(409, message)
            })?;
            if handle.status().state != AgentState::Ready {
                return Err(Refused::new(
                    409,
                    "the agent is not ready: start it, and send them again",
                ));
            }
            send(&handle, &prompt);
            let (workspace, branch) = (self.workspace.clone(), review.branch.clone());
            let noting = move || sent(&workspace, &branch, &told);
            blocking(noting).await?.map_err(|failure| refused(&failure))?;
            review.unsent = 0;
        }
        Ok(review)
    }
}

type Acted = (BranchReview, Option<AgentId>, Option<(String, Vec<Comment>)>);

fn act(workspace: &Path, trees: &TeamTrees, request: ReviewRequest) -> Result<Acted, Failure> {
    let look = |branch: &str, into: Option<&str>| reviewed(workspace, Some(branch), into);
    let reviewed = match request {
        ReviewRequest::Look(call) => {
            let mut seen = look(&call.branch, call.into.as_deref())?;
            if call.looked {
                seen.looked()?;
            }
            seen
        }
        ReviewRequest::Decide(call) => {
            let mut seen = look(&call.branch, None)?;
            match call.decision {
                HunkDecision::Accept => seen.accept(&call.hunk)?,
                HunkDecision::Revert => drop(seen.revert(&call.hunk)?),
            }
            look(&call.branch, None)?
        }
        ReviewRequest::Comment(call) => {
            let mut seen = look(&call.branch, None)?;
            match (call.hunk, call.text) {
                (Some(hunk), Some(text)) => seen.comment(&hunk, &text)?,
                _ => seen.looked()?,
            }
            look(&call.branch, None)?
        }
    };
    let agent = trees.agent_on(&reviewed.tree.branch);
    let told = reviewed.notes.comments.clone();
    let prompt = reviewed.notes.prompt().map(|prompt| (prompt, told));
    Ok((on_wire(reviewed, agent.as_ref()), agent, prompt))
}

/// Notes that the agent has got the comments that there were when its prompt was made.
fn sent(workspace: &Path, branch: &str, told: &[Comment]) -> Result<(), Failure> {
    let mut seen = reviewed(workspace, Some(branch), None)?;
    seen.note(|notes| {
        notes.sent(told);
        Ok(())
    })
}

/// Has the agent get a prompt after those that it has; nobody waits for its answer.
fn send(agent: &AgentHandle, text: &str) {
    let blocks = vec![serde_json::json!({ "type": "text", "text": text })];
    let (said, _) = watch::channel(Said::default());
    let draft = PromptDraft::new(blocks, Some(DecidedBy::Person));
    let prompt = agent::Prompt { session: None, draft, by_orchestrator: false, said };
    let agent = agent.clone();
    task::spawn(async move {
        if let Err(error) = agent.prompt(prompt).await {
            tracing::warn!(%error, "the comments of a review did not reach the agent");
        }
    });
}

/// A failure of a command as the port refuses it.
pub(crate) fn refused(failure: &Failure) -> Refused {
    let code = match failure {
        Failure::Usage(_) => 404,
        Failure::Run(_) => 409,
    };
    Refused::new(code, format!("{:#}", failure.error()))
}

fn on_wire(reviewed: Reviewed, agent: Option<&AgentId>) -> BranchReview {
    let Reviewed { review, notes, .. } = reviewed;
    BranchReview {
        branch: review.branch,
        into: review.into,
        base: review.base,
        tree: review.tree,
        agent_id: agent.map(|agent| agent.to_string().into()),
        task: review.task,
        round: review.round,
        uncommitted: review.uncommitted,
        rebase: review.rebase,
        files: review.files.into_iter().map(file_on_wire).collect(),
        unsent: notes.comments.iter().filter(|comment| !comment.is_sent).count(),
        checks: notes.checks.map(|end| CheckResult {
            passed: end.passed,
            commit: end.commit,
            is_clean: end.is_clean,
            at_ms: end.at_ms,
        }),
    }
}

fn file_on_wire(file: ReviewedFile) -> ReviewFile {
    let ReviewedFile { path, status, added, removed, hunks, .. } = file;
    let status = match status {
        FileStatus::Added => "added",
        FileStatus::Changed => "changed",
        FileStatus::Removed => "removed",
    };
    let hunks = hunks.into_iter().map(hunk_on_wire).collect();
    ReviewFile { path, status: status.to_owned(), added, removed, hunks }
}

fn hunk_on_wire(hunk: Hunk) -> ReviewHunkRow {
    let Hunk { id, header, lines, is_new, is_accepted, comments, by } = hunk;
    let comment =
        |Comment { text, said_at_ms, is_sent, .. }| HunkComment { text, said_at_ms, is_sent };
    let writer = |HunkOrigin { run, agent, turn, prompt, call }| HunkWriter {
        run,
        agent,
        turn,
        prompt,
        call,
    };
    ReviewHunkRow {
        id,
        header,
        lines,
        is_new,
        is_accepted,
        comments: comments.into_iter().map(comment).collect(),
        by: by.into_iter().map(writer).collect(),
    }
}
