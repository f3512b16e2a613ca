#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn asked(api: ModelApi, body: &Value) -> ModelAsk {
    ModelAsk::read(api, body.to_string().as_bytes()).unwrap()
}

/// The same talk in each API: a prompt with a reminder of the agent, a call, its result, and the second round.
fn talks(schema: &Value) -> [(ModelApi, Value); 4] {
    [
        (
            ModelApi::Anthropic,
            json!({
                "model": "m", "stream": true, "max_tokens": 5,
                "system": [{ "type": "text", "text": "You help." }],
                "messages": [
                    { "role": "user", "content": "old" },
                    { "role": "assistant", "content": "answered" },
                    { "role": "user", "content": [{ "type": "text", "text": "Read a.txt" }] },
                    { "role": "assistant", "content": [
                        { "type": "text", "text": "I read." },
                        { "type": "tool_use", "id": "toolu_1", "name": "Read", "input": {} },
                        { "type": "tool_use", "id": "toolu_2", "name": "Read", "input": {} },
                    ] },
                    { "role": "user", "content": [
                        { "type": "tool_result", "tool_use_id": "toolu_1", "content": "one" },
                        { "type": "tool_result", "tool_use_id": "toolu_2",
                          "content": [{ "type": "text", "text": "two" }] },
                        { "type": "text", "text": "<system-reminder>Be brief.</system-reminder>" },
                    ] },
                ],
                "tools": [
                    { "name": "Read", "input_schema": schema },
                    { "type": "web_search_20250305", "name": "web_search" },
                ],
            }),
        ),
        (
            ModelApi::OpenAiChat,
            json!({
                "model": "m", "stream": true, "stream_options": { "include_usage": true },
                "messages": [
                    { "role": "system", "content": "You help." },
                    { "role": "user", "content": "Read a.txt" },
                    { "role": "assistant", "content": null, "tool_calls": [
                        { "id": "a", "type": "function", "function": { "name": "Read", "arguments": "{}" } },
                    ] },
                    { "role": "tool", "tool_call_id": "a", "content": "two" },
                ],
                "tools": [{ "type": "function", "function": { "name": "Read", "parameters": schema } }],
                "tool_choice": "auto",
            }),
        ),
        (
            ModelApi::OpenAiResponses,
            json!({
                "model": "m", "stream": true, "instructions": "You help.",
                "input": [
                    { "type": "message", "role": "developer", "content": [] },
                    { "type": "message", "role": "user",
                      "content": [{ "type": "input_text", "text": "Read a.txt" }] },
                    { "type": "reasoning", "summary": [] },
                    { "type": "function_call", "call_id": "call_000001_0", "name": "Read", "arguments": "{}" },
                    { "type": "function_call_output", "call_id": "call_000001_0", "output": "one" },
                    { "type": "function_call", "call_id": "call_000001_1", "name": "Read", "arguments": "{}" },
                    { "type": "function_call_output", "call_id": "call_000001_1", "output": "two" },
                ],
                "tools": [
                    { "type": "function", "name": "Read", "parameters": schema },
                    { "type": "web_search" },
                ],
            }),
        ),
        (
            ModelApi::Gemini,
            json!({
                "contents": [
                    { "role": "user", "parts": [{ "text": "Read a.txt" }] },
                    { "role": "model", "parts": [{ "functionCall": { "name": "Read", "args": {} } }] },
                    { "role": "user", "parts": [
                        { "functionResponse": { "name": "Read", "response": { "output": "two" } } },
                    ] },
                ],
                "tools": [{ "functionDeclarations": [{ "name": "Read", "parameters": schema }] }],
            }),
        ),
    ]
}

#[test]
fn each_api_tells_the_same_talk() {
    let schema = json!({ "type": "object", "properties": { "path": {} } });
    for (api, body) in talks(&schema) {
        let asked = asked(api, &body);
        assert_eq!(asked.prompt, "Read a.txt", "{api:?}");
        assert_eq!((asked.round, asked.result.as_str()), (1, "two"), "{api:?}");
        let tool = Tool {
            name: "Read".to_owned(),
            namespace: None,
            takes: ToolForm::Json(schema.clone()),
        };
        assert_eq!(asked.tools, [tool], "{api:?}");
        assert_eq!(asked.streams, api != ModelApi::Gemini, "{api:?}");
        assert!(asked.wants_usage && asked.json.is_none() && asked.forced.is_none());
    }
}

#[test]
fn a_new_prompt_begins_at_round_0_also_beside_results() {
    let body = json!({ "messages": [
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "x", "name": "t", "input": {} }] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "x", "content": "cancelled" },
            { "type": "text", "text": "two" },
        ] },
    ] });
    let asked = asked(ModelApi::Anthropic, &body);
    assert_eq!((asked.prompt.as_str(), asked.round), ("two", 0));
}

#[test]
fn requests_for_json_and_forced_calls_are_known() {
    let schema = json!({ "type": "object" });
    for (api, body) in [
        (
            ModelApi::Anthropic,
            json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } } }),
        ),
        (
            ModelApi::OpenAiChat,
            json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": schema } } }),
        ),
        (
            ModelApi::OpenAiResponses,
            json!({ "text": { "format": { "type": "json_schema", "schema": schema } } }),
        ),
        (ModelApi::Gemini, json!({ "generationConfig": { "responseJsonSchema": schema } })),
    ] {
        assert_eq!(asked(api, &body).json, Some(schema.clone()), "{api:?}");
    }
    let plain = json!({ "text": { "format": { "type": "text" } }, "input": "hello" });
    let plain = asked(ModelApi::OpenAiResponses, &plain);
    assert_eq!((plain.json, plain.prompt.as_str()), (None, "hello"));
    for (api, body) in [
        (ModelApi::Anthropic, json!({ "tool_choice": { "type": "tool", "name": "t" } })),
        (
            ModelApi::OpenAiChat,
            json!({ "tool_choice": { "type": "function", "function": { "name": "t" } } }),
        ),
        (ModelApi::OpenAiResponses, json!({ "tool_choice": { "type": "function", "name": "t" } })),
        (
            ModelApi::Gemini,
            json!({ "toolConfig": { "functionCallingConfig": { "allowedFunctionNames": ["t"] } } }),
        ),
    ] {
        assert_eq!(asked(api, &body).forced.as_deref(), Some("t"), "{api:?}");
    }
}

#[test]
fn an_error_names_the_member() {
    let error = ModelAsk::read(ModelApi::OpenAiChat, br#"{"stream": "yes"}"#).unwrap_err();
    assert!(error.starts_with("stream: invalid type"), "{error}");
    assert!(ModelAsk::read(ModelApi::Gemini, b"").is_err());
}

#[test]
fn tools_of_namespaces_and_of_the_input_are_offered() {
    let schema = json!({ "type": "object" });
    let body = json!({
        "input": [
            { "type": "additional_tools", "role": "developer", "tools": [
                { "type": "namespace", "name": "functions", "tools": [
                    { "type": "custom", "name": "exec" },
                    { "type": "namespace", "name": "deeper", "tools": [] },
                ] },
            ] },
            { "type": "message", "role": "user", "content": "go" },
        ],
        "tools": [{ "type": "function", "name": "plan", "parameters": schema }],
    });
    let tool = |name: &str, namespace: Option<&str>, takes| Tool {
        name: name.to_owned(),
        namespace: namespace.map(str::to_owned),
        takes,
    };
    let tools = [
        tool("plan", None, ToolForm::Json(schema.clone())),
        tool("exec", Some("functions"), ToolForm::Text),
    ];
    assert_eq!(asked(ModelApi::OpenAiResponses, &body).tools, tools);
}
