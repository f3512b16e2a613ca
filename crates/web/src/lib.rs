//! Owns the web page, and the hub of several hosts.
//!
//! Must not know how teams are started.

pub mod hub;
pub mod web;

use eisen_base::{bus, kept, line, model};
use eisen_export::metrics;
use eisen_graph::watch;
use eisen_memory::{journal, session};
use eisen_port::serve;
use eisen_team::{routing, tracker};
use eisen_wire::{tokens, wire};
