//! The places of files and folders on the map, kept so that a file stays where it is while others
//! come and go. Pure.
//!
//! Each folder has a rectangle within its parent's. It divides it, in the order of paths, among its
//! own files, its folders and a spare part, and the part of its files into slots: one for each
//! file, by the power of two of its length, and some that are empty. From then on
//!
//! - a file that goes leaves its slot empty, and a new one takes the empty slot of the nearest size;
//! - a file stays in its slot until its length is four times off and an empty one suits it better;
//! - a new folder gets a piece of the spare part of its parent, or of a folder that is gone.
//!
//! Only where no slot is empty are the files of that one folder laid out anew, in the part that
//! they have; where there is no room for a new folder, or for all files of one, everything below the
//! nearest folder above that has enough; and everything once there are twice as many files.

mod folder;
mod tiles;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use self::folder::{Folder, class};

pub use self::tiles::Tile;
use crate::wire::{FilePlace, FolderPlace, MapLayout};

/// The width and height of the whole.
pub const SIDE: u16 = 1 << 15;

/// Files with a place of their own, and folders; the others are part of the folder above.
const MOST_FILES: usize = 100_000;
const MOST_FOLDERS: usize = 50_000;
/// Bytes of the path of such a file, and folders above it.
const LONGEST_PATH: usize = 1024;
const DEEPEST: usize = 64;

/// Paths that went; a client that knows less gets the whole layout.
const MOST_GONE: usize = 10_000;

/// A file, or a folder, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Empty: the workspace.
    pub path: Arc<str>,
    pub tile: Tile,
    /// The number of a folder's files that have no place of their own.
    pub more: usize,
}

/// The layout, or what changed in it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LayoutPart {
    pub seq: u64,
    /// The part replaces the layout that was known.
    pub is_whole: bool,
    /// By path.
    pub folders: Vec<Placed>,
    pub files: Vec<Placed>,
    /// Paths that went; to be taken away before the others are added.
    pub removed: Vec<Arc<str>>,
}

/// The places of all files.
#[derive(Debug, Default)]
pub struct Layout {
    /// The number of the graph that it shows.
    seq: u64,
    /// The first is the workspace. Those that went are used again.
    folders: Vec<Folder>,
    unused: Vec<usize>,
    by_path: HashMap<Arc<str>, usize>,
    files: HashMap<Arc<str>, FileSlot>,
    /// Files when all was laid out last.
    laid_out: usize,
    gone: VecDeque<(u64, Arc<str>)>,
    /// Since when `gone` is complete.
    known_from: u64,
}

/// The folder and the slot of a file.
#[derive(Clone, Copy, Debug)]
struct FileSlot {
    folder: u32,
    slot: u32,
}

/// The files and folders to be laid out anew.
#[derive(Default)]
struct Crowded {
    /// The files of these folders.
    files: BTreeSet<usize>,
    /// Folders that are new.
    new: Vec<usize>,
}

impl Layout {
    /// Takes over the files of the graph with this number: each path once, with its lines.
    pub fn update(&mut self, seq: u64, files: &[(Arc<str>, u32)]) {
        if !self.folders.is_empty() && seq <= self.seq {
            return;
        }
        self.seq = seq;
        if self.folders.is_empty() {
            self.known_from = seq;
            let tile = Tile { x: 0, y: 0, w: SIDE, h: SIDE };
            self.folders.push(Folder::whole(tile, seq));
            self.by_path.insert("".into(), 0);
        }
        let emptied = self.remove_all_but(files);
        let mut crowded = Crowded::default();
        for (path, lines) in files {
            match self.files.get(path).copied() {
                Some(place) => self.resize(path, place, class(*lines)),
                None if self.files.len() < MOST_FILES && is_placeable(path) => {
                    self.add(path, class(*lines), &mut crowded);
                }
                None => {}
            }
        }
        for folder in emptied {
            self.remove_if_empty(folder);
        }
        if self.files.len() > self.laid_out * 2 {
            self.laid_out = self.files.len();
            self.folders.shrink_to_fit();
            self.lay(0);
        } else {
            self.make_room(crowded);
        }
        self.count_the_rest(files);
        while self.gone.len() > MOST_GONE {
            self.known_from = self.gone.pop_front().map_or(seq, |(seq, _)| seq);
        }
    }

    /// The number of the graph that it shows.
    pub fn seq(&self) -> Option<u64> {
        (!self.folders.is_empty()).then_some(self.seq)
    }

