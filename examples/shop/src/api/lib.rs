//! The shop's arithmetic; amounts are in cents.

pub mod cart;
pub mod discount;
