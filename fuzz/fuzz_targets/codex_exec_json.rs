//! Any lines, for the plugin: those of `tests/*.transcript` are a good corpus.

#![no_main]

use codex_exec_json::CodexExecJson;
use eisen_plugin::testing::feed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| feed::<CodexExecJson>("{}", bytes));
