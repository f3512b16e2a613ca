//! Owns the method that tells the tokens of code apart. It knows nothing of the team.

use std::path::Path;

use tokio::sync::Semaphore;

use super::{MethodCall, Reply, reply};
use crate::graph::{self, LONGEST_CODE, Language};
use crate::serve::{Refused, blocking};
use crate::wire::{CodeTokens, Highlight, HighlightParams};

/// Texts that are read at a time, whoever sends them.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// Bytes of a path, and of a name of a language.
const LONGEST_PATH: usize = 4 << 10;
const LONGEST_NAME: usize = 256;

pub(super) async fn highlight(
    _: MethodCall<'_>,
    params: HighlightParams,
) -> Result<Reply<Highlight>, Refused> {
    let HighlightParams { language, path, text } = params;
    let (name, path) = (language.unwrap_or_default(), path.unwrap_or_default());
    for (what, length, most) in [
        ("language", name.len(), LONGEST_NAME),
        ("path", path.len(), LONGEST_PATH),
        ("text", text.len(), LONGEST_CODE),
    ] {
        if length > most {
            return Err(Refused::wrong(format!(
                "params.{what}: has {length} bytes, and may have {most}"
            )));
        }
    }
    let language = Language::named(first_word(&name)).or_else(|| Language::of(Path::new(&path)));
    let Some(language) = language else {
        return reply(&CodeTokens { language: None, tokens: Vec::new() });
    };
    let turn = AT_ONCE.acquire().await.map_err(Refused::fault)?;
    let found = blocking(move || {
        // It is read to its end where nobody waits any more.
        let _turn = turn;
        graph::highlight(language, &text)
    })
    .await?;
    let tokens = found.iter().map(|token| (token.start, token.end, token.kind.into()));
    reply(&CodeTokens { language: Some(language.name().into()), tokens: tokens.collect() })
}

/// The language in what stands after a fence: `ts` of `ts title="a"`, `rust` of `rust,ignore`.
fn first_word(fence: &str) -> &str {
    let fence = fence.trim_start().trim_start_matches('{').trim_start_matches('.');
    fence
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}' | ':'))
        .next()
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::first_word;

    #[test]
    fn a_fence_names_its_language_first() {
        for (fence, word) in [
            ("ts", "ts"),
            (" tsx title=\"a b\"", "tsx"),
            ("rust,ignore", "rust"),
            ("{.python .numbered}", "python"),
            ("js{1,3}", "js"),
            ("", ""),
        ] {
            assert_eq!(first_word(fence), word, "{fence}");
        }
    }
}
