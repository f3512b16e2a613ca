//! Owns what agents may start and add: how many, how deep, within which zone, on which branch; and the tables of
//! helpers.

mod limits;
mod run_zone;
mod table;

pub(crate) use limits::{StartLimits, lineage, may_take_branch};
pub(crate) use run_zone::{cut_zone, reaches_out, readable};
pub(crate) use table::{helper_of_run, plain, table_of};