    /// The changes after the graph with this number; everything if they are not known any more.
    pub fn since(&self, since: Option<u64>) -> LayoutPart {
        let since = since.filter(|since| (self.known_from..=self.seq).contains(since));
        let is_new = |at: u64| since.is_none_or(|since| at > since);
        let used: Vec<_> = self.folders.iter().filter(|it| !it.tile.is_empty()).collect();
        let folders = used.iter().filter(|it| is_new(it.at));
        let folders = folders.map(|it| placed(&it.path, it.tile, it.more));
        let slots = used.iter().flat_map(|it| &it.slots);
        let slots = slots.filter(|it| is_new(it.at()) && !it.tile.is_empty());
        let files = slots.filter_map(|it| Some(placed(it.path.as_ref()?, it.tile, 0)));
        let removed = self.gone.iter().filter(|(at, _)| since.is_some_and(|since| *at > since));
        let removed: BTreeSet<_> = removed.map(|(_, path)| Arc::clone(path)).collect();
        LayoutPart {
            seq: self.seq,
            is_whole: since.is_none(),
            folders: by_path(folders),
            files: by_path(files),
            removed: removed.into_iter().collect(),
        }
    }

    /// Returns the folders of those that went.
    fn remove_all_but(&mut self, files: &[(Arc<str>, u32)]) -> BTreeSet<usize> {
        let there: HashSet<&str> = files.iter().map(|(path, _)| &**path).collect();
        let gone = self.files.keys().filter(|path| !there.contains(&***path));
        let mut gone: Vec<_> = gone.cloned().collect();
        gone.sort_unstable();
        let mut folders = BTreeSet::new();
        for path in gone {
            let Some(place) = self.files.remove(&path) else { continue };
            let folder = place.folder as usize;
            self.folders[folder].free(place.slot as usize);
            self.gone.push_back((self.seq, path));
            folders.insert(folder);
        }
        folders
    }

    fn remove_if_empty(&mut self, mut at: usize) {
        while at > 0 && self.folders[at].children.is_empty() && self.folders[at].used == 0 {
            let gone = std::mem::take(&mut self.folders[at]);
            self.by_path.remove(&gone.path);
            self.gone.push_back((self.seq, gone.path));
            self.unused.push(at);
            let parent = &mut self.folders[gone.parent];
            parent.children.retain(|child| *child != at);
            parent.give_spare(gone.tile);
            at = gone.parent;
        }
    }

    fn resize(&mut self, path: &Arc<str>, place: FileSlot, class: u8) {
        let folder = &mut self.folders[place.folder as usize];
        if let Some(slot) = folder.resize(place.slot as usize, path, class, self.seq) {
            self.files.insert(Arc::clone(path), FileSlot { slot: number(slot), ..place });
        }
    }

    fn add(&mut self, path: &Arc<str>, class: u8, crowded: &mut Crowded) {
        let Some(at) = self.folder_of(path, crowded) else { return };
        let folder = &mut self.folders[at];
        let slot = folder.put(path, class, self.seq).unwrap_or_else(|| {
            crowded.files.insert(at);
            folder.push(path, class, self.seq)
        });
        let place = FileSlot { folder: number(at), slot: number(slot) };
        self.files.insert(Arc::clone(path), place);
    }

    /// The folder of a file, made if it is missing; None if there are too many.
    fn folder_of(&mut self, file: &str, crowded: &mut Crowded) -> Option<usize> {
        let ends: Vec<_> = file.match_indices('/').map(|(at, _)| at).collect();
        let known = ends.iter().rposition(|end| self.by_path.contains_key(&file[..*end]));
        let first = known.map_or(0, |at| at + 1);
        let mut at = known.and_then(|at| self.by_path.get(&file[..ends[at]])).copied().unwrap_or(0);
        if self.by_path.len() + ends.len() - first > MOST_FOLDERS {
            return None;
        }
        for (n, end) in ends[first..].iter().enumerate() {
            let path: Arc<str> = file[..*end].into();
            let folder = Folder::new(Arc::clone(&path), at);
            let new = self.unused.pop().unwrap_or(self.folders.len());
            if new == self.folders.len() {
                self.folders.push(folder);
            } else {
                self.folders[new] = folder;
            }
            self.by_path.insert(path, new);
            self.folders[at].children.push(new);
            if n == 0 && !self.folders[at].tile.is_empty() {
                crowded.new.push(new);
            }
            at = new;
        }
        Some(at)
    }

    /// Finds places for what is new, and moves as little as that takes.
    fn make_room(&mut self, crowded: Crowded) {
        let mut above = BTreeSet::new();
        for at in crowded.new {
            if self.folders[at].tile.is_empty() {
                let (weight, files) = self.weigh(at);
                let parent = self.folders[at].parent;
                match self.folders[parent].take_spare(weight, files) {
                    Some(tile) => {
                        (self.folders[at].tile, self.folders[at].at) = (tile, self.seq);
                        self.lay(at);
                    }
                    None => drop(above.insert(parent)),
                }
            }
        }
        for at in crowded.files {
            let is_there = !self.folders[at].tile.is_empty();
            if is_there && !(self.folders[at].has_part() && self.lay_files(at)) {
                above.insert(at);
            }
        }
        for at in above {
            // Those of a folder that was laid out meanwhile have their places.
            if !self.is_laid_out(at) {
                let at = self.roomy(at);
                self.lay(at);
            }
        }
    }

