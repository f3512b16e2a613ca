//! Cuts lists and texts into pages that clients accept uncut.

use serde_json::{Map, Value, json};

use super::ToolError;
use crate::wire::PAGE;

/// Entries in a page of a list.
const ENTRIES: usize = 25;

/// Bytes of a page as JSON: below the bound of a result, which has other fields, too.
const PAGE_BYTES: usize = 32 * 1024;

/// Bytes of a text in one page, as they are.
const TEXT_BYTES: usize = 16 * 1024;

/// Bytes of a list beside a text, as JSON.
const LIST_BYTES: usize = 8 * 1024;

/// Bytes of one text in an entry of a list: enough for the longest path. Longer ones are cut.
const ENTRY_TEXT_BYTES: usize = 4 * 1024;

/// A patch in base64, where it is not UTF-8.
const ENCODED: &str = "diff_bytes";

/// Cuts a text into pages, at ends of lines if possible.
pub fn text_pages(text: &str) -> Vec<&str> {
    let (mut pages, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let most = &rest[..longest_page(rest)];
        let line = most.rfind('\n').filter(|_| most.len() < rest.len()).map(|at| at + 1);
        let (page, behind) = rest.split_at(line.unwrap_or(most.len()));
        pages.push(page);
        rest = behind;
    }
    pages
}

