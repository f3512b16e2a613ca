//! Tests that an incremental parse equals a whole one.

#![allow(clippy::unwrap_used)]
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// A source of each language.
const SOURCES: [(&str, &str); 7] = [
    ("walk.rs", include_str!("../walk.rs")),
    ("subscriber.py", include_str!("../../../../../examples/subscriber.py")),
    ("use-cart.ts", include_str!("../../../../../examples/shop/src/ui/use-cart.ts")),
    ("basket.tsx", include_str!("../../../../../examples/shop/src/ui/basket.tsx")),
    (
        "dual.ts",
        "export const f: {\n  (p: number): A\n  <B extends D>(s: B): B\n} = dual(\n  (a) => a,\n  <C>(c: C) => c\n)\nexport function last() { f(1) }\n",
    ),
    ("node.js", include_str!("../../../../../tests/it/confine/confinement/escapes/node.js")),
    (
        "list.jsx",
        "export const List = ({ of }) => {\n  return <ul>{of.map((one) => <Item {...one} />)}</ul>\n}\n",
    ),
];

#[derive(Clone, Debug)]
enum Edit {
    /// A part goes, by where it begins and its bytes.
    Cut(Index, usize),
    /// Lines come a second time, elsewhere.
    Copy(Index, usize, Index),
    Write(Index, &'static str),
}

fn edit_of_text() -> impl Strategy<Value = Edit> {
    let written = prop::sample::select(vec![
        "x",
        " ",
        "\n",
        "(",
        ")",
        "{",
        "}",
        "}\n",
        "\"",
        "'",
        "`",
        "/*",
        "*/",
        "//",
        "#",
        "<",
        ">",
        ";",
        ":",
        "é",
        "\u{2003}",
        "\u{2010}",
        "\u{1f980}",
        "\t",
        "    ",
        "return ",
        "\nfn a() { b() }\n",
        "\ndef a():\n    b()\n",
        "\nfunction a() { return b() }\n",
        "\nclass A {}\n",
        "\nimport b\n",
        " as ",
        " async ",
        "${",
        "=>",
    ]);
    prop_oneof![
        (any::<Index>(), 1..40_usize).prop_map(|(at, bytes)| Edit::Cut(at, bytes)),
        (any::<Index>(), 1..8_usize, any::<Index>())
            .prop_map(|(from, lines, to)| Edit::Copy(from, lines, to)),
        (any::<Index>(), written).prop_map(|(at, text)| Edit::Write(at, text)),
    ]
}

fn edited(text: &mut Vec<u8>, edit: &Edit) {
    let place = |at: &Index, text: &[u8]| at.index(text.len() + 1);
    match edit {
        Edit::Cut(at, bytes) => {
            let start = place(at, text);
            let end = (start + bytes).min(text.len());
            text.drain(start..end);
        }
        Edit::Copy(from, lines, to) => {
            let all: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').collect();
            let from = from.index(all.len() + 1);
            let copied = all[from..(from + lines).min(all.len())].concat();
            let to = all[..to.index(all.len() + 1)].concat().len();
            text.splice(to..to, copied);
        }
        Edit::Write(at, written) => {
            let at = place(at, text);
            text.splice(at..at, written.bytes());
        }
    }
}

#[test]
fn a_character_that_differs_in_its_last_byte_is_another_one() {
    let language = Language::of(Path::new("a.js"));
    let (mut recent, id) = (Recent::default(), "a.js".into());
    for space in ["\u{2003}", "\u{2010}", "\u{2003}"] {
        let text = format!("function f() {{ return{space}b() }}");
        let facts = recent.facts(&id, language, text.as_bytes());
        assert_eq!(facts, Parser::new().facts(language, text.as_bytes()), "{text}");
    }
}

#[test]
fn what_an_edit_breaks_is_parsed_as_a_whole() {
    let language = Language::of(Path::new("a.ts"));
    let before = "function a(x: B): C { b() }\nclass C { d(): void { e() } }\n";
    // Of each, what the parser makes of the errors depends on whether it saw the text before.
    for (part, now) in [(": C", "{C"), ("() }\n", "/*\n")] {
        let (mut recent, id) = (Recent::default(), "a.ts".into());
        recent.facts(&id, language, before.as_bytes());
        let text = before.replacen(part, now, 1);
        let facts = recent.facts(&id, language, text.as_bytes());
        assert_eq!(facts, Parser::new().facts(language, text.as_bytes()), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn an_edited_text_says_what_it_says_to_who_never_saw_it(
        source in prop::sample::select(&SOURCES[..]),
        edits in prop::collection::vec(prop::collection::vec(edit_of_text(), 1..3), 1..12),
    ) {
        let (name, text) = source;
        let language = Language::of(Path::new(name));
        let (mut recent, mut text, id) = (Recent::default(), text.as_bytes().to_vec(), name.into());
        recent.facts(&id, language, &text);
        for edits in edits {
            let before = text.clone();
            for edit in &edits {
                edited(&mut text, edit);
            }
            let facts = recent.facts(&id, language, &text);
            prop_assert_eq!(facts, Parser::new().facts(language, &text));
            // Who writes it leaves few errors behind.
            if recent.files.is_empty() {
                text = before;
                recent.facts(&id, language, &text);
            }
        }
    }
}

#[test]
fn what_changed_last_is_kept_and_no_more_than_there_is_room_for() {
    let mut recent = Recent::default();
    let language = Language::of(Path::new("a.py"));
    let mut add = |name: &str, text: &[u8]| {
        recent.facts(&name.into(), language, text);
        let names = recent.files.iter().map(|file| file.id.to_string()).collect::<Vec<_>>();
        assert_eq!(recent.bytes, recent.files.iter().map(|file| file.text.len()).sum::<usize>());
        names
    };
    for number in 0..MOST_FILES {
        add(&number.to_string(), b"a = 1\n");
    }
    add("0", b"a = 2\n");
    let names = add("new", b"a = 1\n");
    assert_eq!((names.len(), &*names[0], &*names[MOST_FILES - 2]), (MOST_FILES, "2", "0"));
    let large = b"#".repeat(MOST_BYTES - 6);
    assert_eq!(add("large", &large), ["new", "large"].map(String::from)[..]);
}
