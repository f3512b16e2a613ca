//! The files of the page, which are part of the program.

// Else the build script packs them.
#[cfg(any(debug_assertions, test))]
mod packed;

use std::borrow::Cow;
use std::io::Read as _;

use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use flate2::read::GzDecoder;

#[cfg(any(debug_assertions, test))]
use self::packed::{gzip, sent};

/// Declares the files below `crates/web/src/web/page`, in the order of their paths, and how their contents are found.
macro_rules! page_files {
    ($($path:literal)*) => {
        const PATHS: &[&str] = &[$($path),*];

        /// The file at this place of `PATHS`, as it is sent, packed. A build for development reads it from its
        /// folder, so that a change of the page needs no build.
        #[cfg(debug_assertions)]
        fn content(at: usize) -> Option<Cow<'static, [u8]>> {
            gzip(&sent(PATHS[at], Cow::Owned(file(PATHS[at])?))).map(Cow::Owned)
        }

        /// The file at this place of `PATHS`, as it is sent, packed.
        #[cfg(not(debug_assertions))]
        fn content(at: usize) -> Option<Cow<'static, [u8]>> {
            const CONTENTS: &[&[u8]] =
                &[$(include_bytes!(concat!(env!("OUT_DIR"), "/page/", $path, ".gz"))),*];
            Some(Cow::Borrowed(CONTENTS[at]))
        }
    };
}

page_files! {
    "ansi.js"
    "app.js"
    "code.js"
    "css/base.css"
    "css/history.css"
    "css/inbox.css"
    "css/map.css"
    "css/parts.css"
    "css/review.css"
    "css/shell.css"
    "css/team.css"
    "css/tokens.css"
    "css/transcript.css"
    "dialog.js"
    "diff-view.js"
    "diff.js"
    "dom.js"
    "enter.js"
    "focus.js"
    "format.js"
    "graph.js"
    "header.js"
    "heat.js"
    "help.js"
    "history/blame.js"
    "history/cost.js"
    "history/history.js"
    "history/pages.js"
    "history/replay.js"
    "history/search.js"
    "history/sums.js"
    "history/timeline.js"
    "history/turns.js"
    "icon-192.png"
    "icon-512.png"
    "icon.svg"
    "icons.js"
    "inbox/card-view.js"
    "inbox/cards.js"
    "inbox/decide.js"
    "inbox/inbox.js"
    "inbox/latest.js"
    "inbox/several.js"
    "index.html"
    "keys.js"
    "lists.js"
    "log.js"
    "manifest.webmanifest"
    "map/camera.js"
    "map/detail.js"
    "map/feed.js"
    "map/flat.js"
    "map/layout.js"
    "map/legend.js"
    "map/map.js"
    "map/overlay.js"
    "map/paint.js"
    "map/slider.js"
    "map/surface.js"
    "map/table.js"
    "map/theme.js"
    "map/zones.js"
    "markdown-parse.js"
    "markdown.js"
    "marks.js"
    "notify.js"
    "review/branch.js"
    "review/branches.js"
    "review/changes.js"
    "review/hunks.js"
    "review/review.js"
    "state.js"
    "team/activity.js"
    "team/agent.js"
    "team/block-view.js"
    "team/blocks.js"
    "team/cards.js"
    "team/composer.js"
    "team/earlier.js"
    "team/figures.js"
    "team/find.js"
    "team/options.js"
    "team/past.js"
    "team/queue.js"
    "team/screen.js"
    "team/stream.js"
    "team/team.js"
    "team/terminals.js"
    "team/transcript-view.js"
    "team/transcript.js"
    "turns.js"
    "wire.js"
}

/// A file as it is in its folder.
#[cfg(any(test, debug_assertions))]
fn file(path: &str) -> Option<Vec<u8>> {
    std::fs::read(format!("{}/src/web/page/{path}", env!("CARGO_MANIFEST_DIR"))).ok()
}

/// The first page, which names its scripts and styles below `files/`.
const FIRST: &str = "index.html";

