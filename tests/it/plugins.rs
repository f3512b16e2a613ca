//! Agents that don't speak ACP, by plugins, correct ones and broken ones.

mod dying;
mod hostile;
mod loading;
mod overheard;
mod plain;
mod scene;
mod shipped;
mod trusting;
