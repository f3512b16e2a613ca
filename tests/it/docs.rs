//! The examples in the documents work as shown.

mod demo;
mod examples;
mod guide;
mod guides;
mod index;
