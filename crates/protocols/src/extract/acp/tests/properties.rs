//! Attacks on the gate that nobody wrote down: generated lines, read by readers that each have
//! habits of their own.

use proptest::prelude::*;
use serde_json::Value;

use super::{acp, take_in, take_in_slowly};
use crate::extract::json::{Members, elements, is_json, text};
use crate::extract::{Extractor, Gate};
use crate::line::Direction;

/// How some reader resolves the name of a member.
#[derive(Clone, Copy, Debug)]
struct Habits {
    last_wins: bool,
    ignores_case: bool,
    splits_lines: bool,
}

const READERS: [Habits; 8] = {
    let mut readers = [Habits { last_wins: false, ignores_case: false, splits_lines: false }; 8];
    let mut n = 0;
    while n < 8 {
        readers[n] =
            Habits { last_wins: n & 1 != 0, ignores_case: n & 2 != 0, splits_lines: n & 4 != 0 };
        n += 1;
    }
    readers
};

impl Habits {
    fn get<'a>(self, members: &'a Members<'a>, key: &str) -> Option<&'a str> {
        let mut found = members
            .iter()
            .filter(|(name, _)| {
                *name == key || (self.ignores_case && name.to_lowercase() == key.to_lowercase())
            })
            .map(|(_, value)| value);
        if self.last_wins { found.last() } else { found.next() }
    }

    /// Paths that this reader would be asked to open.
    fn opens(self, line: &str) -> Vec<String> {
        let ends: &[char] = if self.splits_lines { &['\r', '\u{2028}', '\u{2029}'] } else { &[] };
        let mut opened = Vec::new();
        for piece in line.split(ends) {
            let batch = elements(piece).filter(|_| is_json(piece));
            for message in batch.unwrap_or_else(|| vec![piece]) {
                opened.extend(self.open(message));
            }
        }
        opened
    }

    fn open(self, message: &str) -> Option<String> {
        let message = Members::of(message).filter(|_| is_json(message))?;
        let method = text(self.get(&message, "method")?)?;
        matches!(&*method, "fs/read_text_file" | "fs/write_text_file").then_some(())?;
        let params = Members::of(self.get(&message, "params")?)?;
        text(self.get(&params, "path")?).map(std::borrow::Cow::into_owned)
    }
}

fn key(name: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just(name.to_owned()),
        1 => Just(name.to_uppercase()),
        1 => Just(name.replacen('s', "ſ", 1)),
        1 => Just(format!("\\u{:04x}{}", u32::from(name.as_bytes()[0]), &name[1..])),
    ]
}

fn member(
    name: &'static str,
    value: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    (key(name), value, gap()).prop_map(|(key, value, gap)| format!("\"{key}\":{gap}{value}"))
}

fn gap() -> impl Strategy<Value = String> {
    prop_oneof![8 => Just(String::new()), 1 => Just("\r".to_owned()), 1 => Just(" ".to_owned())]
}

fn object(members: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (prop::collection::vec(members, 0..5), gap(), gap())
        .prop_map(|(members, a, b)| format!("{{{a}{}{b}}}", members.join(",")))
}

fn path() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "\"/w/ui/a\"",
        "\"/etc/x\"",
        "\"..\\/x\"",
        "7",
        "\"\\ud800\"",
        "\"a\u{2028}b\"",
    ])
    .prop_map(str::to_owned)
}

/// Parameters that are whole, and something beside them that need not be.
fn params() -> impl Strategy<Value = String> {
    let extra = prop_oneof![
        2 => member("path", path()),
        1 => member("sessionId", Just("\"s\"".to_owned())),
        2 => member("_meta", object(member("k", Just("1".to_owned())))),
    ];
    let whole = Just(r#""sessionId":"s","path":"/w/ui/a""#.to_owned());
    let member = prop_oneof![4 => whole, 2 => extra];
    object(member)
}

/// A request, most often whole, with members beside it that need not be.
fn request() -> impl Strategy<Value = String> {
    let method = prop::sample::select(vec![
        "\"fs/read_text_file\"",
        "\"fs\\/write_text_file\"",
        "\"session/update\"",
        "null",
    ]);
    let method = method.prop_map(str::to_owned);
    let extra = prop_oneof![
        2 => member("method", method.clone()),
        2 => member("params", params()),
        1 => member("id", Just("2".to_owned())),
        1 => member("result", Just("{}".to_owned())),
        1 => member("extra", Just("{}".to_owned())),
    ];
    let extras = prop::collection::vec(extra, 0..3);
    (member("method", method), member("params", params()), extras, any::<bool>(), gap()).prop_map(
        |(method, params, extras, first, gap)| {
            let whole = format!("\"id\":1,{method},{gap}{params}");
            let members = [vec![whole], extras].concat();
            let members: Vec<_> = if first { members } else { members.into_iter().rev().collect() };
            format!("{{{}}}", members.join(","))
        },
    )
}

/// Requests within each other, and beside each other in one line.
fn message() -> impl Strategy<Value = String> {
    request().prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("[{one}]")),
            inner.clone().prop_map(|one| format!("{{\"x\":\r{one}\r}}")),
            inner.clone().prop_map(|one| format!("{{\"method\":\"x\",\"params\":{one}}}")),
            (inner.clone(), inner).prop_map(|(one, two)| format!("{one}\r{two}")),
        ]
    })
}

