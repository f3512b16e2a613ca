//! Reads JSON as it comes, in pieces of any size, without keeping it: values are handed on with the names above them.
//! Memory is constant, whatever the text is. It is no judge: of what is not JSON it finds what it can.

use memchr::memchr2;

use super::keys::Key;

/// Objects and arrays in one another that are followed; in what is deeper nothing is found until the text ends.
const DEEPEST: u32 = 128;

/// Names above a value that are known.
const NAMED: usize = 6;

/// Bytes that are kept of a name, a number or a text. A longer name is none of those that mean something.
const KEPT: usize = 256;

/// A value without parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar<'a> {
    /// A text: its first bytes as they stand there, if its name is one whose text is kept; and how many it has.
    Text {
        /// At most [`KEPT`].
        start: &'a [u8],
        /// Bytes between the quotes.
        bytes: u64,
    },
    /// A number, `true`, `false` or `null`.
    Bare(&'a [u8]),
}

/// Whoever is told of the values.
pub(super) trait Finder {
    /// A value, and the names above it, [`NAMED`] of them at most. `is_exact`: there are no more.
    fn found(&mut self, path: &[Key], is_exact: bool, value: Scalar<'_>);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between tokens.
    Between,
    /// In a text; `is_escaped`: behind a backslash.
    Text { is_name: bool, is_escaped: bool },
    /// In a number or a word.
    Bare,
    /// Too deep, or closed otherwise than opened.
    Lost,
}

/// A reader of JSON in pieces.
pub(super) struct Scan {
    state: State,
    depth: u32,
    /// A bit for each level, the innermost lowest: whether it is an object.
    objects: u128,
    path: [Key; NAMED],
    is_name_next: bool,
    kept: [u8; KEPT],
    length: u64,
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            state: State::Between,
            depth: 0,
            objects: 0,
            path: [Key::Other; NAMED],
            is_name_next: false,
            kept: [0; KEPT],
            length: 0,
        }
    }
}

impl Scan {
    /// Begins anew.
    pub(super) fn reset(&mut self) {
        self.state = State::Between;
        self.depth = 0;
        self.objects = 0;
        self.is_name_next = false;
    }

