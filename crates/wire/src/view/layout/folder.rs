//! One folder of the layout: the part of its own files, with their slots, and its spare parts.

use std::sync::Arc;

use super::tiles::{Tile, divide};

/// One empty slot for so many files, and at least one.
const FILES_OF_A_SPARE: usize = 4;

/// Spare parts that are kept, the largest.
const MOST_SPARE: usize = 64;

/// The powers of two that lengths are rounded to: up to 16 lines, up to 32, … more than 2,048.
const HIGHEST_CLASS: u8 = 8;

#[derive(Debug, Default)]
pub(super) struct Folder {
    pub(super) path: Arc<str>,
    pub(super) parent: usize,
    /// Folders in it that have files.
    pub(super) children: Vec<usize>,
    pub(super) tile: Tile,
    /// The number of the graph with which it changed last.
    pub(super) at: u64,
    /// Its weight when it was laid out.
    pub(super) weight: u64,
    /// Files without a place of their own.
    pub(super) more: usize,
    /// The part of its own files.
    files: Tile,
    pub(super) slots: Vec<Slot>,
    /// Slots that have a file.
    pub(super) used: usize,
    /// Free slots, sorted by class.
    free: Vec<(u8, u32)>,
    spare: Vec<Tile>,
}

/// A place for one file.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Empty: there was no room.
    pub(super) tile: Tile,
    class: u8,
    /// The class of its file by now.
    file: u8,
    at: u32,
    /// None: it is free.
    pub(super) path: Option<Arc<str>>,
}

/// The class of a length.
pub(super) fn class(lines: u32) -> u8 {
    let class = lines.div_ceil(16).max(1).next_power_of_two().trailing_zeros();
    u8::try_from(class).unwrap_or(HIGHEST_CLASS).min(HIGHEST_CLASS)
}

fn weight(class: u8) -> u64 {
    16 << class
}

impl Slot {
    /// The number of the graph with which it changed last.
    pub(super) fn at(&self) -> u64 {
        u64::from(self.at)
    }
}

impl Folder {
    pub(super) fn new(path: Arc<str>, parent: usize) -> Self {
        Self { path, parent, ..Self::default() }
    }

    /// The workspace.
    pub(super) fn whole(tile: Tile, seq: u64) -> Self {
        Self { tile, at: seq, ..Self::default() }
    }

    pub(super) fn own_weight(&self) -> u64 {
        let files = self.slots.iter().filter(|slot| slot.path.is_some());
        let files = files.map(|slot| weight(slot.file)).sum::<u64>();
        files + files / FILES_OF_A_SPARE as u64
    }

    /// Puts a file into the free slot of the nearest size; None if there is none.
    pub(super) fn put(&mut self, path: &Arc<str>, class: u8, seq: u64) -> Option<usize> {
        let at = self.free_near(class, HIGHEST_CLASS)?;
        self.fill(at, path, class, seq);
        Some(at)
    }

    fn fill(&mut self, at: usize, path: &Arc<str>, class: u8, seq: u64) {
        let slot = &mut self.slots[at];
        (slot.path, slot.file, slot.at) = (Some(Arc::clone(path)), class, short(seq));
        if let Ok(free) = self.free.binary_search(&(slot.class, number(at))) {
            self.free.remove(free);
        }
        self.used += 1;
    }

    /// The first free slot of the nearest class, at most `most` away.
    fn free_near(&self, class: u8, most: u8) -> Option<usize> {
        let first = |class: u8| {
            let at = self.free.partition_point(|free| free.0 < class);
            self.free.get(at).filter(|free| free.0 == class)
        };
        let near = (0..=most).flat_map(|off| [class.checked_sub(off), class.checked_add(off)]);
        let (_, slot) = near.flatten().find_map(first)?;
        usize::try_from(*slot).ok()
    }

    /// Adds a file that gets its place when the files are laid out anew.
    pub(super) fn push(&mut self, path: &Arc<str>, class: u8, seq: u64) -> usize {
        let path = Some(Arc::clone(path));
        self.used += 1;
        self.slots.push(Slot { tile: Tile::default(), class, file: class, at: short(seq), path });
        self.slots.len() - 1
    }

    /// Notes the length of a file. If a free slot suits it much better than its own, it moves there:
    /// returns that.
    pub(super) fn resize(
        &mut self,
        at: usize,
        path: &Arc<str>,
        class: u8,
        seq: u64,
    ) -> Option<usize> {
        self.slots[at].file = class;
        let off = self.slots[at].class.abs_diff(class);
        let better = self.free_near(class, off.checked_sub(2)?)?;
        self.free(at);
        self.fill(better, path, class, seq);
        Some(better)
    }

