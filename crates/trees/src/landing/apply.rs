//! Moves a branch, and brings the worktrees along that have it checked out.

use std::path::{Path, PathBuf};

use super::record::Landings;
use super::{Landing, LandingError, MergeWay};
use crate::model::now_ms;
use crate::repository::{GitCall, GitError, GitRepository};

/// Whether the worktrees that have the target checked out could be brought along.
pub fn check(repository: &GitRepository, landing: &Landing) -> Result<(), LandingError> {
    for place in &repository.checkouts(&landing.into)? {
        check_clean(repository, place, landing)?;
    }
    Ok(())
}

/// Moves `landing.into` from its old commit to its new one. What fails leaves it where it was.
pub fn land(
    landings: &Landings,
    repository: &GitRepository,
    landing: &Landing,
) -> Result<(), LandingError> {
    let landing = &Landing { landed_at_ms: now_ms(), ..landing.clone() };
    let places = repository.checkouts(&landing.into)?;
    for place in &places {
        check_clean(repository, place, landing)?;
    }
    landings.intend(landing)?;
    let moved = bring_all(repository, &places, landing);
    landings.settle(moved.is_ok().then_some(landing))?;
    moved
}

/// Takes the newest merge of a branch back. Nothing may have been built on it.
pub fn take_back(
    landings: &Landings,
    repository: &GitRepository,
    branch: &str,
) -> Result<Landing, LandingError> {
    let all = landings.all()?;
    let landing = all.into_iter().rev().find(|landing| landing.branch == branch);
    let landing = landing.ok_or_else(|| LandingError::NoLanding(branch.to_owned()))?;
    if repository.tip(&landing.into).as_ref() != Some(&landing.new) {
        let Landing { branch, into, old, new, way, .. } = landing;
        let what = match way {
            MergeWay::Merge => format!("-m 1 {new}"),
            MergeWay::Squash => new,
            MergeWay::Rebase => format!("{old}..{new}"),
        };
        return Err(LandingError::BuiltOn { branch, into, what });
    }
    let back = Landing { old: landing.new.clone(), new: landing.old.clone(), ..landing.clone() };
    let places = repository.checkouts(&landing.into)?;
    for place in &places {
        check_clean(repository, place, &back)?;
    }
    landings.intend(&back)?;
    let moved = bring_all(repository, &places, &back);
    landings.settle(None)?;
    moved?;
    // The branch may have gone with its worktree.
    if repository.tip(branch).is_none() {
        let name = format!("refs/heads/{branch}");
        repository.git().args(["update-ref", &name, &landing.tip, ""]).bytes()?;
    }
    landings.forget(&landing)?;
    Ok(landing)
}

/// Brings a merge that a killed process was making to its end, or forgets it where nothing had moved.
pub fn finish(landings: &Landings, repository: &GitRepository) -> Result<(), LandingError> {
    let Some(landing) = landings.unfinished()? else { return Ok(()) };
    let now = repository.tip(&landing.into);
    if now.as_ref() != Some(&landing.new) {
        landings.settle(None)?;
        return Ok(());
    }
    for place in repository.checkouts(&landing.into)? {
        repair(repository, &place, &landing)?;
    }
    let is_back =
        landings.all()?.iter().any(|it| (&it.old, &it.new) == (&landing.new, &landing.old));
    if is_back {
        let all = landings.all()?;
        let undone = all.iter().find(|it| (&it.old, &it.new) == (&landing.new, &landing.old));
        if let Some(undone) = undone {
            landings.forget(undone)?;
        }
        landings.settle(None)?;
    } else {
        landings.settle(Some(&landing))?;
    }
    Ok(())
}

/// Git for the files of a checkout, by the repository's own list of worktrees.
fn at(repository: &GitRepository, place: &Path) -> GitCall {
    if repository.main() == Some(place) {
        return repository.git_in_main();
    }
    let entry = place.join(".git");
    let admins = std::fs::read_dir(repository.common().join("worktrees")).into_iter().flatten();
    let admin = admins.flatten().map(|it| it.path()).find(|admin| {
        let named = std::fs::read_to_string(admin.join("gitdir")).unwrap_or_default();
        Path::new(named.trim_end()) == entry
    });
    let admin = admin.unwrap_or_else(|| repository.common().to_owned());
    GitCall::of(&admin, Some(place))
}

