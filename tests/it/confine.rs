//! The kernel tier: escapes, and real programs inside.

mod confinement;
mod confining;
