//! Any lines, for the plugin, and any configuration: what stands before the first NUL, if there is
//! one.

#![no_main]

use eisen_plugin::testing::feed;
use libfuzzer_sys::fuzz_target;
use text_log::TextLog;

const TOOL: &str = include_str!("../../plugins/text-log/tests/tool.json");

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |&byte| byte == 0);
    let first = parts.next().unwrap_or_default();
    match (parts.next(), str::from_utf8(first)) {
        (Some(lines), Ok(config)) => feed::<TextLog>(config, lines),
        _ => feed::<TextLog>(TOOL, bytes),
    }
});
