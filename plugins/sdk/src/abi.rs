//! `include/eisen_plugin.h` in Rust. The header says what each part means; a test holds the two
//! together.

use std::ffi::c_void;

/// `EISEN_ABI`: the version of the interface.
pub const ABI: u32 = 1;

/// `EISEN_GATES`.
pub const GATES: u64 = 1;
/// `EISEN_DRIVES`.
pub const DRIVES: u64 = 2;

/// `EISEN_TO_AGENT` and `EISEN_TO_CLIENT`.
pub const TO_AGENT: u32 = 0;
pub const TO_CLIENT: u32 = 1;

/// The name of the one function that a plugin exports.
pub const ENTRY: &str = "eisen_plugin_entry";

/// `eisen_bytes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    pub data: *const u8,
    pub length: usize,
}

/// `eisen_output`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub host: *mut c_void,
    pub put: Option<unsafe extern "C" fn(host: *mut c_void, data: *const u8, length: usize) -> i32>,
}

/// `eisen_host`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub size: u32,
    pub abi: u32,
    pub features: u64,
}

/// A function without an instance, which puts its records into the output.
pub type Describe = unsafe extern "C" fn(output: *const Output) -> i32;
/// The earlier name of [`Describe`].
#[deprecated(note = "use `Describe`")]
pub type Tell = Describe;
/// A function of an instance.
pub type Act = unsafe extern "C" fn(instance: *mut c_void, output: *const Output) -> i32;
/// A function of an instance that takes bytes.
pub type Take =
    unsafe extern "C" fn(instance: *mut c_void, bytes: Bytes, output: *const Output) -> i32;

/// `eisen_plugin`. A missing function is `None`; a broken library may leave out any.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Plugin {
    pub size: u32,
    pub abi: u32,
    pub features: u64,
    pub describe: Option<Describe>,
    pub self_test: Option<Describe>,
    pub create: Option<
        unsafe extern "C" fn(
            config: Bytes,
            instance: *mut *mut c_void,
            output: *const Output,
        ) -> i32,
    >,
    pub destroy: Option<unsafe extern "C" fn(instance: *mut c_void)>,
    pub observe: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            direction: u32,
            line: Bytes,
            output: *const Output,
        ) -> i32,
    >,
    pub gate: Option<Take>,
    pub deny: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            id: Bytes,
            why: Bytes,
            output: *const Output,
        ) -> i32,
    >,
    pub start: Option<Take>,
    pub prompt: Option<Take>,
    pub cancel: Option<Act>,
    pub allow: Option<Take>,
}

/// `eisen_plugin_entry`.
pub type Entry = unsafe extern "C" fn(host: *const Host) -> *const Plugin;

/// Kinds of records.
pub mod kind {
    pub const DESCRIPTION: u32 = 1;
    pub const ERROR: u32 = 2;
    pub const SESSION: u32 = 3;
    pub const TURN_BEGAN: u32 = 4;
    pub const TURN_ENDED: u32 = 5;
    pub const TOUCHED: u32 = 6;
    pub const USAGE: u32 = 7;
    pub const MODEL: u32 = 8;
    pub const TEXT: u32 = 9;
    pub const ASK: u32 = 10;
    pub const LINE: u32 = 11;
    pub const RUNS: u32 = 12;
    pub const WITHDRAWN: u32 = 13;
}

/// Fields of records.
pub mod field {
    pub const ID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const VERSION: u32 = 3;
    pub const PROTOCOL: u32 = 4;
    pub const BODY: u32 = 5;
    pub const REASON: u32 = 6;
    pub const ACTION: u32 = 7;
    pub const PATH: u32 = 8;
    pub const TITLE: u32 = 9;
    pub const USED: u32 = 10;
    pub const SIZE: u32 = 11;
    pub const COST: u32 = 12;
    pub const CURRENCY: u32 = 13;
    pub const COMMAND: u32 = 14;
}
