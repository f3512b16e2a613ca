//! The results of the tasks before one, behind its prompt.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

use crate::jobs::batch::outcome::{JobEnd, JobOutcome};
use crate::program::Failure;
use crate::runs::find_run;

/// Bytes of all results behind a prompt; each has an equal part of it.
const MOST: usize = 64 << 10;

/// Adds the answers of the tasks that stand before this one.
pub(super) fn with_results<'a>(
    prompt: String,
    eisen_dir: &Path,
    before: impl Iterator<Item = &'a JobEnd>,
) -> Result<String, Failure> {
    let mut answers = Vec::new();
    for end in before {
        let JobOutcome::Ran(state) = &end.outcome else { continue };
        let answer = find_run(eisen_dir, &state.id).map_err(anyhow::Error::from);
        let answer = answer.and_then(|run| Ok(run.answer()?));
        let answer = answer.with_context(|| format!("cannot read the result of `{}`", end.id));
        answers.push((end.id.as_str(), answer.map_err(Failure::Run)?));
    }
    Ok(joined(prompt, &answers))
}

fn joined(mut prompt: String, answers: &[(&str, String)]) -> String {
    let share = MOST / answers.len().max(1);
    for (id, answer) in answers {
        let _ = write!(prompt, "\n\nThe result of the task `{id}`, which was done before:\n\n");
        let shown = &answer[..answer.floor_char_boundary(share)];
        // Whatever it says, it stays a quotation.
        let quoted: Vec<_> =
            shown.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
        prompt.push_str(&quoted.join("\n"));
        if shown.len() < answer.len() {
            let _ = write!(prompt, "\n\n({} bytes more were cut.)", answer.len() - shown.len());
        }
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_quoted_and_cut() {
        assert_eq!(joined("Do it".to_owned(), &[]), "Do it");
        let answers = [("a", "one\n\ntwo".to_owned()), ("b", "é".repeat(MOST))];
        let prompt = joined("Do it".to_owned(), &answers);
        let begin = "Do it\n\nThe result of the task `a`, which was done before:\n\n> one\n>\n> two\n\n\
                     The result of the task `b`, which was done before:\n\n> éé";
        assert!(prompt.starts_with(begin), "{}", &prompt[..200]);
        let cut = format!("\n\n({} bytes more were cut.)", MOST * 2 - MOST / 2);
        assert!(prompt.ends_with(&cut), "{}", &prompt[prompt.len() - 60..]);
        assert!(prompt.len() < MOST);
    }
}