/// A message about one of two tool calls.
fn about_a_call() -> impl Strategy<Value = String> {
    let says = prop::sample::select(vec![
        r#""kind":"edit","rawInput":{"path":"/w/ui/app.tsx"}"#,
        r#""kind":"read","locations":[{"path":"/w/core/db.py"}]"#,
        r#""kind":"execute","rawInput":{"command":"cat README.md > sub/x.rs"}"#,
        r#""title":"`cat core/auth.rs`""#,
        r#""status":"completed""#,
        r#""status":"failed""#,
    ]);
    (says, any::<bool>(), 0..3).prop_map(|(says, first, what)| {
        let call = format!(r#""toolCallId":"{}",{says}"#, u8::from(first));
        let update = |name: &str| {
            let update = format!(r#"{{"sessionUpdate":"{name}",{call}}}"#);
            let params = format!(r#"{{"sessionId":"s","update":{update}}}"#);
            format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#)
        };
        match what {
            0 => update("tool_call"),
            1 => update("tool_call_update"),
            _ => format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{{call}}},"options":[]}}}}"#
            ),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_reader_opens_what_was_not_asked(line in message()) {
        match acp().gate(line.as_bytes()) {
            Gate::Ambiguous { .. } => {}
            Gate::Pass => {
                for reader in READERS {
                    prop_assert_eq!(reader.opens(&line), Vec::<String>::new(), "{:?}", reader);
                }
            }
            Gate::Ask(ask) => {
                let asked: Vec<_> = ask.accesses.iter().map(|access| access.path.clone()).collect();
                for reader in READERS {
                    for path in reader.opens(&line) {
                        prop_assert_eq!(&asked, &[std::path::Path::new("/w").join(path)], "{:?}", reader);
                    }
                }
            }
        }
    }

    #[test]
    fn what_serde_reads_as_a_plain_request_is_asked(path in "[a-zé\"\\\\/. ]{1,20}") {
        let line = serde_json::json!({
            "jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file",
            "params": {"sessionId": "s", "path": path},
        });
        let Gate::Ask(ask) = acp().gate(line.to_string().as_bytes()) else {
            return Err(TestCaseError::fail("no ask"));
        };
        prop_assert_eq!(&ask.accesses[0].path, &std::path::Path::new("/w").join(path));
    }

    #[test]
    fn what_is_known_by_sight_means_what_it_says(lines in prop::collection::vec(chunk(), 2..8)) {
        let (mut quick, mut slow) = (acp(), acp());
        for line in lines {
            let slow = take_in_slowly(&mut slow, &line, true);
            let quick = take_in(&mut quick, &line, true);
            prop_assert_eq!(quick, slow, "{}", String::from_utf8_lossy(&line));
        }
    }

    #[test]
    fn a_stopped_line_has_no_activities(
        lines in prop::collection::vec((about_a_call(), any::<bool>()), 1..8),
    ) {
        let (mut quick, mut slow) = (acp(), acp());
        for (line, is_allowed) in lines {
            let slow = take_in_slowly(&mut slow, line.as_bytes(), is_allowed);
            let quick = take_in(&mut quick, line.as_bytes(), is_allowed);
            prop_assert_eq!(quick, slow, "{}", line);
        }
    }

    #[test]
    fn gate_and_observe_equals_gate_then_observe(
        line in prop_oneof![message().prop_map(String::into_bytes), line_bytes()],
    ) {
        let slow = take_in_slowly(&mut acp(), &line, true);
        prop_assert_eq!(take_in(&mut acp(), &line, true), slow);
    }

    #[test]
    fn any_bytes_are_taken(lines in prop::collection::vec((any::<bool>(), line_bytes()), 0..8)) {
        let mut acp = acp();
        let mut observed = Vec::new();
        for (to_agent, line) in lines {
            let direction = if to_agent { Direction::ToAgent } else { Direction::ToClient };
            acp.gate(&line);
            acp.observe(direction, &line, &mut observed);
        }
        acp.end("gone", &mut observed);
        let count = |name: &str| observed.iter().filter(|it| format!("{:?}", it.kind).starts_with(name)).count();
        prop_assert_eq!(count("TurnBegan"), count("TurnEnded"));
    }
}

