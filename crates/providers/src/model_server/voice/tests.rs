#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::time::Duration;

use expect_test::{Expect, expect};

use super::super::answer::Input;
use super::super::script::StopReason;
use super::super::usage::ModelTokens;
use super::*;

fn pieces(texts: &[&str]) -> Pieces {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    Pieces { texts, delay: Duration::ZERO }
}

fn call(half: bool) -> Piece {
    Piece::Call(ToolCall {
        id: "call_000007_0".to_owned(),
        name: "edit".to_owned(),
        namespace: None,
        input: Input::Json(serde_json::json!({ "path": "a.txt" })),
        half,
    })
}

fn answer(pieces: Vec<Piece>) -> PlayedAnswer {
    let tokens = ModelTokens {
        input: 10,
        cache_read: 20,
        output: 3,
        reasoning: 4,
        ..ModelTokens::default()
    };
    PlayedAnswer { n: 7, rule: None, pieces, tokens, stop: StopReason::End, cut_after: None }
}

fn tour() -> PlayedAnswer {
    answer(vec![Piece::Think(pieces(&["hm"])), Piece::Say(pieces(&["I ", "edit."])), call(false)])
}

fn speech(api: ModelApi, answer: &PlayedAnswer) -> Speech<'_> {
    Speech { api, answer, model: "m", wants_usage: true, chat_usage: ChatUsage::Asked }
}

/// The stream, with what it reports and where it breaks.
fn shown(frames: &[Frame]) -> String {
    let mut shown = String::new();
    for frame in frames {
        match frame {
            Frame::Send(bytes, reported) => {
                shown += std::str::from_utf8(bytes).unwrap();
                if let Some(tokens) = reported {
                    let _ =
                        writeln!(shown, "(reported: {} + {})", tokens.prompt(), tokens.answer());
                }
            }
            other => {
                let _ = writeln!(shown, "{other:?}");
            }
        }
    }
    shown
}

fn check(api: ModelApi, answer: &PlayedAnswer, expected: &Expect) {
    expected.assert_eq(&shown(&speech(api, answer).streamed(Form::Events)));
}

#[test]
fn anthropic_streams() {
    check(
        ModelApi::Anthropic,
        &tour(),
        &expect![[r#"
        event: message_start
        data: {"type":"message_start","message":{"id":"msg_000007","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}

        (reported: 30 + 1)
        event: content_block_start
        data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"bW9kZWwtc2VydmVy"}}

        event: content_block_stop
        data: {"type":"content_block_stop","index":0}

        event: content_block_start
        data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I "}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"edit."}}

        event: content_block_stop
        data: {"type":"content_block_stop","index":1}

        event: content_block_start
        data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_000007_0","name":"edit","input":{}}}

        event: content_block_delta
        data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"a.txt\"}"}}

        event: content_block_stop
        data: {"type":"content_block_stop","index":2}

        event: message_delta
        data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":7,"service_tier":"standard"}}

        (reported: 30 + 7)
        event: message_stop
        data: {"type":"message_stop"}

    "#]],
    );
}

#[test]
fn chat_streams() {
    check(
        ModelApi::OpenAiChat,
        &tour(),
        &expect![[r#"
        data: {"id":"chatcmpl-000007","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-000007","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-000007","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"I "},"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-000007","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"edit."},"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-000007","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_000007_0","type":"function","function":{"name":"edit","arguments":""},"index":0}]},"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-000007","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"a.txt\"}"}}]},"finish_reason":null}],"usage":null}

        data: {"id":"chatcmpl-000007","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}

        data: {"id":"chatcmpl-000007","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":7,"total_tokens":37,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens_details":{"reasoning_tokens":4,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}

        (reported: 30 + 7)
        data: [DONE]

    "#]],
    );
}

