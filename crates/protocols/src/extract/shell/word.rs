//! Shell words before expansion, and the expansion of braces. Knows no operators and no programs.

/// Words that the braces of one word may expand to; the rest stays unexpanded.
const MOST_WORDS: usize = 256;
/// Parts of the longest word to expand.
const MOST_PARTS: usize = 1024;

/// A part of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WordPart {
    Text(String),
    /// `$NAME` or `${NAME}`.
    Variable(String),
    /// `~`: the home folder.
    Home,
    /// An unquoted `*`, `?` or `[`.
    Glob(char),
    /// An unquoted `{`, `,` or `}`.
    Brace(char),
    /// Any other expansion.
    Unknown,
}

/// One word, with its quoting undone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Word {
    pub(super) parts: Vec<WordPart>,
    pub(super) quoted: bool,
}

impl Word {
    pub(super) fn push_str(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(WordPart::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.parts.push(WordPart::Text(text.to_owned())),
        }
    }

    pub(super) fn push(&mut self, c: char) {
        self.push_str(c.encode_utf8(&mut [0; 4]));
    }

    /// The word as written, without quotes: the delimiter of a here-document.
    pub(super) fn source(&self) -> String {
        let mut source = String::new();
        for part in &self.parts {
            match part {
                WordPart::Text(text) => source.push_str(text),
                WordPart::Variable(name) => {
                    source.push('$');
                    source.push_str(name);
                }
                WordPart::Home => source.push('~'),
                WordPart::Glob(c) | WordPart::Brace(c) => source.push(*c),
                WordPart::Unknown => {}
            }
        }
        source
    }

    /// Expands the braces; returns the word itself if it has none.
    pub(super) fn braces_expanded(self) -> Vec<Self> {
        let mut done = Vec::new();
        let mut todo = vec![self];
        while let Some(word) = todo.pop() {
            match word.alternatives() {
                Some(words) if todo.len() + done.len() + words.len() <= MOST_WORDS => {
                    // The last is taken first.
                    todo.extend(words.into_iter().rev());
                }
                _ => done.push(word),
            }
        }
        done
    }

    /// Expands the first pair of braces with a comma.
    fn alternatives(&self) -> Option<Vec<Self>> {
        (self.parts.len() <= MOST_PARTS).then_some(())?;
        let (open, commas, close) = self.first_braces()?;
        let mut words = Vec::new();
        let mut from = open + 1;
        for to in commas.into_iter().chain([close]) {
            let mut parts = self.parts[..open].to_vec();
            parts.extend_from_slice(&self.parts[from..to]);
            parts.extend_from_slice(&self.parts[close + 1..]);
            words.push(Self { parts, quoted: self.quoted });
            from = to + 1;
        }
        Some(words)
    }

    fn first_braces(&self) -> Option<(usize, Vec<usize>, usize)> {
        // Each open brace with its commas.
        let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut first: Option<(usize, Vec<usize>, usize)> = None;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                WordPart::Brace('{') => open.push((at, Vec::new())),
                WordPart::Brace(',') => {
                    if let Some((_, commas)) = open.last_mut() {
                        commas.push(at);
                    }
                }
                WordPart::Brace(_) => {
                    if let Some((start, commas)) = open.pop()
                        && !commas.is_empty()
                        && first.as_ref().is_none_or(|(earliest, ..)| start < *earliest)
                    {
                        first = Some((start, commas, at));
                    }
                }
                _ => {}
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Vec<String> {
        let mut word = Word::default();
        for c in text.chars() {
            if "{,}".contains(c) { word.parts.push(WordPart::Brace(c)) } else { word.push(c) }
        }
        word.braces_expanded().iter().map(Word::source).collect()
    }

    #[test]
    fn braces_expand_as_in_bash() {
        assert_eq!(expanded("a/{b,c}.rs"), ["a/b.rs", "a/c.rs"]);
        assert_eq!(expanded("{a,b}{1,2}"), ["a1", "a2", "b1", "b2"]);
        assert_eq!(expanded("x{a,{b,c}}"), ["xa", "xb", "xc"]);
        assert_eq!(expanded("{a}"), ["{a}"]);
        assert_eq!(expanded("{"), ["{"]);
        assert_eq!(expanded("a,b"), ["a,b"]);
    }

    #[test]
    fn braces_are_bounded() {
        assert!(expanded(&"{a,b}".repeat(64)).len() <= MOST_WORDS);
        assert!(expanded(&"{,".repeat(10_000)).len() <= MOST_WORDS);
    }
}
