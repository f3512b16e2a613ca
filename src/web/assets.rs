//! The files of the page, which are part of the program.

use std::io::Write as _;

use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::Embed;

#[derive(Embed)]
#[folder = "src/web/page/"]
struct PageFiles;

/// Answers with a file of the page.
pub(super) fn answer(path: &str, headers: &HeaderMap) -> Response {
    let Some((file, kind)) = PageFiles::get(path).zip(content_type(path)) else {
        return (StatusCode::NOT_FOUND, "there is no such page").into_response();
    };
    let mut answer =
        ([(CONTENT_TYPE, kind), (VARY, "accept-encoding")], file.data.clone()).into_response();
    if let Some(packed) = takes_gzip(headers).then(|| gzip(&file.data)).flatten() {
        *answer.body_mut() = packed.into();
        answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    answer
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

/// The files are small: packing them anew each time takes a millisecond.
fn gzip(data: &[u8]) -> Option<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(data).ok()?;
    packer.finish().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
        let script = PageFiles::get("format.js").unwrap().data;
        let script = std::str::from_utf8(&script).unwrap();
        assert!(script.contains(&format!("/[{class}]/gu")), "format.js lacks /[{class}]/gu");
    }

    #[test]
    fn the_page_answers_what_the_team_takes_answers_for() {
        let script = PageFiles::get("inbox/card-view.js").unwrap().data;
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
    fn the_whole_page_weighs_little() {
        let files: Vec<_> = PageFiles::iter().collect();
        assert!(files.iter().any(|file| file == "index.html"));
        let packed =
            files.iter().map(|file| gzip(&PageFiles::get(file).unwrap().data).unwrap().len());
        let weight: usize = packed.sum();
        assert!(weight < 300 * 1024, "{weight} bytes");
        for file in &files {
            assert!(content_type(file).is_some(), "{file} would not be served");
        }
    }
}
