//! The tools, a row for each. A new tool needs only a row, once the port has its method.

mod giving;
mod seeing;
mod working;

use super::Audience;
use super::parameter::ArgumentShape::Whole;
use super::parameter::{ArgumentShape, PAGE, Parameter, optional};

/// A tool of the team.
#[derive(Debug)]
pub(super) struct TeamTool {
    /// At most 64 characters with a client's prefix, and not a name that vendors use themselves.
    pub(super) name: &'static str,
    /// The method of the port.
    pub(super) method: &'static str,
    /// The audience that is offered the tool; the method checks the caller's right anyway.
    pub(super) audience: &'static [Audience],
    pub(super) description: &'static str,
    pub(super) parameters: &'static [Parameter],
    pub(super) only_reads: bool,
    /// The list that is shown page by page: a member of the result, or the name under which a result
    /// that is a list is shown.
    pub(super) list: Option<&'static str>,
    /// The member of the result that is shown page by page, if one may be long.
    pub(super) text: Option<&'static str>,
}

/// Bytes of a file's content in an argument.
const CONTENT: usize = 2 * 1024 * 1024;

/// Bytes of a message in an argument.
const MESSAGE: usize = 16 * 1024;

/// Bytes of a task.
const TASK: usize = 256 * 1024;

/// The largest whole number that all JSON readers keep exactly.
const LARGEST: u64 = (1 << 53) - 1;

const CURSOR: ArgumentShape = Whole { least: 0, most: LARGEST };

const LEAD: &[Audience] = &[Audience::Lead];
const MEMBER: &[Audience] = &[Audience::Member];
const BOTH: &[Audience] = &[Audience::Lead, Audience::Member];

const PAGE_OF_LIST: Parameter = optional(
    PAGE,
    Whole { least: 1, most: 1_000_000 },
    "Which page of the list; the first if left out",
);

/// All tools, by what they are for.
const TABLES: [&[TeamTool]; 3] = [seeing::TOOLS, giving::TOOLS, working::TOOLS];

pub(super) fn all() -> impl Iterator<Item = &'static TeamTool> {
    TABLES.into_iter().flatten()
}

/// The names of the tools that `audience` is offered.
pub fn tool_names(audience: Audience) -> Vec<&'static str> {
    of(audience).map(|tool| tool.name).collect()
}

pub(super) fn of(audience: Audience) -> impl Iterator<Item = &'static TeamTool> {
    all().filter(move |tool| tool.audience.contains(&audience))
}
