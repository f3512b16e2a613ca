#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn written(records: &[Record<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        record.write(&mut bytes);
    }
    bytes
}

fn examples() -> Vec<Record<'static>> {
    let usage =
        Usage { used: Some(u64::MAX), size: None, cost: Some("0.5".into()), currency: None };
    let accesses = vec![("read".into(), "a".into()), ("write".into(), "ü b".into())];
    vec![
        Record::Description {
            name: "n".into(),
            version: "1".into(),
            protocols: vec!["p".into(), "q".into()],
        },
        Record::Error { body: "why".into() },
        Record::Session { id: "s".into() },
        Record::TurnBegan,
        Record::TurnEnded { reason: "error".into(), body: "no credit".into() },
        Record::Touched { action: "read".into(), path: "a\nb".into(), call: "".into() },
        Record::Usage(usage),
        Record::Usage(Usage::default()),
        Record::Model { id: "m".into(), name: "M".into() },
        Record::Text { body: "hello".into(), reason: "thought".into() },
        Record::Ask { id: "7".into(), title: "Edit".into(), accesses, command: "".into() },
        Record::Ask { id: "8".into(), title: "".into(), accesses: vec![], command: "ls".into() },
        Record::Line { body: b"\xff{" },
        Record::Runs { command: "cat a".into(), call: "c".into() },
        Record::Withdrawn { id: "7".into() },
    ]
}

#[test]
fn what_is_written_is_read() {
    let bytes = written(&examples());
    let read: Vec<_> = records(&bytes).map(Result::unwrap).collect();
    assert_eq!(read, examples());
}

#[test]
fn what_a_later_version_adds_is_skipped() {
    let mut bytes = [99_u32, 12, 1, 4, 0].map(u32::to_le_bytes).concat();
    let mut session = written(&[Record::Session { id: "s".into() }]);
    session[4] += 9;
    session.extend([200, 0, 0, 0, 1, 0, 0, 0, 0xff]);
    bytes.extend(session);
    let read: Vec<_> = records(&bytes).collect();
    assert_eq!(read, [Ok(Record::Session { id: "s".into() })]);
}

#[test]
fn what_is_no_record_is_an_error_and_the_end() {
    let good = written(&[Record::TurnBegan, Record::Session { id: "s".into() }]);
    for end in 9..good.len() {
        let read: Vec<_> = records(&good[..end]).collect();
        assert_eq!(read, [Ok(Record::TurnBegan), Err(Malformed::Torn)], "{end}");
    }
    let mut odd = good.clone();
    *odd.last_mut().unwrap() = 0xff;
    assert_eq!(records(&odd).nth(1), Some(Err(Malformed::NotText)));
    let mut odd = written(&[Record::Usage(Usage { used: Some(7), ..Usage::default() })]);
    *odd.last_mut().unwrap() = b'x';
    assert_eq!(records(&odd).next(), Some(Err(Malformed::NotANumber)));
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(0..16_u8, 0..256)) {
        let read: Vec<_> = records(&bytes).collect();
        prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
    }
}
