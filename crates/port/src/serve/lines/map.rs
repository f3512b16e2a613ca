//! Owns the encoding of a map in lines of bounded length, which continue in further lines.

use std::sync::Arc;

use bytes::Bytes;

use super::line;
use crate::model::{Delta, FileNode, Snapshot};
use crate::wire::{MapDelta, MapSnapshot, Node, ServerLine, SessionHeader};

/// Bytes of nodes after which a line ends, before JSON escapes.
const MOST: usize = 1 << 20;

/// Estimated bytes of a node without its path and symbols.
const NODE: usize = 200;

/// Encodes a session's whole map.
pub(in crate::serve) fn snapshot(snapshot: &Snapshot) -> Bytes {
    let parts = parts(&snapshot.nodes, &[]);
    let [(nodes, _), rest @ ..] = &parts[..] else { return Bytes::new() };
    let first = line(&ServerLine::Snapshot(MapSnapshot {
        session: SessionHeader::new(&snapshot.key, snapshot.mode),
        seq: snapshot.seq,
        nodes: nodes.iter().map(Node::from).collect(),
        omitted: snapshot.omitted,
        more: !rest.is_empty(),
    }));
    if rest.is_empty() {
        return first;
    }
    deltas(first.into(), &SessionHeader::new(&snapshot.key, snapshot.mode), snapshot.seq, rest)
}

/// Encodes the changes of a session.
pub(super) fn delta(delta: &Delta) -> Bytes {
    let parts = parts(&delta.updates, &delta.removed);
    deltas(Vec::new(), &SessionHeader::new(&delta.key, delta.mode), delta.seq, &parts)
}

/// Appends a `delta` line for each part.
fn deltas(mut lines: Vec<u8>, session: &SessionHeader<'_>, seq: u64, parts: &[Part<'_>]) -> Bytes {
    for (at, (updates, removed)) in (1..).zip(parts) {
        let next = line(&ServerLine::Delta(MapDelta {
            agent_id: session.agent_id.clone(),
            session_id: session.session_id.clone(),
            session_mode: session.session_mode.clone(),
            seq,
            updates: updates.iter().map(Node::from).collect(),
            removed: (*removed).into(),
            more: at < parts.len(),
        }));
        if parts.len() == 1 && lines.is_empty() {
            return next;
        }
        lines.extend_from_slice(&next);
    }
    lines.into()
}

/// A part of a session's changes.
type Part<'a> = (&'a [FileNode], &'a [Arc<str>]);

/// Splits changes into parts, at least one.
fn parts<'a>(mut updates: &'a [FileNode], mut removed: &'a [Arc<str>]) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    loop {
        let mut room = MOST;
        let mut part = (take(&mut updates, &mut room, weight), &[][..]);
        if updates.is_empty() {
            part.1 = take(&mut removed, &mut room, |path| path.len() + 4);
        }
        parts.push(part);
        if updates.is_empty() && removed.is_empty() {
            return parts;
        }
    }
}

/// Takes items from the front that fit; at least one if there is any room.
fn take<'a, T>(rest: &mut &'a [T], room: &mut usize, weight: impl Fn(&T) -> usize) -> &'a [T] {
    let mut taken = 0;
    while let Some(next) = rest.get(taken).filter(|_| *room > 0) {
        *room = room.saturating_sub(weight(next));
        taken += 1;
    }
    let (part, others) = rest.split_at(taken);
    *rest = others;
    part
}

fn weight(node: &FileNode) -> usize {
    let symbols = node.symbols.iter().flat_map(|symbols| symbols.iter());
    NODE + 2 * node.path.len() + symbols.map(|symbol| symbol.len() + 4).sum::<usize>()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::model::Event;
    use crate::serve::tests::samples;
    use crate::serve::{encode, lines};

    fn nodes(count: usize) -> Vec<FileNode> {
        (0..count).map(|n| samples::node(&format!("{n:0>300}"), 0.5)).collect()
    }

    fn read(lines: &[u8]) -> Vec<Value> {
        assert!(lines.ends_with(b"\n"));
        let lines = lines.split_inclusive(|byte| *byte == b'\n');
        lines
            .inspect(|line| assert!(line.len() < 2 * MOST, "{} bytes", line.len()))
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    #[test]
    fn a_large_map_goes_over_several_lines_that_add_up_to_it() {
        let snapshot = Snapshot { nodes: nodes(5_000), omitted: 7, ..samples::snapshot() };
        let lines = read(&lines::snapshot(&snapshot));
        assert!(lines.len() > 2);
        assert_eq!(
            (lines[0]["type"].as_str(), lines[0]["omitted"].as_u64()),
            (Some("snapshot"), Some(7))
        );
        let mut map: BTreeMap<String, Value> =
            lines[0]["nodes"].as_object().unwrap().clone().into_iter().collect();
        for line in &lines[1..] {
            assert_eq!(
                (line["type"].as_str(), line["seq"].as_u64()),
                (Some("delta"), Some(snapshot.seq))
            );
            for node in line["updates"].as_array().unwrap() {
                map.insert(node["path"].as_str().unwrap().to_owned(), node.clone());
            }
        }
        assert_eq!(map.len(), 5_000);
        let more: Vec<bool> = lines.iter().map(|line| line["more"] == true).collect();
        assert!(more[..more.len() - 1].iter().all(|more| *more) && !more[more.len() - 1]);
    }

    #[test]
    fn a_large_delta_does_so_too_and_a_small_one_is_a_line() {
        let removed: Vec<Arc<str>> = (0..5_000).map(|n| format!("{n:0>300}").into()).collect();
        let delta = Delta { updates: nodes(5_000), removed, ..samples::delta() };
        let lines = read(&encode(&Event::Delta(delta)));
        let count =
            |key| lines.iter().map(|line| line[key].as_array().unwrap().len()).sum::<usize>();
        assert_eq!((count("updates"), count("removed")), (5_000, 5_000));
        assert_eq!(read(&encode(&Event::Delta(samples::delta()))).len(), 1);
        let nothing = Delta { updates: Vec::new(), removed: Vec::new(), ..samples::delta() };
        assert_eq!(read(&encode(&Event::Delta(nothing))).len(), 1);
    }
}
