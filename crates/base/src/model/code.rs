//! The error codes of JSON-RPC 2.0 and of ACP.

pub const PARSE_ERROR: i32 = -32700;
pub const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;
pub const INTERNAL_ERROR: i32 = -32603;
pub const AUTH_REQUIRED: i32 = -32000;
/// Our own, with `data` that names the blocked access.
pub const OUTSIDE_ZONE: i32 = -32001;
pub const RESOURCE_NOT_FOUND: i32 = -32002;
pub const REQUEST_CANCELLED: i32 = -32800;
