//! Each mistake of a plugin or its host at the interface is an error that names it.

#![allow(clippy::unwrap_used)]

use std::ptr::{null, null_mut};

use super::*;
use crate::records;

/// Panics, or does what the line says.
struct Odd;

impl Extractor for Odd {
    const DESCRIPTION: Description =
        Description { name: "odd", version: "1", protocols: &["one", "two"] };
    const GATES: bool = true;

    fn create(config: &str) -> Result<Self, String> {
        match config {
            "panic" => panic!("no {config}"),
            "fail" => Err("it may not".to_owned()),
            _ => Ok(Self),
        }
    }

    fn observe(
        &mut self,
        direction: Direction,
        line: &[u8],
        records: &mut Records<'_>,
    ) -> Result<(), String> {
        match line {
            b"panic" => panic!("a word"),
            b"wordless" => std::panic::panic_any(7),
            b"index" => records.text(&line[line.len()..][0].to_string()),
            b"fail" => {
                records.text("before");
                return Err("after all not".to_owned());
            }
            _ => records.text(&format!("{direction:?} {}", line.len())),
        }
        Ok(())
    }

    fn self_test() -> Result<(), String> {
        panic!("it never works")
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        panic!("not even this works");
    }
}

const TABLE: abi::Plugin = Border::<Odd>::TABLE;

/// Returns a call's result and the texts of its records.
fn call(call: impl FnOnce(*const Output) -> i32) -> (i32, Vec<String>) {
    unsafe extern "C" fn put(host: *mut c_void, data: *const u8, length: usize) -> i32 {
        // SAFETY: it is called below, with valid arguments.
        let bytes = unsafe { std::slice::from_raw_parts(data, length) };
        unsafe { &mut *host.cast::<Vec<u8>>() }.extend(bytes);
        0
    }
    let mut bytes: Vec<u8> = Vec::new();
    let output = Output { host: (&raw mut bytes).cast(), put: Some(put) };
    let status = call(&raw const output);
    let text = |record| match record {
        Ok(Record::Error { body } | Record::Text { body, .. }) => body.into_owned(),
        other => format!("{other:?}"),
    };
    (status, records(&bytes).map(text).collect())
}

fn bytes(text: &[u8]) -> Bytes {
    Bytes { data: text.as_ptr(), length: text.len() }
}

fn error(why: &str) -> (i32, Vec<String>) {
    (1, vec![why.to_owned()])
}

fn instance() -> *mut c_void {
    let mut instance = null_mut();
    // SAFETY: as the header has it; so everywhere below, but for what is wrong on purpose.
    let made = call(|output| unsafe { create::<Odd>(bytes(b"{}"), &raw mut instance, output) });
    assert_eq!(made, (0, vec![]));
    instance
}

fn observed(instance: *mut c_void, direction: u32, line: Bytes) -> (i32, Vec<String>) {
    call(|output| unsafe { observe::<Odd>(instance, direction, line, output) })
}

#[test]
fn a_panic_is_an_error_and_what_follows_is_read() {
    let instance = instance();
    let line = |text: &[u8]| observed(instance, abi::TO_CLIENT, bytes(text));
    assert_eq!(line(b"panic"), error("it panicked: a word"));
    assert_eq!(line(b"wordless"), error("it panicked: without a word"));
    assert!(line(b"index").1[0].starts_with("it panicked: index out of bounds"));
    assert_eq!(line(b"fail"), (1, vec!["before".to_owned(), "after all not".to_owned()]));
    assert_eq!(line(b"good"), (0, vec!["ToClient 4".to_owned()]));
    // Nor does one leave a destructor.
    unsafe { destroy::<Odd>(instance) };
    unsafe { destroy::<Odd>(null_mut()) };

    let tested = call(|output| unsafe { self_test::<Odd>(output) });
    assert_eq!(tested, error("it panicked: it never works"));
    for (config, why) in [("panic", "it panicked: no panic"), ("fail", "it may not")] {
        let mut made = null_mut();
        let outcome = call(|output| unsafe {
            create::<Odd>(bytes(config.as_bytes()), &raw mut made, output)
        });
        assert_eq!(outcome, error(why));
        assert!(made.is_null());
    }
}

#[test]
fn what_a_host_passes_wrongly_is_an_error() {
    let instance = instance();
    let nowhere = Bytes { data: null(), length: 0 };
    assert_eq!(observed(instance, abi::TO_AGENT, nowhere), (0, vec!["ToAgent 0".to_owned()]));
    assert_eq!(observed(instance, 7, bytes(b"line")), error("there is no direction 7"));
    assert_eq!(
        observed(null_mut(), abi::TO_CLIENT, bytes(b"line")),
        error("the host passed no instance")
    );
    let made = call(|output| unsafe { create::<Odd>(bytes(b"{}"), null_mut(), output) });
    assert_eq!(made.1[0], "the host has no place for an instance");

    let odd = bytes(b"\xff");
    let not_text = error("the host passed a text that is not UTF-8");
    let mut place = null_mut();
    unsafe {
        assert_eq!(call(|output| create::<Odd>(odd, &raw mut place, output)), not_text);
        assert_eq!(call(|output| deny::<Odd>(instance, odd, nowhere, output)), not_text);
        assert_eq!(call(|output| deny::<Odd>(instance, nowhere, odd, output)), not_text);
        assert_eq!(call(|output| start::<Odd>(instance, odd, output)), not_text);
        assert_eq!(call(|output| prompt::<Odd>(instance, odd, output)), not_text);
        assert_eq!(call(|output| allow::<Odd>(instance, odd, output)), not_text);
        // There is no host to report to.
        let nobody = Output { host: null_mut(), put: None };
        for output in [null(), &raw const nobody] {
            let line = bytes(b"line");
            assert_eq!(observe::<Odd>(instance, abi::TO_CLIENT, line, output), 1);
            assert_eq!(describe::<Odd>(output), 1);
        }
        destroy::<Odd>(instance);
    }
}

#[test]
fn a_plugin_is_told_that_its_host_takes_no_more() {
    unsafe extern "C" fn full(_: *mut c_void, _: *const u8, _: usize) -> i32 {
        1
    }
    let instance = instance();
    let output = Output { host: null_mut(), put: Some(full) };
    // SAFETY: as above.
    unsafe {
        assert_eq!(observe::<Odd>(instance, abi::TO_CLIENT, bytes(b"x"), &raw const output), 1);
        destroy::<Odd>(instance);
    }
}

#[test]
fn its_table_tells_what_it_can() {
    struct Quiet;
    impl Extractor for Quiet {
        const DESCRIPTION: Description =
            Description { name: "quiet", version: "1", protocols: &[] };
        const DRIVES: bool = true;

        fn create(_: &str) -> Result<Self, String> {
            Ok(Self)
        }

        fn observe(&mut self, _: Direction, _: &[u8], _: &mut Records<'_>) -> Result<(), String> {
            Ok(())
        }
    }
    let table = Border::<Quiet>::TABLE;
    assert_eq!((TABLE.features, table.features), (abi::GATES, abi::DRIVES));
    assert_eq!((TABLE.abi, TABLE.size as usize), (abi::ABI, size_of::<abi::Plugin>()));
}
