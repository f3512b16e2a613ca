//! Moves a branch, and brings the worktrees along that have it checked out.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::record::Landings;
use super::{Landing, LandingError, MergeWay};
use crate::model::now_ms;
use crate::repository::{GitCall, GitError, GitRepository};
use crate::tree::{WorktreeError, read_plain, remove_stale_locks};

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
    refuse_unfinished(landings)?;
    let places = repository.checkouts(&landing.into)?;
    for place in &places {
        check_clean(repository, place, landing)?;
    }
    landings.intend(landing)?;
    let moved = bring_all(repository, &places, landing);
    if is_whole(&moved) {
        landings.settle(moved.is_ok().then_some(landing))?;
    }
    moved
}

/// Whether all checkouts are at one commit. Else one is between both, and the next command repairs it.
fn is_whole(moved: &Result<(), LandingError>) -> bool {
    !matches!(moved, Err(LandingError::Git(_)))
}

/// A merge that was stopped and can't be brought to its end keeps its record.
fn refuse_unfinished(landings: &Landings) -> Result<(), LandingError> {
    match landings.unfinished()? {
        Some(Landing { branch, into, .. }) => Err(LandingError::Unfinished { branch, into }),
        None => Ok(()),
    }
}

/// Takes the newest merge of a branch back. Nothing may have been built on it.
pub fn take_back(
    landings: &Landings,
    repository: &GitRepository,
    branch: &str,
) -> Result<Landing, LandingError> {
    refuse_unfinished(landings)?;
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
    let back = landing.reverse();
    let places = repository.checkouts(&landing.into)?;
    for place in &places {
        check_clean(repository, place, &back)?;
    }
    // The branch may have gone with its worktree. First: its commits have no other ref once the merge is taken back.
    if repository.tip(branch).is_none() {
        let name = format!("refs/heads/{branch}");
        repository.git().args(["update-ref", &name, &landing.tip, ""]).bytes()?;
    }
    landings.intend(&back)?;
    let moved = bring_all(repository, &places, &back);
    if moved.is_ok() {
        // Before the intent goes: a merge that is known is one that can be taken back.
        landings.forget(&landing)?;
    }
    if is_whole(&moved) {
        landings.settle(None)?;
    }
    moved?;
    Ok(landing)
}

/// Brings a merge that a killed process was making to its end where its branch had moved, and else takes it back.
pub fn finish(landings: &Landings, repository: &GitRepository) -> Result<(), LandingError> {
    let Some(landing) = landings.unfinished()? else { return Ok(()) };
    let now = repository.tip(&landing.into);
    let has_moved = now.as_ref() == Some(&landing.new);
    let is_at_old = now.as_ref() == Some(&landing.old);
    if has_moved || is_at_old {
        remove_stale_locks(repository);
        let back = landing.reverse();
        let mut is_done = true;
        for place in repository.checkouts(&landing.into)? {
            let done = repair(repository, &place, if has_moved { &landing } else { &back });
            if let Err(error) = done {
                is_done = false;
                tracing::warn!(place = %place.display(), "a merge was stopped here, and can't be brought to its end yet: {error}");
            }
        }
        if !is_done {
            // The next command tries again; until then nothing else is merged.
            return Ok(());
        }
    }
    let all = landings.all()?;
    let undone = all.iter().find(|it| (&it.old, &it.new) == (&landing.new, &landing.old));
    match undone {
        Some(undone) if has_moved => {
            landings.forget(undone)?;
            landings.settle(None)?;
        }
        Some(_) => landings.settle(None)?,
        None => landings.settle(has_moved.then_some(&landing))?,
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
        admin.join(named.trim_end()) == entry
    });
    // None has this name: git fails, and says so.
    let admin = admin.unwrap_or_else(|| repository.common().join("worktrees/none"));
    GitCall::of(&admin, Some(place))
}

