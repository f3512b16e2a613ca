mod edits;
mod notation;
mod rules;
mod worlds;
