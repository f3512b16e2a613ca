//! Cuts JSON values to a bound in bytes.

use serde_json::{Map, Value};

/// Bytes of a value without its text.
const VALUE_BYTES: usize = 8;

/// Cuts the texts of a value, and drops what follows, so that about `most` bytes stay; returns
/// whether anything was cut.
pub(super) fn shrink(value: &mut Value, most: usize) -> bool {
    let mut left = most;
    shrink_within(value, &mut left)
}

fn shrink_within(value: &mut Value, left: &mut usize) -> bool {
    *left = left.saturating_sub(VALUE_BYTES);
    match value {
        Value::String(text) => {
            let is_long = text.len() > *left;
            if is_long {
                text.truncate(text.floor_char_boundary(*left));
            }
            *left -= text.len();
            is_long
        }
        Value::Array(all) => {
            let mut cut = false;
            let mut kept = 0;
            for one in all.iter_mut() {
                if *left == 0 {
                    break;
                }
                cut |= shrink_within(one, left);
                kept += 1;
            }
            cut |= kept < all.len();
            all.truncate(kept);
            cut
        }
        Value::Object(fields) => {
            let (mut cut, mut kept) = (false, Map::new());
            for (name, mut value) in std::mem::take(fields) {
                if *left < name.len() {
                    cut = true;
                    continue;
                }
                *left -= name.len();
                cut |= shrink_within(&mut value, left);
                kept.insert(name, value);
            }
            *fields = kept;
            cut
        }
        _ => false,
    }
}

/// Every text of a value, up to about `most` bytes.
pub(super) fn texts(value: &Value, most: usize, into: &mut String) {
    match value {
        Value::String(text) if into.len() < most => {
            if !into.is_empty() {
                into.push('\n');
            }
            let room = most.saturating_sub(into.len());
            into.push_str(&text[..text.floor_char_boundary(room)]);
        }
        Value::Array(all) => all.iter().for_each(|one| texts(one, most, into)),
        // `type` names a shape, and is no text.
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "type" | "terminalId"))
            .for_each(|(_, one)| texts(one, most, into)),
        _ => {}
    }
}
