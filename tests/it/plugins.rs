//! Agents that don't speak ACP, by plugins: those that do what they should, and those that don't.

mod dying;
mod hostile;
mod loading;
mod overheard;
mod plain;
mod scene;
mod shipped;
mod trusting;