fn check_clean(
    repository: &GitRepository,
    place: &Path,
    landing: &Landing,
) -> Result<(), LandingError> {
    let unclean = || LandingError::Unclean { into: landing.into.clone(), place: place.to_owned() };
    let mut status = at(repository, place);
    status.args(["status", "--porcelain", "--ignore-submodules=all", "--untracked-files=no"]);
    if !status.bytes()?.is_empty() {
        return Err(unclean());
    }
    // An untracked file may stand where the merge has one.
    let mut attempt = at(repository, place);
    attempt.args(["read-tree", "-n", "-m", "-u", &landing.old, &landing.new]);
    attempt.bytes().map(drop).map_err(|error| match error {
        GitError::Failed { said, .. } => LandingError::InTheWay { place: place.to_owned(), said },
        error @ GitError::Start(_) => error.into(),
    })
}

fn bring_all(
    repository: &GitRepository,
    places: &[PathBuf],
    landing: &Landing,
) -> Result<(), LandingError> {
    let reference = format!("refs/heads/{}", landing.into);
    let why = format!("eisen-core merge {}", landing.branch);
    let mut update = repository.git();
    update.args(["update-ref", "-m", &why, &reference, &landing.new, &landing.old]);
    if update.bytes().is_err() {
        return Err(LandingError::Moved { into: landing.into.clone() });
    }
    for (at_place, place) in places.iter().enumerate() {
        let mut follow = at(repository, place);
        follow.args(["read-tree", "-m", "-u", &landing.old, &landing.new]);
        if follow.bytes().is_err() {
            for done in &places[..at_place] {
                let mut back = at(repository, done);
                back.args(["read-tree", "-m", "-u", &landing.new, &landing.old]).bytes()?;
            }
            let mut back = repository.git();
            back.args(["update-ref", &reference, &landing.old, &landing.new]).bytes()?;
            let (into, place) = (landing.into.clone(), place.clone());
            return Err(LandingError::Unclean { into, place });
        }
    }
    Ok(())
}

/// Brings a checkout along that may have some of the files already.
fn repair(repository: &GitRepository, place: &Path, landing: &Landing) -> Result<(), LandingError> {
    let mut is_done = at(repository, place);
    if is_done.args(["diff-index", "--cached", "--quiet", &landing.new, "--"]).answer()? {
        return Ok(());
    }
    let mut diff = at(repository, place);
    diff.args(["diff-tree", "-r", "-z", "--no-renames", &landing.old, &landing.new]);
    let diff = diff.bytes()?;
    let mut fields = diff.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut wanted = Vec::new();
    while let (Some(line), Some(path)) = (fields.next(), fields.next()) {
        let (mut words, file) = (line.split(' '), place.join(&*path));
        let (old, new) = (words.nth(2).unwrap_or_default(), words.next().unwrap_or_default());
        let now = match file.symlink_metadata() {
            Ok(_) => {
                let mut hash = at(repository, place);
                hash.args(["hash-object", "--path", &path, "--"]).arg(&file).text()?
            }
            Err(_) => "0".repeat(old.len()),
        };
        if now == old && new.bytes().all(|byte| byte == b'0') {
            let _ = std::fs::remove_file(&file);
        } else if now == old {
            wanted.extend(path.bytes());
            wanted.push(0);
        }
    }
    at(repository, place).args(["read-tree", "-i", "-m", &landing.old, &landing.new]).bytes()?;
    if !wanted.is_empty() {
        let mut out = at(repository, place);
        out.args(["checkout-index", "-f", "-u", "-z", "--stdin"]).input(wanted).bytes()?;
    }
    let mut refresh = at(repository, place);
    let _ = refresh.args(["update-index", "-q", "--refresh"]).code_and_bytes();
    Ok(())
}
