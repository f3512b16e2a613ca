//! A QR code in a terminal: two rows of modules in a line of half blocks.

use anstyle::{Ansi256Color, Style};
use qrcode::{Color, EcLevel, QrCode};

/// Modules around the code that stay light. The standard has four; two do on a screen, and leave room for a terminal of 24
/// lines.
const QUIET: usize = 2;

/// White on black, in the colours that no theme changes: readers want a dark code on light ground.
const COLORS: Style = Style::new()
    .fg_color(Some(anstyle::Color::Ansi256(Ansi256Color(231))))
    .bg_color(Some(anstyle::Color::Ansi256(Ansi256Color(16))));

/// A code as it is printed.
pub(super) struct DrawnCode {
    pub(super) text: String,
    pub(super) columns: usize,
}

/// Draws a text; None if it is too long for a code.
pub(super) fn drawn(text: &str) -> Option<DrawnCode> {
    // A screen is not torn or stained: the lowest level makes the code small.
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let (width, modules) = (code.width(), code.to_colors());
    let columns = width + 2 * QUIET;
    let is_light = |x: usize, y: usize| {
        let inside = |at: usize| at.checked_sub(QUIET).filter(|at| *at < width);
        let dark = inside(x).zip(inside(y)).map(|(x, y)| modules[y * width + x] == Color::Dark);
        !dark.unwrap_or(false)
    };
    let line = |y: usize| {
        let blocks: String = (0..columns)
            .map(|x| match (is_light(x, y), is_light(x, y + 1)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            })
            .collect();
        format!("{COLORS}{blocks}{COLORS:#}")
    };
    let lines: Vec<_> = (0..columns).step_by(2).map(line).collect();
    Some(DrawnCode { text: lines.join("\n"), columns })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LINK: &str = "https://laptop.tail1234.ts.net/enter?link=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_code_has_light_around_it_and_the_modules_of_the_text() {
        let drawn = drawn(LINK).unwrap();
        let text = anstream::adapter::strip_str(&drawn.text).to_string();
        let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
        assert!(drawn.columns <= 80 && lines.len() < 24, "{} by {}", drawn.columns, lines.len());
        assert!(lines.iter().all(|line| line.len() == drawn.columns));
        let edge = |line: &[char]| line.iter().all(|block| *block == '█');
        assert!(edge(&lines[0]), "{text}");
        assert!(lines.iter().all(|line| edge(&line[..QUIET]) && edge(&line[line.len() - QUIET..])));
        // The modules, read back from the blocks.
        let code = QrCode::with_error_correction_level(LINK, EcLevel::L).unwrap();
        let (width, modules) = (code.width(), code.to_colors());
        for (at, module) in modules.iter().enumerate() {
            let (x, y) = (at % width + QUIET, at / width + QUIET);
            let light = if y % 2 == 0 { ['█', '▀'] } else { ['█', '▄'] };
            assert_eq!(!light.contains(&lines[y / 2][x]), *module == Color::Dark, "{x}, {y}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_has_no_code() {
        assert!(drawn(&"x".repeat(5_000)).is_none());
    }
}
