//! Implements the C interface for a plugin's type. Checks all that the host passes; turns errors and
//! panics of the plugin into error records.

#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::size_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use crate::abi::{self, Bytes, Output};
use crate::{Description, Direction, Extractor, Record, Records};

/// The function table for a plugin's type.
pub struct Border<T>(PhantomData<T>);

/// An instance, behind its pointer. The lock is for hosts that call two functions at once, which the
/// interface forbids.
type Instance<T> = Mutex<T>;

type Outcome = Result<(), String>;

impl<T: Extractor> Border<T> {
    #[expect(clippy::cast_possible_truncation, reason = "a few words")]
    pub const TABLE: abi::Plugin = abi::Plugin {
        size: size_of::<abi::Plugin>() as u32,
        abi: abi::ABI,
        features: if T::GATES { abi::GATES } else { 0 } | if T::DRIVES { abi::DRIVES } else { 0 },
        describe: Some(describe::<T>),
        self_test: Some(self_test::<T>),
        create: Some(create::<T>),
        destroy: Some(destroy::<T>),
        observe: Some(observe::<T>),
        gate: Some(gate::<T>),
        deny: Some(deny::<T>),
        start: Some(start::<T>),
        prompt: Some(prompt::<T>),
        cancel: Some(cancel::<T>),
        allow: Some(allow::<T>),
    };
}

unsafe extern "C" fn describe<T: Extractor>(output: *const Output) -> i32 {
    guard(output, |records| {
        let Description { name, version, protocols } = T::DESCRIPTION;
        let protocols = protocols.iter().map(|&protocol| protocol.into()).collect();
        let (name, version) = (name.into(), version.into());
        records.put(&Record::Description { name, version, protocols });
        Ok(())
    })
}

unsafe extern "C" fn self_test<T: Extractor>(output: *const Output) -> i32 {
    guard(output, |_| T::self_test())
}

unsafe extern "C" fn create<T: Extractor>(
    config: Bytes,
    instance: *mut *mut c_void,
    output: *const Output,
) -> i32 {
    guard(output, |_| {
        // SAFETY: the host passes a place for the pointer, or null by mistake.
        let place = unsafe { instance.as_mut() }.ok_or("the host has no place for an instance")?;
        let made = Box::new(Instance::new(T::create(text(&config)?)?));
        *place = Box::into_raw(made).cast();
        Ok(())
    })
}

unsafe extern "C" fn destroy<T: Extractor>(instance: *mut c_void) {
    if !instance.is_null() {
        // SAFETY: `create` made it of this type, and the host destroys it once.
        let instance = unsafe { Box::from_raw(instance.cast::<Instance<T>>()) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(instance)));
    }
}

unsafe extern "C" fn observe<T: Extractor>(
    instance: *mut c_void,
    direction: u32,
    line: Bytes,
    output: *const Output,
) -> i32 {
    with(instance, output, |plugin: &mut T, records| {
        let direction = match direction {
            abi::TO_AGENT => Direction::ToAgent,
            abi::TO_CLIENT => Direction::ToClient,
            other => return Err(format!("there is no direction {other}")),
        };
        plugin.observe(direction, borrowed(&line), records)
    })
}

unsafe extern "C" fn gate<T: Extractor>(
    instance: *mut c_void,
    line: Bytes,
    output: *const Output,
) -> i32 {
    with(instance, output, |plugin: &mut T, records| plugin.gate(borrowed(&line), records))
}

unsafe extern "C" fn deny<T: Extractor>(
    instance: *mut c_void,
    id: Bytes,
    why: Bytes,
    output: *const Output,
) -> i32 {
    with(instance, output, |plugin: &mut T, records| plugin.deny(text(&id)?, text(&why)?, records))
}

unsafe extern "C" fn start<T: Extractor>(
    instance: *mut c_void,
    settings: Bytes,
    output: *const Output,
) -> i32 {
    with(instance, output, |plugin: &mut T, records| plugin.start(text(&settings)?, records))
}

unsafe extern "C" fn prompt<T: Extractor>(
    instance: *mut c_void,
    prompt: Bytes,
    output: *const Output,
) -> i32 {
    with(instance, output, |plugin: &mut T, records| plugin.prompt(text(&prompt)?, records))
}

unsafe extern "C" fn cancel<T: Extractor>(instance: *mut c_void, output: *const Output) -> i32 {
    with(instance, output, |plugin: &mut T, records| plugin.cancel(records))
}

unsafe extern "C" fn allow<T: Extractor>(
    instance: *mut c_void,
    id: Bytes,
    output: *const Output,
) -> i32 {
    with(instance, output, |plugin: &mut T, records| plugin.allow(text(&id)?, records))
}

fn with<T>(
    instance: *mut c_void,
    output: *const Output,
    act: impl FnOnce(&mut T, &mut Records<'_>) -> Outcome,
) -> i32 {
    guard(output, |records| {
        // SAFETY: `create` made it of this type, and the host has not destroyed it.
        let instance = unsafe { instance.cast::<Instance<T>>().as_ref() };
        let instance = instance.ok_or("the host passed no instance")?;
        act(&mut instance.lock().unwrap_or_else(PoisonError::into_inner), records)
    })
}

/// Runs a function of the plugin; puts an error record if it fails or panics.
fn guard(output: *const Output, act: impl FnOnce(&mut Records<'_>) -> Outcome) -> i32 {
    // SAFETY: the host passes its output, or null by mistake.
    let output = unsafe { output.as_ref() };
    let mut put = |bytes: &[u8]| match output {
        // SAFETY: the host takes its own pointer back, and bytes for the length of the call.
        Some(&Output { host, put: Some(put) }) => unsafe {
            put(host, bytes.as_ptr(), bytes.len()) == 0
        },
        _ => false,
    };
    let mut records = Records::new(&mut put);
    let outcome = catch_unwind(AssertUnwindSafe(|| act(&mut records)));
    let outcome = outcome.unwrap_or_else(|panic| Err(format!("it panicked: {}", said(&*panic))));
    match outcome {
        Ok(()) if records.is_full() => 1,
        Ok(()) => 0,
        Err(why) => {
            records.put(&Record::Error { body: why.into() });
            1
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("without a word")
}

fn borrowed(bytes: &Bytes) -> &[u8] {
    if bytes.data.is_null() || bytes.length == 0 {
        return &[];
    }
    // SAFETY: the host passes so many bytes, valid for the length of the call; no slice outlives
    // the argument that it is borrowed from.
    unsafe { std::slice::from_raw_parts(bytes.data, bytes.length) }
}

fn text(bytes: &Bytes) -> Result<&str, String> {
    str::from_utf8(borrowed(bytes)).map_err(|_| "the host passed a text that is not UTF-8".into())
}

/// Exports a type that is an [`Extractor`] as the library's plugin.
#[macro_export]
macro_rules! export_extractor {
    ($extractor:ty) => {
        /// What eisen-core looks for.
        #[unsafe(no_mangle)]
        #[allow(unsafe_code, reason = "a library exports its entry by name")]
        pub extern "C" fn eisen_plugin_entry(
            _host: *const $crate::abi::Host,
        ) -> *const $crate::abi::Plugin {
            static TABLE: $crate::abi::Plugin = $crate::Border::<$extractor>::TABLE;
            &raw const TABLE
        }
    };
}

#[cfg(test)]
mod tests;