/// The bytes of the longest page that a text can begin with.
fn longest_page(text: &str) -> usize {
    let mut encoded = 0;
    let end = text.char_indices().find(|(at, char)| {
        encoded += match char {
            '"' | '\\' => 2,
            '\0'..=' ' if *char != ' ' => 6,
            char => char.len_utf8(),
        };
        at + char.len_utf8() > TEXT_BYTES || encoded > PAGE_BYTES
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Shows one page of the list `name` in a result; what stands beside it stays.
pub(super) fn page_within(
    name: &str,
    mut result: Map<String, Value>,
    page: u64,
) -> Result<Value, ToolError> {
    let entries = match result.get_mut(name).map(Value::take) {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    };
    if let Value::Object(shown) = page_of_list(name, entries, page)? {
        // A method may count more than it lists.
        let total = result.shift_remove("total");
        result.extend(shown);
        result.extend(total.map(|total| ("total".to_owned(), total)));
    }
    Ok(result.into())
}

/// Shows one page of a list, as `name`.
pub(super) fn page_of_list(name: &str, entries: Vec<Value>, page: u64) -> Result<Value, ToolError> {
    let total = entries.len();
    let mut pages: Vec<(Vec<Value>, usize)> = vec![(Vec::new(), 0)];
    for mut entry in entries {
        cut_texts(&mut entry);
        let mut bytes = entry.to_string().len();
        if bytes > PAGE_BYTES {
            let lists = entry.as_object_mut().into_iter().flat_map(|it| it.values_mut());
            lists.filter_map(Value::as_array_mut).for_each(cut_list);
            bytes = entry.to_string().len();
        }
        match pages.last_mut() {
            Some((page, size)) if page.len() < ENTRIES && *size + bytes <= PAGE_BYTES => {
                page.push(entry);
                *size += bytes;
            }
            _ => pages.push((vec![entry], bytes)),
        }
    }
    // The first page is empty if the first entry is longer than a page.
    pages.retain(|(page, _)| !page.is_empty());
    let count = pages.len().max(1);
    let shown = match index_of(page) {
        at if at < pages.len() => pages.swap_remove(at).0,
        0 => Vec::new(),
        _ => {
            let message = format!("there is no page {page}: the list has {count}");
            return Err(ToolError { code: 404, message });
        }
    };
    Ok(json!({ name: shown, PAGE: page, "pages": count, "total": total }))
}

/// Shows one page of a long text. Lists beside it are cut to one page, and end with a count.
pub(super) fn page_of_text(
    name: &str,
    mut result: Map<String, Value>,
    page: u64,
) -> Result<Value, ToolError> {
    let text = result.get(name).and_then(Value::as_str).unwrap_or_default();
    let pages = text_pages(text);
    let count = pages.len().max(1);
    let shown = match (pages.get(index_of(page)), page) {
        (Some(shown), _) => (*shown).to_owned(),
        (None, 1) => String::new(),
        (None, _) => {
            let message = format!("there is no page {page}: there are {count}");
            return Err(ToolError { code: 404, message });
        }
    };
    result.values_mut().filter_map(Value::as_array_mut).for_each(cut_list);
    // The same text, whole.
    result.shift_remove(ENCODED);
    result.insert(name.to_owned(), shown.into());
    result.insert(PAGE.to_owned(), json!(page));
    result.insert("pages".to_owned(), json!(count));
    Ok(result.into())
}

/// Cuts a list to one page, which ends with a count then.
fn cut_list(list: &mut Vec<Value>) {
    let (total, mut bytes) = (list.len(), 0);
    let fits = list.iter().take(ENTRIES).take_while(|entry| {
        bytes += entry.to_string().len();
        bytes <= LIST_BYTES
    });
    let fits = fits.count();
    list.truncate(fits);
    if total > fits {
        list.push(json!(format!("and {} more", total - fits)));
    }
}

fn index_of(page: u64) -> usize {
    usize::try_from(page).unwrap_or(usize::MAX).saturating_sub(1)
}

fn cut_texts(entry: &mut Value) {
    for text in entry.as_object_mut().into_iter().flat_map(|it| it.values_mut()) {
        if let Value::String(text) = text
            && text.len() > ENTRY_TEXT_BYTES
        {
            text.truncate(text.floor_char_boundary(ENTRY_TEXT_BYTES));
            text.push('…');
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_words_of_one_entry_do_not_hide_the_list() {
        let entry = json!({ "id": "b1", "reason": "\u{1}".repeat(16 * 1024) });
        let (mut seen, mut page) = (0, 1);
        loop {
            let shown = page_of_list("blocked", vec![entry.clone(); 30], page).unwrap();
            assert!(shown.to_string().len() < 48 * 1024, "{}", shown.to_string().len());
            seen += shown["blocked"].as_array().unwrap().len();
            if shown["pages"] == page {
                break;
            }
            page += 1;
        }
        assert_eq!(seen, 30);
        assert_eq!(page_of_list("blocked", Vec::new(), 1).unwrap()["total"], 0);
        assert_eq!(page_of_list("blocked", vec![entry], 2).unwrap_err().code, 404);
    }

    #[test]
    fn a_list_within_a_result_comes_in_pages_beside_the_rest() {
        let task = json!({ "id": "t-1", "reason": "x".repeat(900) });
        let result = json!({ "tasks": vec![task; 100], "cursor": 7, "timed_out": false });
        let shown = page_within("tasks", result.as_object().unwrap().clone(), 4).unwrap();
        assert_eq!((shown["tasks"].as_array().unwrap().len(), &shown["cursor"]), (25, &json!(7)));
        assert_eq!((&shown["pages"], &shown["total"]), (&json!(4), &json!(100)));
        // An entry with a list of its own that no page has room for.
        let callers = vec!["src/a.rs::".repeat(100); 100];
        let found = json!({ "symbols": [{ "symbol": "s", "callers": callers }], "total": 300 });
        let shown = page_within("symbols", found.as_object().unwrap().clone(), 1).unwrap();
        assert!(shown.to_string().len() < PAGE_BYTES);
        assert_eq!(shown["total"], 300);
        let callers = shown["symbols"][0]["callers"].as_array().unwrap();
        assert_eq!(callers.last().unwrap(), "and 92 more");
    }

    #[test]
    fn a_patch_that_is_not_utf_8_is_shown_once() {
        let result = json!({ "diff": "+a\u{fffd}\n", ENCODED: "x".repeat(1 << 20), "files": [] });
        let shown = page_of_text("diff", result.as_object().unwrap().clone(), 1).unwrap();
        assert!(shown.to_string().len() < 1024 && shown["diff"] == "+a\u{fffd}\n");
    }

    proptest! {
        #[test]
        fn pages_are_the_text_and_fit(text in "[a-z\n\u{1}\"é–\u{10000}]{0,9000}", times in 1..8_usize) {
            let text = text.repeat(times);
            let pages = text_pages(&text);
            prop_assert_eq!(pages.concat(), &*text);
            for page in pages {
                prop_assert!(page.len() <= TEXT_BYTES);
                prop_assert!(json!(page).to_string().len() <= PAGE_BYTES + 2);
            }
        }
    }
}
