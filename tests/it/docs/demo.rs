//! The transcript of the demo that the documents show. `tests/demo.sh` compares the console's half
//! with a real run, and `tests/record-demo.py` records both.

use std::collections::HashMap;

use serde_json::Value;

use crate::harness::assert_server_line;

fn wire() -> impl Iterator<Item = Value> {
    include_str!("../../../docs/demo/wire.ndjson")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn its_lines_are_lines_of_the_port() {
    wire().for_each(|line| assert_server_line(&line));
}

#[test]
fn its_deltas_follow_its_snapshots_in_order() {
    let mut shown: HashMap<String, u64> = HashMap::new();
    for line in wire() {
        let seq = line["seq"].as_u64();
        let session = format!("{} {}", line["agent_id"], line["session_id"]);
        match (line["type"].as_str().unwrap(), seq) {
            ("snapshot", Some(seq)) => drop(shown.insert(session, seq)),
            ("delta", Some(seq)) => {
                // Those in which files only cool are left out.
                let before = shown.insert(session, seq);
                assert!(before.is_some_and(|before| before < seq), "{line}");
            }
            _ => {}
        }
    }
    assert_eq!(shown.len(), 4, "three sessions, and the empty one of the join");
}
