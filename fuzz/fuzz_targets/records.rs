//! Bytes of a plugin as records: what is read, is read again as it was after it is written.

#![no_main]

use eisen_plugin::records;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read: Vec<_> = records(bytes).collect();
    assert!(read.iter().rev().skip(1).all(Result::is_ok), "an error is the end");
    let read: Vec<_> = read.into_iter().filter_map(Result::ok).collect();
    let mut written = Vec::new();
    read.iter().for_each(|record| record.write(&mut written));
    let again: Result<Vec<_>, _> = records(&written).collect();
    assert_eq!(again.as_deref(), Ok(&read[..]));
});