    fn is_laid_out(&self, at: usize) -> bool {
        let folder = &self.folders[at];
        let has_tile = |child: &usize| !self.folders[*child].tile.is_empty();
        folder.is_laid_out() && folder.children.iter().all(has_tile)
    }

    /// The nearest folder with room for all files below it.
    fn roomy(&self, mut at: usize) -> usize {
        while at > 0 && self.folders[at].tile.area() < 64 * self.weigh(at).1 as u64 {
            at = self.folders[at].parent;
        }
        at
    }

    /// The weight of a folder, and its files.
    fn weigh(&self, at: usize) -> (u64, usize) {
        let (mut weight, mut files) = (0, 0);
        for below in self.below(at) {
            weight += self.folders[below].own_weight();
            files += self.folders[below].used;
        }
        (weight, files)
    }

    /// A folder and those below it, each before its own.
    fn below(&self, at: usize) -> Vec<usize> {
        let (mut all, mut next) = (vec![at], 0);
        while next < all.len() {
            all.extend(&self.folders[all[next]].children);
            next += 1;
        }
        all
    }

    /// Lays out everything below a folder anew, in its place.
    fn lay(&mut self, top: usize) {
        let all = self.below(top);
        let mut weights: HashMap<usize, u64> = HashMap::new();
        for at in all.iter().rev() {
            let folders = self.folders[*at].children.iter().map(|child| weights[child]);
            let sum = folders.sum::<u64>() + self.folders[*at].own_weight();
            weights.insert(*at, sum);
        }
        for at in all {
            let mut children = std::mem::take(&mut self.folders[at].children);
            children.sort_unstable_by(|a, b| self.folders[*a].path.cmp(&self.folders[*b].path));
            let of: Vec<_> = children.iter().map(|child| weights[child]).collect();
            let tiles = self.folders[at].divide(&of);
            for (child, tile) in children.iter().zip(tiles) {
                let child = &mut self.folders[*child];
                if child.tile != tile {
                    if tile.is_empty() {
                        self.gone.push_back((self.seq, Arc::clone(&child.path)));
                    }
                    (child.tile, child.at) = (tile, self.seq);
                }
            }
            self.folders[at].children = children;
            self.lay_files(at);
        }
    }

    /// Lays the files of a folder out anew; whether there is room for all.
    fn lay_files(&mut self, at: usize) -> bool {
        let folder = &mut self.folders[at];
        let lost = folder.lay_files(self.seq);
        self.gone.extend(lost.into_iter().map(|path| (self.seq, path)));
        let files = folder.slots.iter().enumerate();
        for (slot, path) in files.filter_map(|(slot, it)| Some((slot, it.path.as_ref()?))) {
            if let Some(place) = self.files.get_mut(path) {
                place.slot = number(slot);
            }
        }
        folder.is_laid_out()
    }

    /// Counts the files without a place by the nearest folder that has one.
    fn count_the_rest(&mut self, files: &[(Arc<str>, u32)]) {
        let mut more = vec![0; self.folders.len()];
        for (path, _) in files {
            let place = self.files.get(path);
            let tile =
                |it: &FileSlot| self.folders[it.folder as usize].slots[it.slot as usize].tile;
            if place.is_none_or(|place| tile(place).is_empty()) {
                let folders = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
                let known = folders.filter_map(|folder| self.by_path.get(folder));
                let mut shown = known.filter(|at| !self.folders[**at].tile.is_empty());
                more[shown.next().copied().unwrap_or(0)] += 1;
            }
        }
        for (folder, more) in self.folders.iter_mut().zip(more) {
            if folder.more != more {
                (folder.more, folder.at) = (more, self.seq);
            }
        }
    }
}

fn is_placeable(path: &str) -> bool {
    !path.is_empty() && path.len() <= LONGEST_PATH && path.matches('/').count() <= DEEPEST
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn placed(path: &Arc<str>, tile: Tile, more: usize) -> Placed {
    Placed { path: Arc::clone(path), tile, more }
}

fn by_path(placed: impl Iterator<Item = Placed>) -> Vec<Placed> {
    let mut placed: Vec<_> = placed.collect();
    placed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    placed
}

impl From<LayoutPart> for MapLayout {
    fn from(part: LayoutPart) -> Self {
        let folder = |it: Placed| FolderPlace { more: it.more, place: it.into() };
        Self {
            seq: part.seq,
            whole: part.is_whole,
            width: SIDE,
            height: SIDE,
            folders: part.folders.into_iter().map(folder).collect(),
            files: part.files.into_iter().map(FilePlace::from).collect(),
            removed: part.removed.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<Placed> for FilePlace {
    fn from(placed: Placed) -> Self {
        let tile = placed.tile;
        Self { path: placed.path.to_string(), x: tile.x, y: tile.y, w: tile.w, h: tile.h }
    }
}

#[cfg(test)]
mod tests;
