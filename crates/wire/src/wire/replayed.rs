//! Owns the mark of lines that show an earlier run: `"replay": true` in each of them.

use bytes::Bytes;
use serde_json::{Map, Value, json};

const MARK: &[u8] = b",\"replay\":true}\n";

/// Marks lines, each of them an object that is not empty.
pub fn replayed(lines: &[u8]) -> Bytes {
    let mut marked = Vec::with_capacity(lines.len() + MARK.len());
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"}\n") {
            Some(open) => {
                marked.extend_from_slice(open);
                marked.extend_from_slice(MARK);
            }
            None => marked.extend_from_slice(line),
        }
    }
    marked.into()
}

/// Adds the mark to the schema of the server's lines.
pub fn add_mark(definitions: &mut Map<String, Value>) {
    let mark = json!({
        "description": "Only if true: the line shows an earlier run, from a journal.",
        "type": "boolean",
    });
    let kinds = definitions.get_mut("ServerLine").and_then(|line| line["oneOf"].as_array_mut());
    for kind in kinds.into_iter().flatten() {
        kind["properties"]["replay"] = mark.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_marked() {
        let lines = b"{\"type\":\"a\",\"b\":{}}\n{\"type\":\"c\"}\n";
        let marked =
            b"{\"type\":\"a\",\"b\":{},\"replay\":true}\n{\"type\":\"c\",\"replay\":true}\n";
        assert_eq!(&replayed(lines)[..], marked);
        assert_eq!(replayed(b""), Bytes::new());
    }
}
