//! Divides a rectangle among items in their order, by their weights, in whole numbers.

/// A rectangle; `x` and `y` are its upper left corner.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tile {
    pub x: u16,
    pub y: u16,
    pub w: u16,
    pub h: u16,
}

impl Tile {
    pub(super) fn area(self) -> u64 {
        u64::from(self.w) * u64::from(self.h)
    }

    pub(super) fn is_empty(self) -> bool {
        self.w == 0 || self.h == 0
    }

    /// Cuts the longer side: the first part has `len` of it.
    pub(super) fn cut(self, len: u16) -> (Self, Self) {
        if self.w >= self.h {
            let len = len.min(self.w);
            (Self { w: len, ..self }, Self { x: self.x + len, w: self.w - len, ..self })
        } else {
            let len = len.min(self.h);
            (Self { h: len, ..self }, Self { y: self.y + len, h: self.h - len, ..self })
        }
    }

    pub(super) fn longer(self) -> u16 {
        self.w.max(self.h)
    }
}

/// Gives each item a part of `whole`, by its weight, and no item less than 1 by 1. Items for which
/// there is no room get an empty tile.
pub(super) fn divide(whole: Tile, weights: &[u64]) -> Vec<Tile> {
    let mut sums = Vec::with_capacity(weights.len() + 1);
    sums.push(0_u64);
    for weight in weights {
        sums.push(sums[sums.len() - 1] + weight.max(&1));
    }
    let mut tiles = vec![Tile::default(); weights.len()];
    // Each cut halves the weight, or parts one heavy item from the rest.
    let mut open = vec![(whole, 0, weights.len())];
    while let Some((tile, from, to)) = open.pop() {
        if tile.is_empty() || from == to {
            continue;
        }
        if to - from == 1 || tile.longer() < 2 {
            tiles[from] = tile;
            continue;
        }
        let total = sums[to] - sums[from];
        let half = sums[from] + total / 2;
        // The first end at or behind the middle, or the one before if that is nearer.
        let at = from + 1 + sums[from + 1..to - 1].partition_point(|sum| *sum < half);
        let at = if at - 1 > from && half.abs_diff(sums[at - 1]) < half.abs_diff(sums[at]) {
            at - 1
        } else {
            at
        };
        let len = u64::from(tile.longer());
        let part = (len * (sums[at] - sums[from]) + total / 2) / total;
        let part = u16::try_from(part.clamp(1, len - 1)).unwrap_or(1);
        let (first, rest) = tile.cut(part);
        open.push((first, from, at));
        open.push((rest, at, to));
    }
    tiles
}
