//! Drafts: temporary files beside an allowed file, through which editors save. A zone that allows
//! only `Cargo.toml` still lets `Cargo.toml.tmp.81` be written and renamed onto it. A draft is a
//! new file, or a renamed allowed one, under a name that looks temporary; it is recognized by its
//! inode, and its creator may treat it as a file of the zone.
//!
//! A draft of a file outside the zone is judged as that file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Stop, Syscall, SyscallResult};
use crate::confine::PathMeaning;
use crate::confine::resolve::{PathArg, Slot};
use crate::model::Action;

/// The name under which a file without one is judged.
pub(super) const UNNAMED: &str = "#unnamed";

/// Entries of a folder that are searched for the file of a draft.
const SEARCHED_MAX: usize = 4096;

/// Suffixes of a file that replaces another or was replaced.
const BESIDE: [&str; 6] = ["new", "bak", "backup", "orig", "part", "lock"];

/// Suffixes by `JetBrains` editors.
const JETBRAINS: [&str; 3] = ["___jb_tmp___", "___jb_old___", "___jb_bak___"];

/// Prefixes of drafts whose names do not contain the file's, with the number of random letters:
/// `sed -i`, Python, `mktemp`, Rust, `GLib` and Hermes. vim's probe has none.
const STARTS: [(&str, usize); 7] = [
    ("sed", 6),
    ("tmp", 8),
    ("tmp.", 10),
    (".tmp", 6),
    (".goutputstream-", 6),
    (".hermes-tmp.", 6),
    ("4913", 0),
];

/// How certainly a name is a draft's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// Only if its file exists.
    Beside,
    /// Always.
    Temporary,
}

impl Syscall<'_> {
    /// Fails unless a name may be created; returns whether it is a draft's. A draft of a file
    /// outside the zone is judged as that file, which the caller means.
    pub(super) fn demand_new(&self, slot: &Slot, arg: &PathArg) -> SyscallResult<bool> {
        let Err(mut stop) = self.demand(&slot.real(), Action::Write, arg) else {
            // A grant for such a name concerns the file that it will replace.
            return Ok(self.is_granted_draft(slot));
        };
        if self.may_be_draft(slot) {
            return Ok(true);
        }
        let Some(of) = self.target_of(slot) else {
            if let Stop::Outside { meaning, .. } = &mut stop
                && looks_random(&slot.name)
                && self.may_have_draft(slot)
            {
                *meaning = PathMeaning::Draft;
            }
            return Err(stop);
        };
        let path = arg.path.with_file_name(of);
        let intended = PathArg { folder: arg.folder, path };
        self.demand(&slot.folder.real.join(of), Action::Write, &intended)?;
        Ok(true)
    }

    /// Whether a new name is allowed only by a grant, and does not show its file.
    fn is_granted_draft(&self, slot: &Slot) -> bool {
        let real = slot.real();
        looks_random(&slot.name)
            && self.may_have_draft(slot)
            && self.bounds.judge(&real, Action::Write).is_err()
    }

    /// The file outside the zone of which a new name is a draft.
    fn target_of<'s>(&self, slot: &'s Slot) -> Option<&'s str> {
        let (of, _) = candidates(Path::new(&slot.folder.path()), &slot.name).into_iter().next()?;
        let is_outside = self.bounds.judge(&slot.folder.real.join(of), Action::Write).is_err();
        (is_outside && self.may_have_draft(slot)).then_some(of)
    }

    /// Whether a name that the bounds deny may be a draft's: it looks temporary, and its folder has
    /// an allowed file that it may replace. A folder has no drafts.
    fn may_be_draft(&self, slot: &Slot) -> bool {
        if !self.may_have_draft(slot) {
            return false;
        }
        let folder = slot.folder.path();
        let folder = Path::new(&folder);
        let may_write = |real: &Path| self.bounds.judge(real, Action::Write).is_ok();
        let mut may_be = false;
        for (of, is_file) in candidates(folder, &slot.name) {
            let real = slot.folder.real.join(of);
            may_be = true;
            // A missing file must be allowed alone, not as a folder.
            if may_write(&real) && (is_file || !may_write(&real.join("below"))) {
                return true;
            }
        }
        !may_be
            && looks_random(&slot.name)
            && fs::read_dir(folder).is_ok_and(|entries| {
                entries.flatten().take(SEARCHED_MAX).any(|entry| {
                    entry.file_type().is_ok_and(|kind| kind.is_file())
                        && may_write(&slot.folder.real.join(entry.file_name()))
                })
            })
    }

    /// A path that matches `denied` stays denied.
    fn may_have_draft(&self, slot: &Slot) -> bool {
        let real = slot.real();
        self.bounds.is_inside(&real) && !self.bounds.is_denied(&real)
    }
}

