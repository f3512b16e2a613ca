//! The names of attributes, spans and values, as OpenTelemetry's conventions for generative AI have
//! them in the revision below, and the project's own.
//!
//! The revision is [`REVISION`], which took over from `semantic-conventions` v1.41.0. Of what it
//! changed, this follows: `gen_ai.usage.cache_write.input_tokens` was `cache_creation` before; a
//! workflow is named by `gen_ai.agent.name`, and `gen_ai.workflow.name` is gone; `gen_ai.agent.id`
//! and `gen_ai.provider.name` are for agents that are called as a client calls, which is what a team
//! does: its agents are processes that answer over a protocol; a message of `gen_ai.output.messages`
//! has no `finish_reason` any more, since `gen_ai.response.finish_reasons` has it. `gen_ai.tool.type` is
//! for where it is known, which no message of an agent says.

use std::borrow::Cow;

/// The revision of the conventions: github.com/open-telemetry/semantic-conventions-genai.
pub const REVISION: &str = "semantic-conventions-genai v0.1.0";

/// Makes a constant of each name, and a list of all for the test of the documentation.
macro_rules! names {
    ($($name:ident = $text:literal,)+) => {
        $(pub(super) const $name: &str = $text;)+

        #[cfg(test)]
        pub(super) const ALL: &[&str] = &[$($text),+];
    };
}

names! {
    OPERATION_NAME = "gen_ai.operation.name",
    PROVIDER_NAME = "gen_ai.provider.name",
    AGENT_ID = "gen_ai.agent.id",
    AGENT_NAME = "gen_ai.agent.name",
    CONVERSATION_ID = "gen_ai.conversation.id",
    REQUEST_MODEL = "gen_ai.request.model",
    FINISH_REASONS = "gen_ai.response.finish_reasons",
    INPUT_TOKENS = "gen_ai.usage.input_tokens",
    CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens",
    CACHE_WRITE_TOKENS = "gen_ai.usage.cache_write.input_tokens",
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens",
    REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens",
    TOOL_NAME = "gen_ai.tool.name",
    TOOL_CALL_ID = "gen_ai.tool.call.id",
    INPUT_MESSAGES = "gen_ai.input.messages",
    OUTPUT_MESSAGES = "gen_ai.output.messages",
    TOOL_ARGUMENTS = "gen_ai.tool.call.arguments",
    TOOL_RESULT = "gen_ai.tool.call.result",
    ERROR_TYPE = "error.type",
    TURN_NUMBER = "eisen.turn.number",
    TOOL_KIND = "eisen.tool.kind",
    TOOL_TITLE = "eisen.tool.title",
    COST_AMOUNT = "eisen.cost.amount",
    COST_CURRENCY = "eisen.cost.currency",
    COST_ESTIMATED = "eisen.cost.estimated",
    COST_INCOMPLETE = "eisen.cost.incomplete",
    DECISION_KIND = "eisen.decision.kind",
    DECISION_ID = "eisen.decision.id",
    DECISION_ACTION = "eisen.decision.action",
    DECISION_VIA = "eisen.decision.via",
    DECISION_OUTCOME = "eisen.decision.outcome",
    DECISION_OPTION = "eisen.decision.option_kind",
    DECISION_BY = "eisen.decision.by",
    DECISION_AGENT = "eisen.decision.agent.id",
    DECISION_SCOPE = "eisen.decision.scope",
    DECISION_RULE = "eisen.decision.rule",
    DECISION_PATH = "eisen.decision.path",
    DECISION_MESSAGE = "eisen.decision.message",
    TASK_ID = "eisen.task.id",
    TASK_BY = "eisen.task.by",
    TASK_STATE = "eisen.task.state",
    INCOMPLETE = "eisen.incomplete",
    SERVICE_NAME = "service.name",
    SERVICE_VERSION = "service.version",
    TEAM_NAME = "eisen.team.name",
}

/// Operations, and the first words of the spans' names.
pub(super) const INVOKE_WORKFLOW: &str = "invoke_workflow";
pub(super) const INVOKE_AGENT: &str = "invoke_agent";
pub(super) const EXECUTE_TOOL: &str = "execute_tool";
/// The project's own.
pub(super) const RUN: &str = "run";
pub(super) const PERMISSION: &str = "permission";
pub(super) const ACCESS: &str = "access";
pub(super) const CONFLICT: &str = "conflict";

/// Values of `error.type`.
pub(super) const TURN_FAILED: &str = "turn_failed";
pub(super) const TOOL_FAILED: &str = "tool_failed";
pub(super) const TASK_FAILED: &str = "task_failed";
pub(super) const TASK_LOST: &str = "task_lost";

/// The tool of a call whose program does not name it, and that is of no known kind.
pub(super) const OTHER: &str = "other";

/// The provider, where neither model nor program say it.
const UNKNOWN: &str = "unknown";

/// Providers by the beginnings of their models' names.
const BY_MODEL: [(&str, &str); 16] = [
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("codex", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "gcp.gemini"),
    ("mistral", "mistral_ai"),
    ("devstral", "mistral_ai"),
    ("codestral", "mistral_ai"),
    ("deepseek", "deepseek"),
    ("grok", "x_ai"),
    ("kimi", "moonshot_ai"),
    ("command-", "cohere"),
    ("sonar", "perplexity"),
];

/// Providers by the names that programs write before a model's.
const BY_PREFIX: [(&str, &str); 16] = [
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("google", "gcp.gemini"),
    ("gemini", "gcp.gemini"),
    ("google-vertex", "gcp.vertex_ai"),
    ("vertex_ai", "gcp.vertex_ai"),
    ("amazon-bedrock", "aws.bedrock"),
    ("bedrock", "aws.bedrock"),
    ("azure", "azure.ai.openai"),
    ("mistral", "mistral_ai"),
    ("deepseek", "deepseek"),
    ("xai", "x_ai"),
    ("moonshotai", "moonshot_ai"),
    ("groq", "groq"),
    ("cohere", "cohere"),
    ("perplexity", "perplexity"),
];

/// Providers of the agents' programs that have one.
const BY_PROGRAM: [(&str, &str); 5] = [
    ("Claude Code", "anthropic"),
    ("Codex", "openai"),
    ("Gemini CLI", "gcp.gemini"),
    ("Kimi Code", "moonshot_ai"),
    ("Mistral Vibe", "mistral_ai"),
];

/// The provider to the best of what is known: by the model, else by the agent's program, which stands
/// for itself if it works with any.
pub(super) fn provider(model: Option<&str>, program: Option<&str>) -> Cow<'static, str> {
    let of_model = model.map(str::to_ascii_lowercase).and_then(|model| {
        // As in `openrouter/anthropic/claude-sonnet`.
        let mut parts = model.split('/');
        let name = parts.next_back().unwrap_or_default();
        let by_prefix = parts.find_map(|part| BY_PREFIX.iter().find(|(known, _)| *known == part));
        let by_model = || BY_MODEL.iter().find(|(begins, _)| name.starts_with(begins));
        by_prefix.or_else(by_model)
    });
    let of_program = || BY_PROGRAM.iter().find(|(known, _)| Some(*known) == program);
    match (of_model.or_else(of_program), program) {
        (Some((_, provider)), _) => Cow::Borrowed(provider),
        (None, Some(program)) => Cow::Owned(program.to_lowercase().replace(' ', "_")),
        (None, None) => Cow::Borrowed(UNKNOWN),
    }
}
