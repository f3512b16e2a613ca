//! Drafts: the temporary files beside a single allowed one by which editors save. A zone that
//! allows `Cargo.toml` and nothing beside it still lets `Cargo.toml.tmp.81` be written and renamed
//! onto it. A draft is a new file (or an allowed one that was renamed) under a name that looks
//! temporary; it is known by its inode, and its maker may do with it as with a file of the zone.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::Call;
use crate::confine::resolve::Slot;
use crate::model::Action;

/// Entries of a folder that are looked at for the file that a draft may be of.
const LOOKED_AT: usize = 4096;

/// What tells a draft behind the name of the file it is of.
const MARKS: [&str; 10] =
    ["tmp", "temp", "new", "bak", "backup", "orig", "part", "lock", "jb_", "sw"];

/// Names that tools give to drafts whatever the file: `sed -i`, `mktemp`, and vim's trial.
const STARTS: [&str; 5] = ["sed", "tmp", ".tmp", "tmp.", "4913"];
const RANDOM_MAX: usize = 12;

impl Call<'_> {
    /// Whether a name that the bounds deny may be a draft's: it looks temporary, and in its folder
    /// is a file that it can be of.
    pub(super) fn may_be_draft(&self, slot: &Slot) -> bool {
        let Some(name) = slot.name.to_str() else { return false };
        let may_write =
            |name: &OsStr| self.bounds.judge(&slot.folder.real.join(name), Action::Write).is_ok();
        // What is denied by name stays so; and only beside single files is there need of drafts.
        let real = slot.real();
        if !self.bounds.is_inside(&real) || self.bounds.is_denied(&real) {
            return false;
        }
        if originals(name).any(|of| may_write(OsStr::from_bytes(of.as_bytes()))) {
            return true;
        }
        looks_random(name)
            && std::fs::read_dir(&slot.folder.real).is_ok_and(|entries| {
                entries.flatten().take(LOOKED_AT).any(|entry| may_write(&entry.file_name()))
            })
    }
}

/// The files that `name` may be a draft of.
fn originals(name: &str) -> impl Iterator<Item = &str> {
    let bare = name.trim_start_matches(['.', '#', '~']);
    let starts = [name, bare];
    let ends = name.char_indices().filter(|(_, letter)| "~#.-_".contains(*letter));
    let ends: Vec<usize> = ends.map(|(at, _)| at).collect();
    starts.into_iter().flat_map(move |start| {
        let skipped = name.len() - start.len();
        // A dot in front makes a name hidden, not another file's.
        let whole = name[..skipped].contains(['#', '~']).then_some(start);
        let cut = ends.clone().into_iter().filter(move |&at| at > skipped);
        let cut = cut.filter(move |&at| is_mark(&name[at..])).map(move |at| &name[skipped..at]);
        whole.into_iter().chain(cut)
    })
}

/// Whether what stands behind a file's name makes it a draft's.
fn is_mark(rest: &str) -> bool {
    let text = rest.trim_start_matches(['~', '#', '.', '-', '_']);
    text.is_empty()
        || MARKS.iter().any(|mark| text.starts_with(mark))
        || text.len() >= 4 && text.bytes().any(|byte| byte.is_ascii_digit())
}

fn looks_random(name: &str) -> bool {
    STARTS.iter().any(|start| {
        name.strip_prefix(start).is_some_and(|rest| {
            rest.len() <= RANDOM_MAX
                && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_are_told_by_their_names() {
        let of = |name: &str, file: &str| originals(name).any(|of| of == file);
        for name in [
            "Cargo.toml~",
            "Cargo.toml.tmp",
            "Cargo.toml.tmp.8812.1700000000",
            "Cargo.toml.3425235",
            ".Cargo.toml.swp",
            "#Cargo.toml#",
            ".#Cargo.toml",
            "Cargo.toml.lock",
            "Cargo.toml___jb_tmp___",
        ] {
            assert!(of(name, "Cargo.toml"), "{name}");
        }
        for name in ["build.rs", "buildings", "build-script", ".build"] {
            assert!(!of(name, "build"), "{name}");
        }
        assert!(!of(".env", "env"));
        assert!(looks_random("sedXk29ab") && looks_random("4913") && !looks_random("sedative.rs"));
    }
}
