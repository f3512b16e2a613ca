//! Owns what a method gets, its params read, and what it gives back, its result encoded.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::serve::progress::Progress;
use crate::serve::shared::Shared;
use crate::serve::{Caller, Refused};
use crate::wire::Method;

/// A call of a method, besides its params.
#[derive(Clone, Copy)]
pub(super) struct MethodCall<'a> {
    pub(super) shared: &'a Shared,
    pub(super) caller: Option<&'a Caller>,
    pub(super) progress: &'a Progress,
}

/// The result of a method, encoded.
pub(super) struct Reply<M> {
    pub(super) json: Box<RawValue>,
    method: PhantomData<fn() -> M>,
}

/// Encodes the result of a method.
pub(super) fn reply<M: Method>(result: &M::Result<'_>) -> Result<Reply<M>, Refused> {
    Ok(Reply { json: encoded(result)?, method: PhantomData })
}

/// Encodes a result, which may contain raw JSON.
pub(in crate::serve) fn encoded(
    result: &(impl serde::Serialize + ?Sized),
) -> Result<Box<RawValue>, Refused> {
    to_raw_value(result).map_err(Refused::fault)
}

/// Reads the params of a method; missing ones are an empty object. Unknown keys are ignored.
pub(super) fn parse<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, Refused> {
    let params = params.map_or("{}", RawValue::get);
    if !params.starts_with('{') {
        // A derived reader would accept an array as the fields in their order.
        return Err(Refused::wrong("params: must be an object"));
    }
    let mut params = serde_json::Deserializer::from_str(params);
    serde_path_to_error::deserialize(&mut params).map_err(|error| {
        let key = error.path().to_string();
        let key = if key == "." { String::new() } else { format!(".{key}") };
        Refused::wrong(format!("params{key}: {}", error.inner()))
    })
}
