//! The error codes of JSON-RPC 2.0 and of ACP.

/// The line is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The line is JSON, but not a valid request.
pub const INVALID_REQUEST: i32 = -32600;
/// The receiver does not know the method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// A parameter is missing or wrong.
pub const INVALID_PARAMS: i32 = -32602;
/// The receiver failed at the request.
pub const INTERNAL_ERROR: i32 = -32603;
/// The agent needs a login before the method; by ACP.
pub const AUTH_REQUIRED: i32 = -32000;
/// Our own, with `data` that names the blocked access.
pub const OUTSIDE_ZONE: i32 = -32001;
/// The file, terminal or other thing of the request is not there; by ACP.
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// The request was cancelled by `$/cancel_request`; by ACP.
pub const REQUEST_CANCELLED: i32 = -32800;