/// Chunks of few shapes, whose texts need not end where they should.
pub(super) fn chunk() -> impl Strategy<Value = Vec<u8>> {
    let message = |update: &str, beside: &str| {
        format!(
            r#"{{"method":"session/update"{beside},"params":{{"sessionId":"s","update":{{{update}}}}}}}"#
        )
    };
    let said = r#""sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"@"}"#;
    let thought = r#""content":{"text":"@","type":"text"},"sessionUpdate":"agent_thought_chunk""#;
    let torn = "\"sessionUpdate\":\"agent_message_chunk\",\r\"content\":{\"text\":\r\"@\"}";
    let call = r#""sessionUpdate":"tool_call","toolCallId":"1","content":{"text":"@"},"rawInput":{"path":"/w/ui/app.tsx"}"#;
    let shape = prop::sample::select(vec![
        message(said, ""),
        message(thought, r#","id":1"#),
        message(torn, ""),
        message(said, ",\"x\":\"a\u{2028}b\""),
        message(said, r#","Method":"x""#),
        message(said, r#","params":{}"#),
        message(call, ""),
        format!("[{}]", message(said, "")),
        format!(" {}\x0c", message(said, "")),
    ]);
    let part = prop::sample::select(vec![
        &b"a"[..],
        b"word ",
        "é–".as_bytes(),
        "\u{2028}".as_bytes(),
        "\u{85}".as_bytes(),
        br#"""#,
        br"\",
        br"\\",
        br#"\""#,
        br"\n",
        br"\u00e9",
        br"\ud800",
        br"\u00",
        br"\x",
        b"\t",
        b"\r",
        b"\xff",
        br#""}}}}"#,
        br#"","text":"b"#,
        br#""}}},"method":"fs/read_text_file","x":{"y":{"z":{"u":""#,
        br#""}}},"params":{"path":"/w/core/auth.rs"},"x":{"y":{"z":{"u":""#,
    ]);
    let text = prop_oneof![
        3 => Just(b"some words".to_vec()),
        4 => prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat()),
    ];
    (shape, text).prop_map(|(shape, text)| {
        let (before, after) = shape.split_once('@').unwrap();
        [before.as_bytes(), &text, after.as_bytes()].concat()
    })
}

/// Bytes without sense, and messages with their fields mixed up.
fn line_bytes() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[a-z/. ;|$'\"]{0,12}".prop_map(Value::from),
        Just(Value::from("s")),
        Just(Value::from("completed")),
        Just(Value::from("execute")),
        Just(Value::from("file:///w/a%20b")),
    ];
    let value = value.prop_recursive(4, 24, 4, |inner| {
        let key = prop::sample::select(vec![
            "sessionId",
            "update",
            "sessionUpdate",
            "toolCallId",
            "toolCall",
            "rawInput",
            "path",
            "locations",
            "content",
            "type",
            "kind",
            "status",
            "command",
            "args",
            "options",
            "prompt",
            "uri",
            "cwd",
            "terminalId",
            "output",
            "stopReason",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key.prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    let method = prop::sample::select(vec![
        "session/prompt",
        "session/new",
        "session/load",
        "session/close",
        "session/update",
        "session/request_permission",
        "fs/read_text_file",
        "terminal/create",
        "terminal/output",
    ]);
    let message = (method, value.clone(), value, 0..3, 0..4).prop_map(
        |(method, params, result, sort, id)| {
            let message = match sort {
                0 => serde_json::json!({"id": id, "result": result}),
                1 => serde_json::json!({"id": id, "method": method, "params": params}),
                _ => serde_json::json!({"id": id, "error": result}),
            };
            message.to_string().into_bytes()
        },
    );
    prop_oneof![4 => message, 1 => prop::collection::vec(any::<u8>(), 0..60)]
}