#[test]
fn responses_streams() {
    check(
        ModelApi::OpenAiResponses,
        &tour(),
        &expect![[r#"
        event: response.created
        data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_000007","object":"response","created_at":1700000000,"status":"in_progress","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"model":"m","output":[],"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"usage":null}}

        event: response.in_progress
        data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_000007","object":"response","created_at":1700000000,"status":"in_progress","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"model":"m","output":[],"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"usage":null}}

        event: response.output_item.added
        data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_000007_0","type":"reasoning","summary":[],"encrypted_content":null}}

        event: response.reasoning_summary_part.added
        data: {"type":"response.reasoning_summary_part.added","sequence_number":3,"item_id":"rs_000007_0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}

        event: response.reasoning_summary_text.delta
        data: {"type":"response.reasoning_summary_text.delta","sequence_number":4,"item_id":"rs_000007_0","output_index":0,"summary_index":0,"delta":"hm"}

        event: response.reasoning_summary_text.done
        data: {"type":"response.reasoning_summary_text.done","sequence_number":5,"item_id":"rs_000007_0","output_index":0,"summary_index":0,"text":"hm"}

        event: response.reasoning_summary_part.done
        data: {"type":"response.reasoning_summary_part.done","sequence_number":6,"item_id":"rs_000007_0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"hm"}}

        event: response.output_item.done
        data: {"type":"response.output_item.done","sequence_number":7,"output_index":0,"item":{"id":"rs_000007_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null}}

        event: response.output_item.added
        data: {"type":"response.output_item.added","sequence_number":8,"output_index":1,"item":{"id":"msg_000007_1","type":"message","status":"in_progress","role":"assistant","content":[]}}

        event: response.content_part.added
        data: {"type":"response.content_part.added","sequence_number":9,"item_id":"msg_000007_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}

        event: response.output_text.delta
        data: {"type":"response.output_text.delta","sequence_number":10,"item_id":"msg_000007_1","output_index":1,"content_index":0,"delta":"I ","logprobs":[]}

        event: response.output_text.delta
        data: {"type":"response.output_text.delta","sequence_number":11,"item_id":"msg_000007_1","output_index":1,"content_index":0,"delta":"edit.","logprobs":[]}

        event: response.output_text.done
        data: {"type":"response.output_text.done","sequence_number":12,"item_id":"msg_000007_1","output_index":1,"content_index":0,"text":"I edit.","logprobs":[]}

        event: response.content_part.done
        data: {"type":"response.content_part.done","sequence_number":13,"item_id":"msg_000007_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"I edit.","annotations":[],"logprobs":[]}}

        event: response.output_item.done
        data: {"type":"response.output_item.done","sequence_number":14,"output_index":1,"item":{"id":"msg_000007_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"I edit.","annotations":[],"logprobs":[]}]}}

        event: response.output_item.added
        data: {"type":"response.output_item.added","sequence_number":15,"output_index":2,"item":{"id":"fc_000007_2","type":"function_call","status":"in_progress","call_id":"call_000007_0","name":"edit","arguments":""}}

        event: response.function_call_arguments.delta
        data: {"type":"response.function_call_arguments.delta","sequence_number":16,"item_id":"fc_000007_2","output_index":2,"delta":"{\"path\":\"a.txt\"}"}

        event: response.function_call_arguments.done
        data: {"type":"response.function_call_arguments.done","sequence_number":17,"item_id":"fc_000007_2","output_index":2,"arguments":"{\"path\":\"a.txt\"}"}

        event: response.output_item.done
        data: {"type":"response.output_item.done","sequence_number":18,"output_index":2,"item":{"id":"fc_000007_2","type":"function_call","status":"completed","call_id":"call_000007_0","name":"edit","arguments":"{\"path\":\"a.txt\"}"}}

        event: response.completed
        data: {"type":"response.completed","sequence_number":19,"response":{"id":"resp_000007","object":"response","created_at":1700000000,"status":"completed","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"model":"m","output":[{"id":"rs_000007_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null},{"id":"msg_000007_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"I edit.","annotations":[],"logprobs":[]}]},{"id":"fc_000007_2","type":"function_call","status":"completed","call_id":"call_000007_0","name":"edit","arguments":"{\"path\":\"a.txt\"}"}],"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":20},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":37}}}

        (reported: 30 + 7)
    "#]],
    );
}

#[test]
fn gemini_streams() {
    check(
        ModelApi::Gemini,
        &tour(),
        &expect![[r#"
        data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"totalTokenCount":30},"modelVersion":"m","responseId":"resp_000007"}

        (reported: 30 + 0)
        data: {"candidates":[{"content":{"parts":[{"text":"I "}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"totalTokenCount":30},"modelVersion":"m","responseId":"resp_000007"}

        (reported: 30 + 0)
        data: {"candidates":[{"content":{"parts":[{"text":"edit."}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"totalTokenCount":30},"modelVersion":"m","responseId":"resp_000007"}

        (reported: 30 + 0)
        data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"edit","args":{"path":"a.txt"}},"thoughtSignature":"bW9kZWwtc2VydmVy"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"totalTokenCount":30},"modelVersion":"m","responseId":"resp_000007"}

        (reported: 30 + 0)
        data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"candidatesTokenCount":3,"thoughtsTokenCount":4,"totalTokenCount":37},"modelVersion":"m","responseId":"resp_000007"}

        (reported: 30 + 7)
    "#]],
    );
}

#[test]
fn whole_answers() {
    let whole = ModelApi::ALL.map(|api| speech(api, &tour()).whole().to_string());
    expect![[r#"
        {"id":"msg_000007","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"bW9kZWwtc2VydmVy"},{"type":"text","text":"I edit."},{"type":"tool_use","id":"call_000007_0","name":"edit","input":{"path":"a.txt"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":7,"service_tier":"standard"}}
        {"id":"chatcmpl-000007","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"I edit.","refusal":null,"reasoning_content":"hm","tool_calls":[{"id":"call_000007_0","type":"function","function":{"name":"edit","arguments":"{\"path\":\"a.txt\"}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":30,"completion_tokens":7,"total_tokens":37,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens_details":{"reasoning_tokens":4,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}
        {"id":"resp_000007","object":"response","created_at":1700000000,"status":"completed","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"model":"m","output":[{"id":"rs_000007_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null},{"id":"msg_000007_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"I edit.","annotations":[],"logprobs":[]}]},{"id":"fc_000007_2","type":"function_call","status":"completed","call_id":"call_000007_0","name":"edit","arguments":"{\"path\":\"a.txt\"}"}],"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":20},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":37}}
        {"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"I edit."},{"functionCall":{"name":"edit","args":{"path":"a.txt"}},"thoughtSignature":"bW9kZWwtc2VydmVy"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"candidatesTokenCount":3,"thoughtsTokenCount":4,"totalTokenCount":37},"modelVersion":"m","responseId":"resp_000007"}"#]].assert_eq(&whole.join("\n"));
}

#[test]
fn half_a_call_ends_in_the_middle_of_its_arguments() {
    let halves = answer(vec![call(true), Piece::Cut]);
    let tails = ModelApi::ALL.map(|api| {
        let text = shown(&speech(api, &halves).streamed(Form::Events));
        text.lines()
            .rev()
            .take(4)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
            .join("\n")
    });
    expect![[r#"
        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}

        Cut
        ---

        data: {"id":"chatcmpl-000007","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}],"usage":null}

        Cut
        ---
        event: response.function_call_arguments.delta
        data: {"type":"response.function_call_arguments.delta","sequence_number":3,"item_id":"fc_000007_0","output_index":0,"delta":"{\"path\":"}

        Cut
        ---
        data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"edit","args":{}},"thoughtSignature":"bW9kZWwtc2VydmVy"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"totalTokenCount":30},"modelVersion":"m","responseId":"resp_000007"}

        (reported: 30 + 0)
        Cut"#]].assert_eq(&tails.join("\n---\n"));
}

#[test]
fn an_error_ends_a_stream_that_has_begun() {
    let failed = answer(vec![
        Piece::Say(pieces(&["x"])),
        Piece::Fail(super::super::troubles::ModelRefusal {
            trouble: super::super::troubles::ModelTrouble::Overloaded,
            status: None,
            message: None,
            retry_after_s: None,
        }),
        Piece::Say(pieces(&["never"])),
    ]);
    let tails = ModelApi::ALL.map(|api| {
        let text = shown(&speech(api, &failed).streamed(Form::Events));
        assert!(!text.contains("never"), "{text}");
        text.trim_end().lines().last().unwrap().to_owned()
    });
    expect![[r#"
        data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_000007"}
        data: {"error":{"message":"The engine is currently overloaded, please try again later","type":"server_error","param":null,"code":"server_is_overloaded"}}
        data: {"type":"response.failed","sequence_number":8,"response":{"id":"resp_000007","object":"response","created_at":1700000000,"status":"failed","error":{"code":"server_is_overloaded","message":"The engine is currently overloaded, please try again later"},"incomplete_details":null,"instructions":null,"metadata":{},"model":"m","output":[{"id":"msg_000007_0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[],"logprobs":[]}]}],"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"usage":null}}
        data: {"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#]].assert_eq(&tails.join("\n"));
}

#[test]
fn the_usage_of_a_chat_stream_is_reported_as_the_script_says() {
    let answer = tour();
    for (chat_usage, wants_usage, has) in [
        (ChatUsage::Asked, true, true),
        (ChatUsage::Asked, false, false),
        (ChatUsage::Always, false, true),
        (ChatUsage::Never, true, false),
    ] {
        let speech = Speech { wants_usage, chat_usage, ..speech(ModelApi::OpenAiChat, &answer) };
        let text = shown(&speech.streamed(Form::Events));
        assert_eq!(text.contains("prompt_tokens"), has, "{chat_usage:?} {wants_usage}");
        assert_eq!(text.contains("(reported"), has);
    }
}

#[test]
fn a_stream_as_an_array_is_json() {
    let text: String = speech(ModelApi::Gemini, &tour())
        .streamed(Form::Array)
        .into_iter()
        .map(|frame| match frame {
            Frame::Send(bytes, _) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    let chunks: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(chunks.len(), 5);
}