/// Whether a name in the zone looks like a draft's.
pub(super) fn looks_like_draft(real: &Path) -> bool {
    let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else { return false };
    looks_random(name) || !candidates(folder, name).is_empty()
}

/// The file that an access in the zone is for: of a draft the file that it will replace. None if its name
/// does not show that, and for a file without a name.
pub(super) fn meant_by(real: &Path, action: Action) -> Option<PathBuf> {
    let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else { return None };
    if action == Action::Read {
        return Some(real.to_owned());
    }
    if name == UNNAMED || looks_random(name) {
        return None;
    }
    let of = candidates(folder, name).into_iter().next().map(|(of, _)| folder.join(of));
    Some(of.unwrap_or_else(|| real.to_owned()))
}

/// The files in `folder` of which `name` may be a draft, the most likely first, and whether each
/// exists. Existing files come first: `.a.rs.x7.tmp` is more likely a draft of an existing `a.rs`
/// than of a new `.a.rs`. Among missing files those that are not hidden come first, since the dot
/// is more likely the draft's own.
fn candidates<'a>(folder: &Path, name: &'a OsStr) -> Vec<(&'a str, bool)> {
    let named = name.to_str().into_iter().flat_map(originals);
    let mut candidates: Vec<_> = named
        .filter_map(|(of, mark)| match fs::symlink_metadata(folder.join(of)) {
            Ok(found) => found.is_file().then_some((of, true)),
            Err(_) => (mark == Mark::Temporary).then_some((of, false)),
        })
        .collect();
    candidates.sort_by_key(|&(of, is_there)| (!is_there, !is_there && of.starts_with('.')));
    candidates
}

/// The names of files of which `name` may be a draft.
fn originals(name: &str) -> impl Iterator<Item = (&str, Mark)> {
    let bare = name.trim_start_matches(['.', '#', '~']);
    let starts = [name, bare].into_iter().take(if bare == name { 1 } else { 2 });
    starts.flat_map(move |start| {
        let skipped = name.len() - start.len();
        let before = &name[..skipped];
        // A leading dot alone only hides a file.
        let whole = before.contains(['#', '~']).then_some((start, Mark::Beside));
        let cuts = name.char_indices().filter(move |&(at, letter)| {
            at > skipped && (matches!(letter, '.' | '~' | '#') || name[at..].starts_with("___"))
        });
        let marked = cuts.filter_map(move |(at, _)| {
            Some((&name[skipped..at], mark(&name[at..], before.starts_with('.'))?))
        });
        whole.into_iter().chain(marked)
    })
}

/// How certainly a suffix marks a draft.
fn mark(rest: &str, hidden: bool) -> Option<Mark> {
    if JETBRAINS.contains(&rest) {
        return Some(Mark::Temporary);
    }
    if matches!(rest, "~" | "#") || is_numbered(rest) {
        return Some(Mark::Beside);
    }
    let text = rest.strip_prefix('.')?;
    let words = || text.split(['.', '-']);
    if words().any(is_temporary) && words().all(|word| is_temporary(word) || is_random(word)) {
        return Some(Mark::Temporary);
    }
    if hidden && is_swap(text) {
        return Some(Mark::Temporary);
    }
    let is_beside = BESIDE.iter().any(|mark| text.strip_prefix(mark).is_some_and(is_digits))
        || text.len() >= 4 && is_digits(text)
        || hidden && (6..=12).contains(&text.len()) && has_digit(text) && is_random(text);
    is_beside.then_some(Mark::Beside)
}

/// A numbered backup of emacs: `.~12~`.
fn is_numbered(rest: &str) -> bool {
    let number = rest.strip_prefix(".~").and_then(|rest| rest.strip_suffix('~'));
    number.is_some_and(|number| !number.is_empty() && is_digits(number))
}

