//! Tests of the page's design: contrast, colours that stay apart, one scale of sizes, and all colours in one file.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Ratios that WCAG 2 asks of text (AA), and of what is no text.
const TEXT: f64 = 4.5;
const MARK: f64 = 3.0;

/// How far the colours of two agents are apart for everybody, in the units of CIE 76: below 10 they look alike side by side.
const APART: f64 = 10.0;

/// Linear light as it is seen with full sight, and without one kind of cones (Machado 2009, full severity).
const SIGHTS: [(&str, [[f64; 3]; 3]); 4] = [
    ("full", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protan",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deutan",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    (
        "tritan",
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ),
];

/// The number of shapes, by which agents of similar colours are told apart.
const SHAPES: usize = 7;

type Colours = BTreeMap<String, [f64; 3]>;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/web/page"))
}

/// The colours of `css/tokens.css`, as linear light: light, and dark.
fn schemes() -> [(&'static str, Colours); 2] {
    let text = fs::read_to_string(folder().join("css/tokens.css")).unwrap();
    let (light, rest) = text.split_once("@media (prefers-color-scheme: dark)").unwrap();
    let dark = rest.split("\n}").next().unwrap();
    let light = colours(light);
    let mut both = light.clone();
    both.extend(colours(dark));
    [("light", light), ("dark", both)]
}

fn colours(text: &str) -> Colours {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("--")?.split_once(": #"));
    let of_hex = |hex: &str| {
        let hex = hex.trim_end_matches(';');
        let part = |at: usize| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        let linear = |it: f64| {
            if it <= 0.04045 { it / 12.92 } else { ((it + 0.055) / 1.055).powf(2.4) }
        };
        [0, 2, 4].map(|at| linear(part(at)))
    };
    lines
        .filter(|(name, _)| !name.starts_with("shadow"))
        .map(|(name, hex)| (name.to_owned(), of_hex(hex)))
        .collect()
}

fn luminance([red, green, blue]: [f64; 3]) -> f64 {
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// A colour in CIE L*a*b*, under the light of day.
fn lab(rgb: [f64; 3]) -> [f64; 3] {
    let [red, green, blue] = rgb.map(|it| it.clamp(0.0, 1.0));
    let x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505;
    let y = luminance([red, green, blue]);
    let z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089;
    let curve = |it: f64| if it > 0.008_856 { it.cbrt() } else { 7.787 * it + 16.0 / 116.0 };
    let [x, y, z] = [x, y, z].map(curve);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn distance(one: [f64; 3], other: [f64; 3], sight: [[f64; 3]; 3]) -> f64 {
    let seen = |colour: [f64; 3]| {
        lab(sight.map(|row| row[0] * colour[0] + row[1] * colour[1] + row[2] * colour[2]))
    };
    let (one, other) = (seen(one), seen(other));
    (0..3).map(|at| (one[at] - other[at]).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn every_text_can_be_read_on_what_it_stands() {
    let surfaces = ["ground", "surface", "raised"];
    let words = ["ink", "dim", "accent", "good", "bad", "wait", "busy"];
    let soft = [
        ("good", "good-soft"),
        ("bad", "bad-soft"),
        ("wait", "wait-soft"),
        ("busy", "accent-soft"),
        ("ink", "accent-soft"),
        ("dim", "accent-soft"),
        ("ink", "plus"),
        ("ink", "minus"),
        ("dim", "plus"),
        ("dim", "minus"),
        ("ink", "mark"),
        ("on-accent", "accent"),
        ("ground", "ink"),
        ("ground", "bad"),
        ("ground", "wait"),
        ("map-ink", "map-folder"),
        ("map-dim", "map-ground"),
        ("map-dim", "map-folder"),
        ("map-ink", "map-file"),
    ];
    for (scheme, all) in schemes() {
        let agents = (0..8).map(|at| format!("agent-{at}"));
        let code = || all.keys().filter(|name| name.starts_with("code-")).cloned();
        let words = words.iter().map(|it| (*it).to_owned()).chain(agents).chain(code());
        let on_surfaces =
            words.flat_map(|word| surfaces.map(|surface| (word.clone(), surface.to_owned())));
        let on_others = soft.map(|(word, on)| (word.to_owned(), on.to_owned()));
        let on_diffs =
            code().flat_map(|word| ["plus", "minus"].map(|on| (word.clone(), on.to_owned())));
        for (word, on) in on_surfaces.chain(on_others).chain(on_diffs) {
            let ratio = contrast(all[&word], all[&on]);
            assert!(
                ratio >= TEXT,
                "{scheme}: --{word} on --{on} has {ratio:.2}, and {TEXT} are needed"
            );
        }
        for (mark, on) in [
            ("accent", "ground"),
            ("accent", "surface"),
            ("map-alarm", "map-ground"),
            ("map-wait", "map-file"),
        ] {
            assert!(contrast(all[mark], all[on]) >= MARK, "{scheme}: --{mark} on --{on}");
        }
    }
}

#[test]
fn agents_are_told_apart_by_everybody() {
    for (scheme, all) in schemes() {
        for one in 0..8 {
            for other in one + 1..8 {
                // Their shapes differ, unless they are as far apart as there are shapes.
                let has_shape = one % SHAPES != other % SHAPES;
                let least = if has_shape { 0.0 } else { APART };
                for (sight, matrix) in SIGHTS {
                    let colour = |at: usize| all[&format!("agent-{at}")];
                    let apart = distance(colour(one), colour(other), matrix);
                    let needed = if sight == "full" { APART } else { least };
                    assert!(
                        apart >= needed,
                        "{scheme}, {sight}: agents {one} and {other} are {apart:.1} apart"
                    );
                }
            }
        }
    }
}

#[test]
fn sizes_and_colours_are_the_tokens() {
    for entry in fs::read_dir(folder().join("css")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let is_tokens = path.ends_with("tokens.css");
        for (at, line) in text.lines().enumerate() {
            let place = format!("{}:{}: {line}", path.display(), at + 1);
            let size = line.split("font-size: ").nth(1).and_then(|it| it.split(';').next());
            let is_scale = size.is_none_or(|it| it.starts_with("var(--text-") || it == "16px");
            assert!(is_scale, "a size beside the scale: {place}");
            // `#0008` is the shade behind a dialog.
            let colour = line.split('#').skip(1).any(|it| {
                let hex: String = it.chars().take_while(char::is_ascii_hexdigit).collect();
                matches!(hex.len(), 3 | 6 | 8) && line.contains(": ") && !line.starts_with('#')
            });
            assert!(
                is_tokens || !colour || line.contains("#0008"),
                "a colour beside the tokens: {place}"
            );
        }
    }
}

#[test]
fn no_text_fades_below_its_contrast() {
    // What can't be used just now, a button that shows where one points, and what a terminal says faintly on its dark ground.
    let may = ["button:disabled", ".block > .copy", ".block:hover > .copy", ".terminal .bold"];
    for entry in fs::read_dir(folder().join("css")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for rule in text.lines().filter(|line| line.contains("opacity:")) {
            assert!(may.iter().any(|it| rule.starts_with(it)), "it fades: {rule}");
        }
    }
}
