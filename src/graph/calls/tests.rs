mod edits;
mod notation;
mod rules;