/// A swap file of vim, the first or a later one.
fn is_swap(text: &str) -> bool {
    text == "swpx"
        || text.strip_prefix("sw").is_some_and(|letter| {
            letter.len() == 1 && letter.bytes().all(|letter| letter.is_ascii_lowercase())
        })
}

fn is_temporary(word: &str) -> bool {
    let random = |rest: &str| is_digits(rest) || rest.len() >= 6 && is_word(rest);
    word.strip_prefix("tmp").is_some_and(random) || word.strip_prefix("temp").is_some_and(is_digits)
}

/// Whether it may be random letters: three or four are more likely an ordinary extension.
fn is_random(word: &str) -> bool {
    let is_hex = word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    !word.is_empty() && is_word(word) && (has_digit(word) || word.len() >= 8 || is_hex)
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether it has no other characters.
fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn looks_random(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        STARTS.iter().any(|(start, random)| {
            name.strip_prefix(start).is_some_and(|rest| rest.len() == *random && is_word(rest))
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn drafts_are_recognized_by_their_names() {
        let of = |name: &str, file: &str| originals(name).any(|(of, _)| of == file);
        for name in [
            "Cargo.toml~",
            "Cargo.toml.~3~",
            "Cargo.toml.tmp",
            "Cargo.toml.tmp.8812.1700000000",
            "Cargo.toml.tmp.7317.c3c2a9f01b44",
            "Cargo.toml.tmpa8Kd0x",
            "Cargo.toml.temp1",
            "Cargo.toml.3425235",
            "Cargo.toml.new",
            "Cargo.toml.bak2",
            ".Cargo.toml.swp",
            ".Cargo.toml.fk0p7i0j.tmp",
            ".Cargo.toml.a_bcdefg.tmp",
            ".Cargo.toml.Xk29ab",
            "#Cargo.toml#",
            ".#Cargo.toml",
            "Cargo.toml.lock",
            "Cargo.toml___jb_tmp___",
        ] {
            assert!(of(name, "Cargo.toml"), "{name}");
        }
        for name in [
            "build.rs",
            "buildings",
            "build-script",
            ".build",
            "build_template.rs",
            "build-v2.rs",
            "build_test2.c",
            "build.v2.rs",
            "build.template",
            "build.tmpl",
            "build.switch",
            "build.newer",
            "build.tmp.rs",
            "build.python3",
            "build.swp",
            "build.",
            "build-",
            "build_",
            "build.12",
        ] {
            assert!(!of(name, "build"), "{name}");
        }
        assert!(!of(".env", "env"));
        let looks_random = |name: &str| looks_random(OsStr::new(name));
        for name in [
            "sedXk29ab",
            "4913",
            "tmpa8kd0x_1",
            "tmp.Yx81kKqLmN",
            ".tmpAbCd12",
            ".hermes-tmp.V0XkRa",
        ] {
            assert!(looks_random(name), "{name}");
        }
        for name in ["sedative.rs", "sed", "sedan", "tmpl", "tmp", "49132", "temperature"] {
            assert!(!looks_random(name), "{name}");
        }
    }

    #[test]
    fn what_a_draft_is_of_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("ui")).unwrap();
        fs::write(folder.path().join("one.txt"), "").unwrap();
        let of = |name: &'static str| {
            candidates(folder.path(), OsStr::new(name)).first().map(|(of, _)| *of)
        };
        assert_eq!(of("one.txt.lock"), Some("one.txt"));
        assert_eq!(of("one.txt.tmp.81"), Some("one.txt"));
        // One that is to be made, by a name that nobody else gives.
        assert_eq!(of("two.txt.tmp.81"), Some("two.txt"));
        assert_eq!(of("two.lock"), None);
        assert_eq!(of("ui.tmp"), None);
        assert_eq!(of("ui.new"), None);
        // What is there goes before what is not.
        assert_eq!(of(".one.txt.abcd1234.tmp"), Some("one.txt"));
        fs::write(folder.path().join(".one.txt"), "").unwrap();
        fs::remove_file(folder.path().join("one.txt")).unwrap();
        assert_eq!(of(".one.txt.abcd1234.tmp"), Some(".one.txt"));
        // And a draft's own dot is no file's.
        assert_eq!(of(".two.txt.abcd1234.tmp"), Some("two.txt"));
    }
}
