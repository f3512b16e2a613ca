//! Owns how what the model says becomes lines and rows of answers. Most of it is `From`, since the model does not
//! know its form on the wire.

mod graph;
mod reports;
mod run;
mod spent;
mod token;

pub use spent::spent;
