//! Owns a call of a method that is sent later, and an answer as it came, which its method reads.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ClientError;
use crate::wire::Method;

/// A call of any method, with its params.
#[derive(Clone, PartialEq, Debug)]
pub struct PreparedCall {
    pub method: &'static str,
    pub params: Value,
}

impl PreparedCall {
    pub fn of<M: Method>(params: &M::Params) -> Self {
        Self { method: M::FACTS.name, params: json!(params) }
    }
}

/// The answer to a method, as it came: `--json` prints it so.
#[derive(Debug)]
pub struct MethodAnswer<M> {
    pub json: Value,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> MethodAnswer<M> {
    /// Takes a result of the method.
    pub fn new(json: Value) -> Self {
        Self { json, method: PhantomData }
    }

    pub fn read(&self) -> Result<M::Result<'static>, ClientError>
    where
        M::Result<'static>: DeserializeOwned,
    {
        M::Result::deserialize(&self.json).map_err(ClientError::Answer)
    }
}

impl<M> fmt::Display for MethodAnswer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}