    pub(super) fn free(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.path = None;
        self.used -= 1;
        if !slot.tile.is_empty() {
            let free = (slot.class, number(at));
            let place = self.free.partition_point(|other| *other < free);
            self.free.insert(place, free);
        }
    }

    /// Divides its tile: its own files, its folders of these weights, and a spare part. Returns the
    /// tiles of the folders.
    pub(super) fn divide(&mut self, folders: &[u64]) -> Vec<Tile> {
        let own = self.own_weight();
        let all = own + folders.iter().sum::<u64>();
        let mut weights = Vec::with_capacity(folders.len() + 2);
        weights.extend((own > 0).then_some(own));
        weights.extend(folders);
        weights.push((all / 16).max(1));
        let mut tiles = divide(self.tile, &weights);
        self.spare = tiles.pop().into_iter().filter(|tile| !tile.is_empty()).collect();
        self.files = if own > 0 { tiles.remove(0) } else { Tile::default() };
        self.weight = all;
        tiles
    }

    /// Lays its own files out anew in their part, with new empty slots. Returns the files that lost
    /// their place, for which there is no room.
    pub(super) fn lay_files(&mut self, seq: u64) -> Vec<Arc<str>> {
        let mut old: Vec<_> = self.slots.drain(..).filter(|slot| slot.path.is_some()).collect();
        old.sort_by(|a, b| a.path.cmp(&b.path));
        let count = old.len();
        let mut slots = Vec::with_capacity(count + count / FILES_OF_A_SPARE + 1);
        for (n, slot) in old.into_iter().enumerate() {
            let class = slot.file;
            slots.push(Slot { class, ..slot });
            if (n + 1) % FILES_OF_A_SPARE == 0 || n + 1 == count && count < FILES_OF_A_SPARE {
                slots.push(Slot { tile: Tile::default(), class, file: class, at: 0, path: None });
            }
        }
        let weights: Vec<_> = slots.iter().map(|slot| weight(slot.class)).collect();
        let mut lost = Vec::new();
        for (slot, tile) in slots.iter_mut().zip(divide(self.files, &weights)) {
            if slot.tile != tile {
                lost.extend(slot.path.clone().filter(|_| tile.is_empty()));
                (slot.tile, slot.at) = (tile, short(seq));
            }
        }
        slots.retain(|slot| slot.path.is_some() || !slot.tile.is_empty());
        let free = slots.iter().enumerate().filter(|(_, slot)| slot.path.is_none());
        self.free = free.map(|(at, slot)| (slot.class, number(at))).collect();
        self.free.sort_unstable();
        slots.shrink_to_fit();
        self.slots = slots;
        lost
    }

    /// Whether each of its own files has a place.
    pub(super) fn is_laid_out(&self) -> bool {
        self.slots.iter().all(|slot| !slot.tile.is_empty())
    }

    /// Whether it has a part for files of its own.
    pub(super) fn has_part(&self) -> bool {
        !self.files.is_empty()
    }

    /// Takes a part of a spare tile that is about as large as `weight` should have.
    pub(super) fn take_spare(&mut self, weight: u64, files: usize) -> Option<Tile> {
        let at =
            (0..self.spare.len()).max_by_key(|at| (self.spare[*at].area(), usize::MAX - at))?;
        let tile = self.spare[at];
        if tile.area() < 16 * files as u64 {
            return None;
        }
        // No more than half, so that something is left for the next.
        let wanted = self.tile.area() * weight / self.weight.max(weight).max(1);
        let longer = u64::from(tile.longer());
        let len = (wanted * longer / tile.area()).clamp(longer.div_ceil(8), longer.div_ceil(2));
        let (taken, rest) = tile.cut(u16::try_from(len).unwrap_or(1));
        if taken.area() < 16 * files as u64 {
            return None;
        }
        self.spare.remove(at);
        self.give_spare(rest);
        Some(taken)
    }

    /// Keeps the place of a folder that is gone.
    pub(super) fn give_spare(&mut self, tile: Tile) {
        if !tile.is_empty() {
            self.spare.push(tile);
        }
        if self.spare.len() > MOST_SPARE {
            let least = (0..self.spare.len()).min_by_key(|at| self.spare[*at].area());
            self.spare.remove(least.unwrap_or(0));
        }
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// A number of a graph, in few bytes.
fn short(seq: u64) -> u32 {
    u32::try_from(seq).unwrap_or(u32::MAX)
}
