//! Owns the tools of the team: each is a method of the port with a description and an audience. What it says of an
//! argument stands at the field of the method's params.

mod argument;
mod delegation;
mod oversight;
mod parameter;
mod teamwork;

use std::sync::LazyLock;

use super::{Facts, Method};
pub(super) use argument::tool;
pub use parameter::{PAGE, Parameter, check, schema, take_tools};

/// The user of the tools on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    /// The orchestrator.
    Lead,
    /// Any other agent.
    Member,
}

/// A tool of the team.
#[derive(Debug)]
pub struct TeamTool {
    /// At most 64 characters with a client's prefix, and not a name that vendors use themselves.
    pub name: &'static str,
    pub method: Facts,
    /// The audience that is offered the tool; the method checks the caller's right anyway.
    pub audience: &'static [Audience],
    pub description: &'static str,
    pub parameters: Vec<Parameter>,
    pub only_reads: bool,
    /// The list that is shown page by page: a member of the result, or the name under which a result
    /// that is a list is shown.
    pub list: Option<&'static str>,
    /// The member of the result that is shown page by page, if one may be long.
    pub text: Option<&'static str>,
}

/// Bytes of a file's content in an argument.
pub(super) const CONTENT: u64 = 2 * 1024 * 1024;

/// Bytes of a message in an argument.
pub(super) const MESSAGE: u64 = 16 * 1024;

/// Bytes of a pattern of paths.
pub(super) const PATTERN: u64 = 1024;

/// Bytes of a task.
pub(super) const TASK: u64 = 256 * 1024;

const LEAD: &[Audience] = &[Audience::Lead];
const MEMBER: &[Audience] = &[Audience::Member];
const BOTH: &[Audience] = &[Audience::Lead, Audience::Member];

/// All tools, by what they are for.
static TOOLS: LazyLock<Vec<TeamTool>> = LazyLock::new(|| {
    [oversight::tools(), delegation::tools(), teamwork::tools()].into_iter().flatten().collect()
});

pub fn tools() -> impl Iterator<Item = &'static TeamTool> {
    TOOLS.iter()
}

/// The tools that `audience` is offered.
pub fn tools_of(audience: Audience) -> impl Iterator<Item = &'static TeamTool> {
    tools().filter(move |tool| tool.audience.contains(&audience))
}

/// The tool of this name; None: the team has none.
pub fn tool_named(name: &str) -> Option<&'static TeamTool> {
    tools().find(|tool| tool.name == name)
}

/// Makes a method a tool, which has the method's name.
fn tool_of<M: Method>(audience: &'static [Audience], description: &'static str) -> TeamTool {
    TeamTool {
        name: M::FACTS.name,
        method: M::FACTS,
        audience,
        description,
        parameters: parameter::of::<M::Params>(),
        only_reads: false,
        list: None,
        text: None,
    }
}

impl TeamTool {
    /// Agents have learned it by this name.
    fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    fn reads(self) -> Self {
        Self { only_reads: true, ..self }
    }

    fn list(self, list: &'static str) -> Self {
        Self { list: Some(list), ..self }
    }

    fn text(self, text: &'static str) -> Self {
        Self { text: Some(text), ..self }
    }

    /// Takes the page to show as an argument.
    fn pages(mut self) -> Self {
        self.parameters.push(parameter::page_of_list());
        self
    }
}