fn check_clean(
    repository: &GitRepository,
    place: &Path,
    landing: &Landing,
) -> Result<(), LandingError> {
    let unclean = || LandingError::Unclean { into: landing.into.clone(), place: place.to_owned() };
    // A copy of the index: a git that is killed here leaves no lock in the repository.
    let copy = copy_of_index(repository, place)?;
    let with_copy = || {
        let mut call = at(repository, place);
        call.env("GIT_INDEX_FILE", copy.path().join("index"));
        call
    };
    // Files whose times alone are new are not changed.
    let _ = with_copy().args(["update-index", "-q", "--refresh"]).code_and_bytes();
    let mut status = with_copy();
    status.args(["status", "--porcelain", "--ignore-submodules=all", "--untracked-files=no"]);
    if !status.bytes()?.is_empty() {
        return Err(unclean());
    }
    let in_the_way = |said: String| LandingError::InTheWay { place: place.to_owned(), said };
    let mut attempt = with_copy();
    attempt.args(["read-tree", "-n", "-m", "-u", &landing.old, &landing.new]);
    attempt.bytes().map_err(|error| match error {
        GitError::Failed { said, .. } if said.contains("ntracked ") => in_the_way(said),
        error => error.into(),
    })?;
    // git overwrites what it ignores.
    let mut added = at(repository, place);
    added.args(["diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=A"]);
    let added = added.args([&landing.old, &landing.new]).bytes()?;
    for path in added.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        let path = Path::new(OsStr::from_bytes(path));
        let ahead = path.ancestors().take_while(|above| !above.as_os_str().is_empty());
        for above in ahead {
            let Ok(found) = place.join(above).symlink_metadata() else { continue };
            let is_own = above != path && found.is_dir();
            let mut list = at(repository, place);
            list.args(["ls-files", "-z", "--"]);
            list.arg(format!(":(literal,top){}", above.to_string_lossy()));
            if !is_own && (found.is_dir() || list.bytes()?.is_empty()) {
                return Err(in_the_way(above.to_string_lossy().into_owned()));
            }
        }
    }
    Ok(())
}

/// A folder with a copy of a checkout's index, `index`.
fn copy_of_index(repository: &GitRepository, place: &Path) -> Result<TempDir, LandingError> {
    let index = at(repository, place).args(["rev-parse", "--git-path", "index"]).text()?;
    let index = place.join(index);
    let failed = |error: io::Error| LandingError::from(WorktreeError::File(index.clone(), error));
    let copy = TempDir::new().map_err(failed)?;
    match std::fs::copy(&index, copy.path().join("index")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(copy),
    }
}

/// Brings the checkouts along, then moves the branch: whoever commits in between commits the merge, and not its reverse.
fn bring_all(
    repository: &GitRepository,
    places: &[PathBuf],
    landing: &Landing,
) -> Result<(), LandingError> {
    // What is half done is taken back. Where that fails too, the error is git's own, and the merge stays written down.
    let back = |count: usize, why: GitError| -> LandingError {
        remove_stale_locks(repository);
        let reverse = landing.reverse();
        for place in &places[..count] {
            if let Err(error) = repair(repository, place, &reverse) {
                return error;
            }
        }
        let (into, said) = (landing.into.clone(), why.to_string());
        LandingError::Broken { into, said }
    };
    for (count, place) in places.iter().enumerate() {
        // Files whose times alone are new are not changed.
        let _ = at(repository, place).args(["update-index", "-q", "--refresh"]).code_and_bytes();
        let mut follow = at(repository, place);
        follow.args(["read-tree", "-m", "-u", &landing.old, &landing.new]);
        if let Err(why) = follow.bytes() {
            return Err(back(count + 1, why));
        }
    }
    let reference = format!("refs/heads/{}", landing.into);
    let why = format!("eisen-core merge {}", landing.branch);
    let mut update = repository.git();
    update.args(["update-ref", "-m", &why, &reference, &landing.new, &landing.old]);
    let Err(why) = update.bytes() else { return Ok(()) };
    let now = repository.tip(&landing.into);
    if now.as_ref() == Some(&landing.new) {
        // Its git was killed behind the move.
        remove_stale_locks(repository);
        return Ok(());
    }
    match back(places.len(), why) {
        LandingError::Broken { into, .. } if now.as_ref() != Some(&landing.old) => {
            Err(LandingError::Moved { into })
        }
        error => Err(error),
    }
}

/// How long a merge takes to bring a checkout along, at most: what changes later is somebody else's.
const MERGING: Duration = Duration::from_mins(1);

/// Whether a file, or its folder where it is away, has not changed since a merge wrote.
fn is_of_merge(file: &Path, landing: &Landing) -> bool {
    let ends = SystemTime::UNIX_EPOCH + Duration::from_millis(landing.landed_at_ms) + MERGING;
    let found = file.ancestors().find_map(|place| place.symlink_metadata().ok());
    found.and_then(|found| found.modified().ok()).is_some_and(|changed| changed < ends)
}

