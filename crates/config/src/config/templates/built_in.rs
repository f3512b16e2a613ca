//! The built-in templates, `templates.toml`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Its text, which is also what is shown of them.
pub(super) const TEXT: &str = include_str!("../templates.toml");

#[expect(clippy::expect_used, reason = "the text is part of the program, and a test reads it")]
static TABLES: LazyLock<BTreeMap<String, DeTable<'static>>> = LazyLock::new(|| {
    let document = DeTable::parse(TEXT).expect("templates.toml is valid");
    super::own(document.get_ref())
});

pub(super) fn built_in() -> &'static BTreeMap<String, DeTable<'static>> {
    &TABLES
}

/// Returns a built-in template as if all of it stood at a place of the file.
pub(super) fn placed<'a>(table: &DeTable<'static>, place: &Range<usize>) -> DeTable<'a> {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'static>>)| {
        let key: &std::borrow::Cow<'static, str> = key.get_ref();
        (Spanned::new(place.clone(), key.clone()), of_value(value, place))
    };
    table.iter().map(entry).collect()
}

fn of_value<'a>(value: &Spanned<DeValue<'static>>, place: &Range<usize>) -> Spanned<DeValue<'a>> {
    let value = match value.get_ref() {
        DeValue::Table(table) => DeValue::Table(placed(table, place)),
        DeValue::Array(array) => {
            DeValue::Array(array.iter().map(|item| of_value(item, place)).collect())
        }
        other => other.clone(),
    };
    Spanned::new(place.clone(), value)
}
