//! What is asked of the index to find out what the calls of a file mean. They mean the same for as
//! long as all answers are the same: of a change is told which questions may have another answer
//! now, and only files for which one of these was asked are redone.

use std::cell::{Cell, RefCell};
use std::hash::{Hash as _, Hasher as _};

use rustc_hash::{FxHashSet, FxHasher};

use super::index::{Family, FileId};
use super::names::{Name, number};

/// What a file asks of itself is none: it is redone with each change of its own.
#[derive(Clone, Copy, Hash)]
pub(super) enum Question<'a> {
    /// Which files are at a path that is written without an extension?
    At(&'a str),
    /// Which packages' libraries have a name?
    Library(Name),
    /// What has a name in a file, whatever holds it there, and what is brought in under it? Which
    /// bases has a class of the name?
    Named(FileId, Name),
    /// All of what does a file bring in, and what under several names, as in `import town.till`?
    All(FileId),
    /// What do classes of the first name hold that has the second?
    InClasses(Family, Name, Name),
    /// Which is the only method of a name?
    Method(Family, Name),
    /// Which methods of a name are in classes of this [ending](super::common::ending), as a variable
    /// has it that is called after them?
    MethodOf(Family, Name, [Option<char>; 3]),
    /// What has a name at the top of any file?
    Top(Family, Name),
}

/// Stands for a question; rarely for two of them, and then a file is redone for nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Asked(u32);

impl From<Question<'_>> for Asked {
    fn from(question: Question<'_>) -> Self {
        let mut hasher = FxHasher::default();
        question.hash(&mut hasher);
        let hash = hasher.finish();
        #[expect(clippy::cast_possible_truncation, reason = "of either half all is in it")]
        Self((hash ^ (hash >> 32)) as u32)
    }
}

/// Notes of a file past which what is there twice is left out before there is room for more.
const MUCH: usize = 64 * 1024;

/// What is asked for one file after the other.
#[derive(Default)]
pub(super) struct Notes {
    asked: RefCell<Vec<Asked>>,
    taken: Cell<usize>,
}

impl Notes {
    pub(super) fn add(&self, question: Question<'_>) {
        self.extend(&[question.into()]);
    }

    pub(super) fn extend(&self, more: &[Asked]) {
        let mut asked = self.asked.borrow_mut();
        let is_full = asked.len() + more.len() > asked.capacity();
        if is_full && asked.len() > MUCH {
            // Most of so much is asked again and again.
            asked.sort_unstable();
            asked.dedup();
            let as_much = asked.len();
            asked.reserve(as_much + more.len());
        }
        asked.extend_from_slice(more);
    }

    /// Returns how many files there were before this one.
    pub(super) fn taken(&self) -> usize {
        self.taken.get()
    }

    /// Returns what was asked for this file, each question once.
    pub(super) fn take(&self) -> Box<[Asked]> {
        let mut asked = self.asked.borrow_mut();
        asked.sort_unstable();
        asked.dedup();
        let taken = asked.as_slice().into();
        asked.clear();
        self.taken.set(self.taken.get() + 1);
        taken
    }
}

/// What a change touches.
#[derive(Default)]
pub(super) struct Touched {
    /// Files that changed themselves.
    files: Vec<FileId>,
    /// Those that may have another answer now.
    questions: FxHashSet<Asked>,
    /// There was nothing before, so that nobody asked anything.
    everything: bool,
}

/// Bits of a table in which all questions are found at once, and most others are not.
const FILTER: u32 = 1 << 15;

impl Touched {
    pub(super) fn file(&mut self, id: FileId) {
        self.files.push(id);
    }

    pub(super) fn question(&mut self, question: Question<'_>) {
        self.questions.insert(question.into());
    }

    pub(super) fn everything(&mut self) {
        self.everything = true;
    }

    pub(super) fn is_everything(&self) -> bool {
        self.everything
    }

    /// Returns the files that are to be redone, and such as are none anymore, in order; of each file
    /// is given what was asked for it.
    pub(super) fn concerned<'a>(
        &self,
        asked: impl ExactSizeIterator<Item = &'a [Asked]>,
    ) -> Vec<FileId> {
        let mut ids = self.files.clone();
        if !self.questions.is_empty() {
            let mut filter = vec![false; FILTER as usize];
            let place = |asked: Asked| (asked.0 % FILTER) as usize;
            self.questions.iter().for_each(|asked| filter[place(*asked)] = true);
            let is_open = |asked: &Asked| filter[place(*asked)] && self.questions.contains(asked);
            let open = asked.enumerate().filter(|(_, asked)| asked.iter().any(is_open));
            ids.extend(open.map(|(at, _)| FileId(number(at))));
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