    /// Reads the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8], finder: &mut impl Finder) {
        while let Some(&first) = bytes.first() {
            match self.state {
                State::Lost => return,
                State::Between => bytes = self.between(bytes),
                State::Bare if is_bare(first) => {
                    self.keep(&bytes[..1]);
                    bytes = &bytes[1..];
                }
                State::Bare => {
                    self.state = State::Between;
                    let known = self.names();
                    let value = Scalar::Bare(&self.kept[..self.kept_len()]);
                    finder.found(&self.path[..known], self.is_exact(), value);
                }
                State::Text { is_name, is_escaped: true } => {
                    self.keep(&bytes[..1]);
                    self.state = State::Text { is_name, is_escaped: false };
                    bytes = &bytes[1..];
                }
                State::Text { is_name, is_escaped: false } => {
                    bytes = self.text(is_name, bytes, finder);
                }
            }
        }
    }

    /// Reads on in a text; returns what is behind.
    fn text<'a>(&mut self, is_name: bool, bytes: &'a [u8], finder: &mut impl Finder) -> &'a [u8] {
        let Some(end) = memchr2(b'"', b'\\', bytes) else {
            self.keep_text(is_name, bytes);
            return &[];
        };
        if bytes[end] == b'\\' {
            self.keep_text(is_name, &bytes[..=end]);
            self.state = State::Text { is_name, is_escaped: true };
            return &bytes[end + 1..];
        }
        self.keep_text(is_name, &bytes[..end]);
        self.state = State::Between;
        let known = self.names();
        if is_name {
            let is_whole = self.length <= KEPT as u64;
            let name = &self.kept[..self.kept_len()];
            let key = if is_whole { Key::of(name) } else { Key::Other };
            if let Some(place) = self.innermost() {
                self.path[place] = key;
            }
        } else {
            let kept = if self.is_kept() { self.kept_len() } else { 0 };
            let value = Scalar::Text { start: &self.kept[..kept], bytes: self.length };
            finder.found(&self.path[..known], self.is_exact(), value);
        }
        &bytes[end + 1..]
    }

    /// Reads on to the next text, number or word; returns what is behind its first byte.
    fn between<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes.iter();
        while self.state == State::Between
            && let Some(&byte) = rest.next()
        {
            self.step(byte);
        }
        rest.as_slice()
    }

    #[inline]
    fn step(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => self.open(byte == b'{'),
            b'}' | b']' => self.close(byte == b'}'),
            b',' => self.is_name_next = self.is_in_object(),
            b':' => self.is_name_next = false,
            b'"' => {
                self.length = 0;
                self.state = State::Text { is_name: self.is_name_next, is_escaped: false };
            }
            byte if is_bare(byte) => {
                self.length = 0;
                self.state = State::Bare;
                self.keep(&[byte]);
            }
            _ => {}
        }
    }

    fn open(&mut self, is_object: bool) {
        if self.depth == DEEPEST {
            self.state = State::Lost;
            return;
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(is_object);
        self.is_name_next = is_object;
        if let Some(place) = self.innermost() {
            self.path[place] = if is_object { Key::Other } else { Key::Item };
        }
    }

    fn close(&mut self, is_object: bool) {
        if self.depth == 0 || self.is_in_object() != is_object {
            self.state = State::Lost;
            return;
        }
        self.depth -= 1;
        self.objects >>= 1;
        self.is_name_next = false;
    }

    fn is_in_object(&self) -> bool {
        self.depth > 0 && self.objects & 1 == 1
    }

    /// Where the name of the innermost level stands.
    fn innermost(&self) -> Option<usize> {
        let place = usize::try_from(self.depth).ok()?.checked_sub(1)?;
        (place < NAMED).then_some(place)
    }

    fn names(&self) -> usize {
        usize::try_from(self.depth).map_or(NAMED, |depth| depth.min(NAMED))
    }

    fn is_exact(&self) -> bool {
        self.depth as usize <= NAMED
    }

    /// Whether the text of the member that is read is kept.
    fn is_kept(&self) -> bool {
        self.innermost().is_some_and(|place| self.path[place].is_kept())
    }

    fn keep_text(&mut self, is_name: bool, bytes: &[u8]) {
        if is_name || self.is_kept() {
            self.keep(bytes);
        } else {
            self.length += bytes.len() as u64;
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let from = self.kept_len();
        let room = (KEPT - from).min(bytes.len());
        self.kept[from..from + room].copy_from_slice(&bytes[..room]);
        self.length += bytes.len() as u64;
    }

    fn kept_len(&self) -> usize {
        usize::try_from(self.length).map_or(KEPT, |length| length.min(KEPT))
    }
}

/// Whether a byte is one of a number or a word.
fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct All(Vec<(Vec<Key>, String)>);

    impl Finder for All {
        fn found(&mut self, path: &[Key], is_exact: bool, value: Scalar<'_>) {
            let value = match value {
                Scalar::Text { start, bytes } => {
                    format!("{}/{bytes}", String::from_utf8_lossy(start))
                }
                Scalar::Bare(bare) => String::from_utf8_lossy(bare).into_owned(),
            };
            if is_exact {
                self.0.push((path.to_vec(), value));
            }
        }
    }

    fn all(pieces: &[&[u8]]) -> Vec<(Vec<Key>, String)> {
        let (mut scan, mut all) = (Scan::default(), All::default());
        for piece in pieces {
            scan.feed(piece, &mut all);
        }
        all.0
    }

    #[test]
    fn values_are_found_with_the_names_above_them_however_the_text_is_torn() {
        let text = br#"{"model":"m\"x","a":[1,{"usage":{"cost":-1.5e3}}],"usage":{"input_tokens":7} ,"c":null}"#;
        let whole = all(&[text]);
        assert_eq!(
            whole,
            [
                (vec![Key::Model], "m\\\"x/4".to_owned()),
                (vec![Key::Other, Key::Item], "1".to_owned()),
                (vec![Key::Other, Key::Item, Key::Usage, Key::Cost], "-1.5e3".to_owned()),
                (vec![Key::Usage, Key::InputTokens], "7".to_owned()),
                (vec![Key::Other], "null".to_owned()),
            ]
        );
        for at in 0..text.len() {
            assert_eq!(all(&[&text[..at], &text[at..]]), whole, "torn at {at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(all(&bytes), whole);
    }

    #[test]
    fn what_is_too_deep_or_closed_wrongly_ends_the_search() {
        let deep = [&b"["[..]; 200].concat();
        assert!(all(&[&deep, b"1"]).is_empty());
        assert!(all(&[b"{]", br#"{"model":"x"}"#]).is_empty());
        let in_bound = [&b"["[..]; 100].concat();
        let closed = [&b"]"[..]; 100].concat();
        let found = all(&[&in_bound, &closed, br#"{"model":"x"}"#]);
        assert_eq!(found, [(vec![Key::Model], "x/1".to_owned())]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_the_same_way_in_any_pieces(
            bytes in proptest::collection::vec(
                proptest::sample::select(&br#"{}[]",:\1ausge "#[..]), 0..200),
            at in 0_usize..200,
        ) {
            let at = at.min(bytes.len());
            proptest::prop_assert_eq!(all(&[&bytes]), all(&[&bytes[..at], &bytes[at..]]));
        }
    }
}
