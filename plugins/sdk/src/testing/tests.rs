#![allow(clippy::unwrap_used)]

use super::*;
use crate::{Description, Direction, Records};

/// Puts each line as text.
struct Echo;

impl Extractor for Echo {
    const DESCRIPTION: Description =
        Description { name: "echo", version: "1", protocols: &["any"] };

    fn create(_: &str) -> Result<Self, String> {
        Ok(Self)
    }

    fn observe(
        &mut self,
        _: Direction,
        line: &[u8],
        records: &mut Records<'_>,
    ) -> Result<(), String> {
        records.text(str::from_utf8(line).map_err(|error| error.to_string())?);
        Ok(())
    }
}

#[test]
fn a_transcript_is_told_from_what_a_plugin_makes_of_it() {
    let why = |transcript| check::<Echo>("{}", transcript).unwrap_err();
    check::<Echo>("{}", "< a\ntext a\n").unwrap();
    assert_eq!(why("< a\ntext b\n"), "expected the record `text b`, got `text a`");
    assert_eq!(why("< a\ntext a\ntext b\n"), "expected the record `text b`, got `nothing`");
    assert_eq!(why("< a\n"), "expected no further record, got `text a`");
}
