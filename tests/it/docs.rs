//! What the documents show works as shown.

mod demo;
mod examples;
mod guide;
