//! The kernel tier: escapes, and real programs inside.

mod capturing;
mod confinement;
mod confining;
mod keeping;
mod observing;
mod places;