/// Brings a checkout along that may have some of the files already.
fn repair(repository: &GitRepository, place: &Path, landing: &Landing) -> Result<(), LandingError> {
    let mut diff = at(repository, place);
    diff.args(["diff-tree", "-r", "-z", "--no-renames", &landing.old, &landing.new]);
    let diff = diff.bytes()?;
    let mut fields = diff.split(|byte| *byte == 0);
    let mut wanted = Vec::new();
    while let (Some(line), Some(path)) = (fields.next(), fields.next()) {
        let line = String::from_utf8_lossy(line);
        let file = place.join(OsStr::from_bytes(path));
        let words: Vec<_> = line.split(' ').collect();
        let [_, mode, old, new, _] = words[..] else { continue };
        let now = now_in(repository, place, &file, path, old.len())?;
        let is_none = |name: &str| name.bytes().all(|byte| byte == b'0');
        let is_old = now.as_deref() == Some(old);
        // A git that is stopped leaves a file away, or the beginning of one. So may a person, later.
        let is_half = |now: &str| {
            now != new
                && is_of_merge(&file, landing)
                && (is_none(now)
                    || [old, new].into_iter().filter(|name| !is_none(name)).any(|name| {
                        is_beginning(repository, place, &file, path, name).unwrap_or(false)
                    }))
        };
        if !is_old && !now.as_deref().is_some_and(is_half) {
            continue;
        }
        if is_none(new) {
            let _ = std::fs::remove_file(&file);
            let above = file.ancestors().skip(1).take_while(|above| *above != place);
            let _ = above.map(std::fs::remove_dir).take_while(Result::is_ok).count();
        } else if mode != "160000" {
            wanted.extend(path);
            wanted.push(0);
        }
    }
    let mut is_done = at(repository, place);
    if !is_done.args(["diff-index", "--cached", "--quiet", &landing.new, "--"]).answer()? {
        let mut follow = at(repository, place);
        follow.args(["read-tree", "-i", "-m", &landing.old, &landing.new]).bytes()?;
    }
    if !wanted.is_empty() {
        let mut out = at(repository, place);
        out.args(["checkout-index", "-f", "-u", "-z", "--stdin"]).input(wanted).bytes()?;
    }
    let _ = at(repository, place).args(["update-index", "-q", "--refresh"]).code_and_bytes();
    Ok(())
}

/// The name of the content that a path has now: zeros where there is none, None for a folder and the like.
fn now_in(
    repository: &GitRepository,
    place: &Path,
    file: &Path,
    path: &[u8],
    length: usize,
) -> Result<Option<String>, GitError> {
    let Ok(found) = file.symlink_metadata() else { return Ok(Some("0".repeat(length))) };
    let mut hash = at(repository, place);
    if found.is_symlink() {
        let target = std::fs::read_link(file).unwrap_or_default();
        hash.args(["hash-object", "--stdin"]).input(target.into_os_string().into_encoded_bytes());
    } else if found.is_file() {
        hash.args(["hash-object", "--path"]).arg(OsStr::from_bytes(path)).arg("--").arg(file);
    } else {
        return Ok(None);
    }
    hash.text().map(Some)
}

/// Bytes of a file that may be the beginning of another.
const LONGEST: u64 = 256 << 20;

/// Whether a file is a beginning of a content of git, as git writes it into a worktree.
fn is_beginning(
    repository: &GitRepository,
    place: &Path,
    file: &Path,
    path: &[u8],
    name: &str,
) -> Result<bool, GitError> {
    let found = file.symlink_metadata().ok().filter(|it| it.is_file() && it.len() <= LONGEST);
    let Some(now) = found.and_then(|_| read_plain(file, LONGEST)) else { return Ok(false) };
    let mut whole = at(repository, place);
    whole.args(["cat-file", "--filters"]).arg(path_option(path)).arg(name);
    Ok(whole.bytes()?.starts_with(&now))
}

/// The option of `cat-file` that says by which path's attributes it converts.
fn path_option(path: &[u8]) -> OsString {
    let mut option = OsString::from("--path=");
    option.push(OsStr::from_bytes(path));
    option
}
