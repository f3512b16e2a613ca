//! The versions of a file as lines with their origins: finds the change of each line by content. A
//! line that comes back has its old origin.

use std::collections::HashMap;

use gix_imara_diff::{Algorithm, Diff, IndentHeuristic, IndentLevel, Token};

use crate::changes::merge::lines;

/// The origin of a line: the number that the caller gave to a change.
pub(super) type LineOrigin = u32;

/// Maximum versions that are compared with one that brings lines back.
const MOST_COMPARED: usize = 32;

/// Maximum lines of all kept versions: the first version and the last ones.
const MOST_KEPT: usize = 4_000_000;

#[derive(Default)]
pub(super) struct Versions {
    tokens: HashMap<Box<[u8]>, Token>,
    indents: Vec<IndentLevel>,
    kept: Vec<Version>,
    lines: usize,
}

#[derive(Clone, Default)]
struct Version {
    tokens: Vec<Token>,
    origins: Vec<LineOrigin>,
}

impl Versions {
    /// Adds the version that a change made of the last one. `brings_back`: new lines that an
    /// earlier version had get their origin from there; otherwise only if the whole version is the
    /// same.
    pub(super) fn add(&mut self, content: &[u8], origin: LineOrigin, brings_back: bool) {
        let tokens = self.intern(content);
        if let Some(earlier) = self.kept.iter().rev().find(|it| it.tokens == tokens) {
            let again = earlier.clone();
            self.keep(again);
            return;
        }
        let mut origins: Vec<Option<LineOrigin>> = vec![None; tokens.len()];
        let mut earlier = self.kept.iter().rev();
        if let Some(last) = earlier.next() {
            for (old, new) in self.kept_lines(&last.tokens, &tokens) {
                origins[new] = Some(last.origins[old]);
            }
        }
        if brings_back {
            let compared = earlier.take(MOST_COMPARED).chain(self.kept.first());
            for version in compared {
                if !origins.contains(&None) {
                    break;
                }
                self.bring_back(version, &tokens, &mut origins);
            }
        }
        let origins = origins.into_iter().map(|it| it.unwrap_or(origin)).collect();
        self.keep(Version { tokens, origins });
    }

    /// The origins of the last version's lines.
    pub(super) fn origins(&self) -> &[LineOrigin] {
        self.kept.last().map_or(&[], |version| &version.origins)
    }

    /// Gives each block of new lines its origins from an earlier version that has the whole block.
    fn bring_back(&self, version: &Version, tokens: &[Token], origins: &mut [Option<LineOrigin>]) {
        let mut old_of = vec![None; tokens.len()];
        for (old, new) in self.kept_lines(&version.tokens, tokens) {
            old_of[new] = Some(old);
        }
        let mut at = 0;
        while at < tokens.len() {
            let count = origins[at..].iter().take_while(|origin| origin.is_none()).count();
            let block = &old_of[at..at + count];
            let follow = |pair: &[Option<usize>]| pair[0].map(|old| old + 1) == pair[1];
            if count > 0 && block[0].is_some() && block.windows(2).all(follow) {
                for (origin, old) in origins[at..].iter_mut().zip(block) {
                    *origin = old.map(|old| version.origins[old]);
                }
            }
            at += count.max(1);
        }
    }

    /// Pairs of lines that two versions share, in order.
    fn kept_lines(&self, old: &[Token], new: &[Token]) -> Vec<(usize, usize)> {
        let mut diff = Diff::default();
        let count = u32::try_from(self.indents.len()).unwrap_or(u32::MAX);
        diff.compute_with(Algorithm::Histogram, old, new, count);
        let indent = |token: Token| self.indents[token.0 as usize];
        diff.postprocess_with(old, new, IndentHeuristic::new(indent));
        let (mut pairs, mut at_old, mut at_new) = (Vec::with_capacity(new.len()), 0, 0);
        for hunk in diff.hunks() {
            pairs.extend((at_old..hunk.before.start as usize).zip(at_new..));
            (at_old, at_new) = (hunk.before.end as usize, hunk.after.end as usize);
        }
        pairs.extend((at_old..old.len()).zip(at_new..));
        pairs
    }

    fn intern(&mut self, content: &[u8]) -> Vec<Token> {
        let intern = |line: &[u8]| {
            if let Some(token) = self.tokens.get(line) {
                return *token;
            }
            let token = Token(u32::try_from(self.indents.len()).unwrap_or(u32::MAX));
            self.indents.push(IndentLevel::for_ascii_line(line.iter().copied(), 8));
            self.tokens.insert(line.into(), token);
            token
        };
        lines(content).into_iter().map(intern).collect()
    }

    fn keep(&mut self, version: Version) {
        self.lines += version.tokens.len();
        self.kept.push(version);
        while self.lines > MOST_KEPT && self.kept.len() > 2 {
            self.lines -= self.kept.remove(1).tokens.len();
        }
    }
}