/// Answers with a file of the page. `folder`: the folder in which the first page names what it runs. Each file
/// is at its plain path, too.
pub(super) fn answer(path: &str, folder: &str, headers: &HeaderMap) -> Response {
    let path = path.trim_start_matches('/');
    let path = path.strip_prefix(folder).and_then(|below| below.strip_prefix('/')).unwrap_or(path);
    let path = if path.is_empty() { FIRST } else { path };
    let packed = PATHS.binary_search(&path).ok().and_then(content);
    let Some((packed, kind)) = packed.zip(content_type(path)) else {
        return (StatusCode::NOT_FOUND, "there is no such page").into_response();
    };
    let headings = [(CONTENT_TYPE, kind), (VARY, "accept-encoding")];
    if path == FIRST {
        let page = String::from_utf8_lossy(&unpacked(&packed))
            .replace("\"files/", &format!("\"/{folder}/"));
        return (headings, page).into_response();
    }
    if !takes_gzip(headers) {
        return (headings, unpacked(&packed)).into_response();
    }
    let mut answer = (headings, packed).into_response();
    answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    // What this program packed is whole.
    let _ = GzDecoder::new(packed).read_to_end(&mut plain);
    plain
}

fn content_type(path: &str) -> Option<&'static str> {
    Some(match path.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webmanifest" => "application/manifest+json",
        _ => return None,
    })
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| coding.trim() == "gzip")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::packed::is_script;
    use super::*;
    use crate::model::Via;

    #[test]
    fn the_page_marks_the_characters_that_terminals_mark() {
        let class: String = crate::model::UNSEEN
            .iter()
            .map(|(first, last)| match (first.escape_unicode(), last.escape_unicode()) {
                (one, _) if first == last => one.to_string(),
                (first, last) => format!("{first}-{last}"),
            })
            .collect();
        let script = file("format.js").unwrap();
        let script = std::str::from_utf8(&script).unwrap();
        assert!(script.contains(&format!("/[{class}]/gu")), "format.js lacks /[{class}]/gu");
    }

    #[test]
    fn the_page_answers_what_the_team_takes_answers_for() {
        let script = file("inbox/card-view.js").unwrap();
        let script = std::str::from_utf8(&script).unwrap();
        let names = Via::ALL.into_iter().filter(|via| via.is_answerable()).map(Via::as_str);
        let names = format!("{:?}.includes(card.line.via)", names.collect::<Vec<_>>());
        assert!(script.contains(&names), "card-view.js lacks {names}");
        for via in Via::ALL.map(Via::as_str) {
            assert!(
                script.contains(&format!("\n  {via}: \"")),
                "card-view.js has no words for {via}"
            );
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/web/page");
        let there = ignore::WalkBuilder::new(folder).sort_by_file_path(Path::cmp).build();
        let there = there.map(Result::unwrap).filter(|entry| entry.file_type().unwrap().is_file());
        let there: Vec<_> = there
            .map(|entry| entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned())
            .collect();
        let mut paths = PATHS.to_vec();
        assert!(paths.is_sorted());
        paths.sort_by_key(|path| Path::new(*path));
        assert_eq!(there, paths, "name the files of crates/web/src/web/page in `page_files`");
    }

    #[test]
    fn scripts_are_sent_without_comments_and_lines_stay_in_their_place() {
        let text = b"// Owns it.\n\n/**\n * Says\n * it. */\nconst a = \"// no\"; // yes\n  /* one */\n  b();\n";
        let slim = sent("a.js", Cow::Borrowed(text));
        assert_eq!(
            str::from_utf8(&slim).unwrap(),
            "\n\n\n\n\nconst a = \"// no\"; // yes\n\nb();\n"
        );
        assert_eq!(sent("a.css", Cow::Borrowed(b"/* it */")), &b"/* it */"[..]);
        for path in PATHS.iter().filter(|path| is_script(path)) {
            let script = String::from_utf8(file(path).unwrap()).unwrap();
            let comments =
                script.lines().map(str::trim).filter(|line| line.starts_with(['*', '/']));
            let mut ends = comments.filter_map(|line| line.split_once("*/"));
            assert!(ends.all(|(_, behind)| behind.is_empty()), "{path}: code is behind a comment");
        }
    }

    #[test]
    fn the_whole_page_weighs_little() {
        let weight = |path: &&str| gzip(&sent(path, file(path).unwrap().into())).unwrap().len();
        let scripts: usize = PATHS.iter().filter(|path| is_script(path)).map(&weight).sum();
        let all: usize = PATHS.iter().map(weight).sum();
        assert!(scripts < 150 * 1000 && all < 200 * 1024, "{scripts} of {all} bytes");
        for path in PATHS {
            assert!(content_type(path).is_some(), "{path} would not be served");
        }
    }
}
