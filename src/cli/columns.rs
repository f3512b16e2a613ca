//! Text in the columns of a terminal: cut, and wrapped.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Cuts a text to `room` columns of a terminal.
pub(super) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let (mut kept, mut left) = (String::new(), room.saturating_sub(1));
    for char in text.chars() {
        let width = char.width().unwrap_or(0);
        if width > left {
            break;
        }
        left -= width;
        kept.push(char);
    }
    kept.push('…');
    kept
}

/// Cuts a text to `room` columns as [`cut`] does, behind a word if that leaves half of the room or more.
pub(super) fn cut_words(text: &str, room: usize) -> String {
    let short = cut(text, room);
    let kept = match short.strip_suffix('…') {
        Some(kept) if short != text => kept,
        _ => return short,
    };
    if text[kept.len()..].starts_with(' ') {
        return short;
    }
    match kept.rfind(' ') {
        Some(at) if kept[..at].width() * 2 >= room => format!("{}…", kept[..at].trim_end()),
        _ => short,
    }
}

/// Wraps a text at `columns`: at blanks, and inside longer words.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut width) = (String::new(), 0);
    // The position after the last blank of the line.
    let mut blank = None;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if width + wide > columns && !line.is_empty() {
            let rest = match blank.take() {
                Some(at) if c != ' ' => line.split_off(at),
                _ => String::new(),
            };
            lines.push(line.trim_end().to_owned());
            width = rest.width();
            line = rest;
            if c == ' ' && line.is_empty() {
                continue;
            }
        }
        line.push(c);
        width += wide;
        if c == ' ' {
            blank = Some(line.len());
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_never_too_wide() {
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("the cart's total is here", 10), ["the cart's", "total is", "here"]);
        assert_eq!(wrap("src/very/long/path.rs x", 10), ["src/very/l", "ong/path.r", "s x"]);
        assert_eq!(wrap("日本語のテキスト", 6), ["日本語", "のテキ", "スト"]);
        for columns in 2..30 {
            for line in wrap("a bc  def ghij 日本 klmnopqrstuvw", columns) {
                assert!(line.width() <= columns, "{columns}: {line:?}");
            }
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!((cut("ui", 5), cut("orchestrator", 5)), ("ui".into(), "orch…".into()));
        assert_eq!(cut("日本", 3), "日…");
    }

    #[test]
    fn words_are_left_out_whole() {
        assert_eq!(cut_words("round the cart's total", 22), "round the cart's total");
        assert_eq!(cut_words("round the cart's total", 19), "round the cart's…");
        assert_eq!(cut_words("round the cart's total", 17), "round the cart's…");
        assert_eq!(cut_words("round the cart's total", 12), "round the…");
        assert_eq!(cut_words("in src/very/long/path.rs", 12), "in src/very…");
        assert_eq!(cut_words("ends here…", 20), "ends here…");
    }
}
