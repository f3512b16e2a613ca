use expect_test::expect;

use super::errors;

/// A file with a mistake of nearly every kind: each is reported, and nothing else.
#[test]
fn every_mistake_of_a_file_is_reported_at_once() {
    let text = r#"[team]
nmae = "shop"
listen = "localhost:80"
stop_grace_s = "5"
on_block = "hold"

[orchestrator]
agent = "led"
on_block = "hld"

[tracker]
decay_rate = 1.5
tick_ms = -1
colour = "red"

[zones]
denied = ["secrets/", "[a"]
git = readonly

[[agents]]
id = "lead"
command = ["lead", "${NO_SUCH_VARIABLE}"]
depends_on = ["ui"]

[[agents]]
id = "ui"
profile = "opncode"
prompt = "a"
prompt_file = "prompt.md"
depends_on = ["lead"]
[agents.zone]
enforce = "kernels"
sockets = ["run/x", "~/y", "/run/[a"]
allow = ["src/**"]

[[agents]]
id = "ui"
protocol = "claude-stream-json"

[[plugins]]
name = "claude-stream-json"
"#;
    expect![[r#"
        2:1 unknown key `nmae` in `[team]` | did you mean `name`?
        3:10 "localhost:80" is not an IP address with a port | write one such as "127.0.0.1:17320" or "[::1]:17320"; port 0 takes a free one
        4:16 `stop_grace_s` must be a whole number from 0 to 3600, not a string | write it without quotes
        5:1 unknown key `on_block` in `[team]` | it belongs in `[orchestrator]` or in `[[agents]]`
        8:9 there is no agent "led" | did you mean "lead"?
        9:12 `on_block` can't be "hld" | did you mean "hold"? It can be "deny", "hold"
        12:14 `decay_rate` must be at least 0 and at most 1 | leave it out for 0.95
        13:11 `tick_ms` must be a whole number from 1 to 60000 | leave it out for 100
        14:1 unknown key `colour` in `[tracker]` | the keys here are `tick_ms`, `idle_tick_ms`, `context_turns`, `compaction_threshold`, `decay_rate`
        17:11 the pattern "secrets/" ends with `/`, so it matches no file | write "secrets/**" for all that is in the folder
        17:23 the pattern "[a" can't be read: unclosed character class; missing ']' | the special characters are `*`, `**`, `?`, `[ab]`, `[!ab]`, `{a,b}`; `\` before one makes it literal
        18:7 string values must be quoted | write "readonly"
        22:21 the environment has no variable `NO_SUCH_VARIABLE` | set it, or give a default: `${NO_SUCH_VARIABLE:-…}`
        27:11 there is no profile "opncode" | did you mean "opencode"?
        29:15 `prompt` and `prompt_file` can't both be given | keep one
        30:15 agents wait for each other: lead → ui → lead | leave out one of these dependencies
        32:11 `enforce` can't be "kernels" | did you mean "kernel"? It can be "auto", "kernel", "protocol", "observe"
        33:12 the socket "run/x" is not an absolute path | write one such as "/run/postgresql/*"; those that the team binds in the zone need not be listed
        33:21 the pattern "~/y" starts with `~`, which only a shell knows | write "${HOME}/y"
        33:28 the pattern "/run/[a" can't be read: unclosed character class; missing ']' | the special characters are `*`, `**`, `?`, `[ab]`, `[!ab]`, `{a,b}`; `\` before one makes it literal
        34:1 unknown key `allow` in `[agents.zone]` | did you mean `allowed`?
        36:1 this agent has neither `command` nor `profile` | write `command = ["PROGRAM", "ARG"]`, or `profile = "NAME"`; one that runs elsewhere has a `url`
        37:6 there is another agent with the id "ui" | give each its own
        40:1 this plugin has no `path` | write where its library is
    "#]].assert_eq(&errors(text));
}

#[test]
fn a_plugin_that_can_t_be_used_is_a_mistake_like_any() {
    let plugin = |name: &str, keys: &str| format!("[[plugins]]\nname = \"{name}\"\n{keys}\n");
    let text = [
        plugin("good", "path = \"lib/good.so\""),
        plugin("bad", "path = \"/lib/bad.so\"\nconfig = { ask = 1 }"),
        // Of what is half written nothing is tried.
        plugin("worse", "path = \"/lib/bad.so\"\nconfig = 1"),
        "[[agents]]\nid = \"a\"\ncommand = [\"c\"]\nprotocol = \"godo\"\nwrong = 1\n".to_owned(),
    ];
    expect![[r#"
        6:8 the plugin "bad" can't be used: it is bad: {"ask":1}\u{1b}[2J | its library is /lib/bad.so
        11:10 `config` must be a table, not an integer | write `config = { KEY = VALUE }`
        15:12 `protocol` can't be "godo" | did you mean "good"? It can be "acp", "opencode", "good", "bad", "worse". Name a plugin of `[[plugins]]`, or put its library into /home/user/.eisen/plugins
        16:1 unknown key `wrong` in `[[agents]]` | the keys here are `protocol`, `id`, `template`, `tier`, `url`, `base_url`, `headers`, `command`, `profile`, `env`, `model`, `thinking`, `unattended`, `session`, `tools`, `on_block`, `on_loop`, `limits`, `parent`, `zone`, `permissions`, `on_violation`, `initialize_timeout_s`, `stall_after_s`, `mcp_servers`, `restart`, `depends_on`, `provider`, `owner`, `cwd`, `autostart`, `prompt`, `prompt_file`, `mode`, `auth_method`, `budget`, `worktree`
    "#]]
    .assert_eq(&errors(&text.concat()));
}

/// An agent that is complete, to stand beside what is tried.
const AGENT: &str = "[[agents]]\nid = \"a\"\ncommand = [\"c\"]\n";

/// Each text stands for itself; those that begin with `+` are keys of an agent.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn each_mistake_says_what_to_write() {
    let texts = [
        // Syntax.
        "[team\nname = 1\n[tracker]\nx = 2",
        "[team]\nname \"shop\"\nscratch = 1",
        "[team]\nname =\nscratch = 1",
        "[team]\nname = \"shop\nscratch = 1",
        "[zones]\nshared = [\"a\",\n\"b\"\ngit = 1\n[tracker]\nx = 2",
        "[zones]\nshared = [\n  \"a\"\n  \"b\"\n]\ngit = 1",
        "[zones]\nshared = [\"a\"",
        "[[agents]]\nid = \"a\"\ncommand = [\"c\"]\nprompt = \"\"\"never\nclosed\n[team]\nnmae = 1",
        "[team]\nname = \"a\"\nname = \"b\"",
        "[team]\n[team]\nx = 1\n[tracker]\ny = 1",
        "[agents]\nid = \"a\"",
        "[[agents]]\nid \"a\"\ncommand = [\"c\"]\n[[agents]]\nid = \"b\"\ncommand = [\"c\"]\ndepends_on = [\"a\"]",
        "= 1\n???\n[x y]\n",
        "team = \"shop\"\nagents = [1]",
        // Values.
        "[team]\nname = \"my shop\"\nworkspace = \"nowhere\"\nmax_running = 1.5",
        "[team]\nworkspace = \"prompt.md\"",
        "[journal]\npath = \".\"",
        "[tracker]\ndecay_rate = nan\ncompaction_threshold = 0\ntick_ms = 500\nidle_tick_ms = 100",
        "[tracker]\ncontext_turns = 99999999999999999999999\ndecay_rate = 1e999",
        "[zones]\nshared = \"a\"\nreadable = [1, \"../x\", \"\", \"./\"]",
        "[port]\nmax_connections = 0\nbacklog = \"many\"\nwrite_deadline_s = true",
        "[graph]\nenabled = 1",
        // Agents.
        "+id = 1",
        "+session = false\nprompt = \"a\"",
        "+prompt_file = \"nowhere.md\"",
        "+prompt_file = \"latin1.md\"",
        "+prompt_file = \"src\"",
        "+prompt_file = \"/dev/zero\"",
        "+profile = \"opencode\"",
        "+cwd = \"..\"",
        "+cwd = \"prompt.md\"",
        "+model = \"\"",
        "+model = \"a\\u0000b\"",
        "+env = { A = 1, \"B=C\" = \"x\" }",
        "+env = [\"A=1\"]",
        "+depends_on = [\"a\"]",
        "+depends_on = [\"b\", \"z\"]\n[[agents]]\nid = \"b\"\ncommand = [\"c\"]\ndepends_on = [\"a\"]",
        "+mcp_servers = [{ name = \"m\" }, { type = \"tcp\" }, 1, { name = \"m\", command = 1979-05-27 }]",
        "+permissions = \"ask\"\non_violation = \"kill\"",
        "+permissions = \"orchestrator\"\n[orchestrator]\nagent = \"a\"",
        "+restart = { policy = \"allways\", backoff_ms = [200] }",
        "+restart = { backoff_ms = [200, 100], within_s = 0 }",
        "+limits = { memory_mb = 0 }",
        "[[agents]]\nid = \"orchestrator\"\ncommand = []",
        "[[agents]]\nid = \"-\"\ncommand = [\"\"]",
        "[[agents]]\nid = \"a\"\ncommand = \"opencode acp\"",
        "[[agents]]\nid = \"a\"\ncommand = [\"${NO_SUCH_VARIABLE}/x\"]\n[agents.zones]\nallowed = [\"a\"]",
        "[[agents]]\ncommand = [\"c\"]\n[[agents]]\nid = \"a\"\nautostart = \"yes\"",
        // Profiles.
        "[profiles.a]\nbase = \"b\"\n[profiles.b]\nbase = \"a\"\n[profiles.c]\nbase = \"c\"\n[profiles.d]\nargs = []",
        "[profiles.\"x y\"]\n[profiles.a]\nbase = \"opencod\"\nbass = 1\n[profiles.b]\ncommand = []",
        "[profiles]\na = 1",
        "[profiles.a]\nbase = \"codex\"\nmodel_args = [\"--model\"]\nclient_fs = \"never\"\nlogin_evn = [\"KEY\"]\n\
         readable = [\"etc\"]\nrule_files = [\"a/\"]\nunattended_env = [\"A\"]\nends_on_eof = \"no\"",
        "+unattended = true",
        "[[agents]]\nid = \"a\"\nprofile = \"gemini\"\nunattended = true\npermissions = \"orchestrator\"",
    ];
    let reported: String = texts
        .iter()
        .map(|text| {
            let text =
                text.strip_prefix('+').map_or((*text).to_owned(), |keys| format!("{AGENT}{keys}"));
            format!("── {}\n{}", text.trim_start_matches(AGENT).replace('\n', "⏎"), errors(&text))
        })
        .collect();
    expect![[r#"
        ── [team⏎name = 1⏎[tracker]⏎x = 2
        1:6 unclosed table, expected `]`
        4:1 unknown key `x` in `[tracker]` | the keys here are `tick_ms`, `idle_tick_ms`, `context_turns`, `compaction_threshold`, `decay_rate`
        ── [team]⏎name "shop"⏎scratch = 1
        2:6 key with no value, expected `=`
        3:11 `scratch` must be a boolean, not an integer | write `true` or `false`, without quotes
        ── [team]⏎name =⏎scratch = 1
        2:7 the value is missing | write a value after `=`
        3:11 `scratch` must be a boolean, not an integer | write `true` or `false`, without quotes
        ── [team]⏎name = "shop⏎scratch = 1
        2:13 this string is not closed | close it with `"`
        3:11 `scratch` must be a boolean, not an integer | write `true` or `false`, without quotes
        ── [zones]⏎shared = ["a",⏎"b"⏎git = 1⏎[tracker]⏎x = 2
        2:10 this array is not closed | close it with `]`
        4:7 `git` must be a string, not an integer | it can be "read", "none", "commit"
        6:1 unknown key `x` in `[tracker]` | the keys here are `tick_ms`, `idle_tick_ms`, `context_turns`, `compaction_threshold`, `decay_rate`
        ── [zones]⏎shared = [⏎  "a"⏎  "b"⏎]⏎git = 1
        4:3 missing comma between array elements, expected `,`
        6:7 `git` must be a string, not an integer | it can be "read", "none", "commit"
        ── [zones]⏎shared = ["a"
        2:10 this array is not closed | close it with `]`
        ── prompt = """never⏎closed⏎[team]⏎nmae = 1
        4:10 this string is not closed | close it with `"""`
        7:1 unknown key `nmae` in `[team]` | did you mean `name`?
        ── [team]⏎name = "a"⏎name = "b"
        3:1 `name` is set twice in this table | keep one of the two
        ── [team]⏎[team]⏎x = 1⏎[tracker]⏎y = 1
        2:2 `[team]` is defined twice | put its keys under the first one; agents are `[[agents]]`, one each
        5:1 unknown key `y` in `[tracker]` | the keys here are `tick_ms`, `idle_tick_ms`, `context_turns`, `compaction_threshold`, `decay_rate`
        ── [agents]⏎id = "a"
        1:1 `agents` must be an array of tables, not a table | write `[[agents]]`, and its keys below, once for each
        1:1 this agent has neither `command` nor `profile` | write `command = ["PROGRAM", "ARG"]`, or `profile = "NAME"`; one that runs elsewhere has a `url`
        ── [[agents]]⏎id "a"⏎command = ["c"]⏎[[agents]]⏎id = "b"⏎command = ["c"]⏎depends_on = ["a"]
        2:4 key with no value, expected `=`
        7:15 there is no agent "a" | there are `b`
        ── = 1⏎???⏎[x y]⏎
        1:1 unquoted keys cannot be empty, expected letters, numbers, `-`, `_`
        2:1 invalid unquoted key, expected letters, numbers, `-`, `_`
        3:3 unclosed table, expected `]`
        ── team = "shop"⏎agents = [1]
        1:8 `team` must be a table, not a string | write `[team]`, and its keys below
        2:11 `agents` must be an array of tables, not an integer | write `[[agents]]`, and its keys below, once for each
        ── [team]⏎name = "my shop"⏎workspace = "nowhere"⏎max_running = 1.5
        2:8 `name` can't be "my shop" | write "my-shop": up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first
        3:13 the workspace "nowhere" can't be opened: no such file or directory | name an existing folder, relative to this file
        4:15 `max_running` must be a whole number from 0 to 1000000, not a float | leave it out for 0
        ── [team]⏎workspace = "prompt.md"
        2:13 the workspace "prompt.md" is not a folder | name an existing folder, relative to this file
        ── [journal]⏎path = "."
        2:8 the journal "." is a folder | name a file in it, such as "./journal.db"
        ── [tracker]⏎decay_rate = nan⏎compaction_threshold = 0⏎tick_ms = 500⏎idle_tick_ms = 100
        2:14 `decay_rate` must be at least 0 and at most 1 | leave it out for 0.95
        3:24 `compaction_threshold` must be more than 0 and at most 1 | leave it out for 0.5
        5:16 `idle_tick_ms` is shorter than `tick_ms`, 500 | write 500 or more
        ── [tracker]⏎context_turns = 99999999999999999999999⏎decay_rate = 1e999
        2:17 `context_turns` must be a whole number from 0 to 1000000 | leave it out for 3
        3:14 `decay_rate` must be at least 0 and at most 1 | leave it out for 0.95
        ── [zones]⏎shared = "a"⏎readable = [1, "../x", "", "./"]
        2:10 `shared` must be an array of strings, not a string | write `shared = ["a"]`
        3:13 each of `readable` must be a string, not an integer | write it in quotes
        3:16 the pattern "../x" contains `..` | write it relative to the workspace without `..`; a place outside has an absolute pattern
        3:24 the pattern "" is empty | write "**" for everything, or leave it out
        3:28 the pattern "./" names the workspace itself | write "**" for all that is in it
        ── [port]⏎max_connections = 0⏎backlog = "many"⏎write_deadline_s = true
        2:19 `max_connections` must be a whole number from 1 to 1000000 | leave it out for 1024
        3:11 `backlog` must be a whole number from 16 to 1000000, not a string | write the number alone, without quotes and without a unit
        4:20 `write_deadline_s` must be a whole number from 1 to 3600, not a boolean | leave it out for 60
        ── [graph]⏎enabled = 1
        2:11 `enabled` must be a boolean, not an integer | write `true` or `false`, without quotes
        ── id = 1
        4:1 `id` is set twice in this table | keep one of the two
        ── session = false⏎prompt = "a"
        5:10 a prompt needs a session | leave out `session = false`, or the prompt
        ── prompt_file = "nowhere.md"
        4:15 `nowhere.md` cannot be read: no such file or directory | check the path and its permissions
        ── prompt_file = "latin1.md"
        4:15 `latin1.md` is not UTF-8 | save the file as UTF-8
        ── prompt_file = "src"
        4:15 `src` is a folder, not a file | name the file in it
        ── prompt_file = "/dev/zero"
        4:15 `/dev/zero` is not a regular file | name a regular file
        ── profile = "opencode"
        4:11 `profile` and `command` can't both be given | keep one; a profile of your own in `[profiles.NAME]` can change a built-in one
        ── cwd = ".."
        4:7 the working directory ".." lies outside the workspace | name an existing folder, relative to the workspace
        ── cwd = "prompt.md"
        4:7 the working directory "prompt.md" is not a folder | name an existing folder, relative to the workspace
        ── model = ""
        4:9 `model` is empty | give it a value, or leave the key out
        ── model = "a\u0000b"
        4:9 a string can't contain a NUL character | leave it out: neither paths nor commands can carry one
        ── env = { A = 1, "B=C" = "x" }
        4:13 `A` must be a string, not an integer | write it in quotes
        4:16 no variable can be called "B=C" | leave out `=`
        ── env = ["A=1"]
        4:7 `env` must be a table, not an array | write `env = { NAME = "value" }`
        ── depends_on = ["a"]
        4:15 agents wait for each other: a → a | leave out one of these dependencies
        ── depends_on = ["b", "z"]⏎[[agents]]⏎id = "b"⏎command = ["c"]⏎depends_on = ["a"]
        4:20 there is no agent "z" | there are `a`, `b`
        8:15 agents wait for each other: a → b → a | leave out one of these dependencies
        ── mcp_servers = [{ name = "m" }, { type = "tcp" }, 1, { name = "m", command = 1979-05-27 }]
        4:16 this is not an MCP server as ACP defines it: missing field `command` | write { name, command, args = ["…"], env = [{ name, value }] }, or { type = "http", name, url, headers = [{ name, value }] }
        4:32 this is not an MCP server as ACP defines it: its `type` can't be "tcp" | write { name, command, args = ["…"], env = [{ name, value }] }, or { type = "http", name, url, headers = [{ name, value }] }
        4:50 `mcp_servers` must be an array of tables, not an integer | write each server as a table
        4:77 JSON has no such value | write it as a string, in quotes
        ── permissions = "ask"⏎on_violation = "kill"
        4:15 `permissions` can't be "ask" | it can be "allow", "deny", "orchestrator"
        5:16 `on_violation` can't be "kill" | it can be "report", "cancel", "stop"
        ── permissions = "orchestrator"⏎[orchestrator]⏎agent = "a"
        4:15 the orchestrator can't decide its own permission requests | write "allow" or "deny"
        ── restart = { policy = "allways", backoff_ms = [200] }
        4:22 `policy` can't be "allways" | did you mean "always"? It can be "on-failure", "never", "always"
        4:46 `backoff_ms` must be two whole numbers, the first not larger than the second | write the first and the longest wait, such as `backoff_ms = [200, 10000]`
        ── restart = { backoff_ms = [200, 100], within_s = 0 }
        4:26 `backoff_ms` must be two whole numbers, the first not larger than the second | write the first and the longest wait, such as `backoff_ms = [200, 10000]`
        4:49 `within_s` must be a whole number from 1 to 86400 | leave it out for 60
        ── limits = { memory_mb = 0 }
        4:24 `memory_mb` must be a whole number from 1 to 1000000000 | leave it out for no limit
        ── [[agents]]⏎id = "orchestrator"⏎command = []
        2:6 no agent can have the id "orchestrator" | the name is reserved; give it another, and name it in `[orchestrator] agent`
        3:11 the command is empty | write `command = ["PROGRAM", "ARG"]`
        ── [[agents]]⏎id = "-"⏎command = [""]
        2:6 `id` can't be "-" | write up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first
        3:12 the program's name is empty | name a program on PATH, or a path relative to this file
        ── [[agents]]⏎id = "a"⏎command = "opencode acp"
        3:11 `command` must be an array of strings, not a string | write `command = ["opencode", "acp"]`
        ── [[agents]]⏎id = "a"⏎command = ["${NO_SUCH_VARIABLE}/x"]⏎[agents.zones]⏎allowed = ["a"]
        3:13 the environment has no variable `NO_SUCH_VARIABLE` | set it, or give a default: `${NO_SUCH_VARIABLE:-…}`
        4:9 unknown key `zones` in `[[agents]]` | an agent's zone is `[agents.zone]`; `[zones]`, for all agents, is a table at the top level
        ── [[agents]]⏎command = ["c"]⏎[[agents]]⏎id = "a"⏎autostart = "yes"
        1:1 this agent has no `id` | give it one, such as `id = "ui"`
        3:1 this agent has neither `command` nor `profile` | write `command = ["PROGRAM", "ARG"]`, or `profile = "NAME"`; one that runs elsewhere has a `url`
        5:13 `autostart` must be a boolean, not a string | write `true` or `false`, without quotes
        ── [profiles.a]⏎base = "b"⏎[profiles.b]⏎base = "a"⏎[profiles.c]⏎base = "c"⏎[profiles.d]⏎args = []
        4:8 profiles are based on each other: a → b → a | base one of them on a built-in profile, or give it a `command`
        6:8 there is no profile "c" | there are auggie, claude-code, cline, codex, copilot, cursor, deepagents, droid, fast-agent, gemini, goose, hermes, kimi, kiro, opencode, openhands, pi, qoder, qwen-code, vibe, a, b, c, d
        7:11 the profile `d` has no command | give it a `base` or a `command`
        ── [profiles."x y"]⏎[profiles.a]⏎base = "opencod"⏎bass = 1⏎[profiles.b]⏎command = []
        1:11 a profile's name can't be "x y" | write "x-y": up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first
        3:8 there is no profile "opencod" | did you mean "opencode"?
        4:1 unknown key `bass` in `[profiles.NAME]` | did you mean `base`?
        6:11 the command is empty | write `command = ["PROGRAM", "ARG"]`
        ── [profiles]⏎a = 1
        2:5 `profiles.NAME` must be a table, not an integer | write `[profiles.NAME]`, and its keys below
        ── [profiles.a]⏎base = "codex"⏎model_args = ["--model"]⏎client_fs = "never"⏎login_evn = ["KEY"]⏎readable = ["etc"]⏎rule_files = ["a/"]⏎unattended_env = ["A"]⏎ends_on_eof = "no"
        3:15 `model_args` must contain `{model}` | write `model_args = ["--model", "{model}"]`
        4:13 `client_fs` can't be "never" | it can be "yes", "edits", "no"
        5:1 unknown key `login_evn` in `[profiles.NAME]` | did you mean `login_env`?
        6:13 the place "etc" is not an absolute path | write one such as "~/.config/mine", "$MINE_HOME" or "/opt/mine"
        7:15 the pattern "a/" ends with `/`, so it matches no file | write "a/**" for all that is in the folder
        8:18 `unattended_env` must be a table, not an array | write `unattended_env = { NAME = "value" }`
        9:15 `ends_on_eof` must be a boolean, not a string | write `true` or `false`, without quotes
        ── unattended = true
        4:14 no setting is known that runs this agent unattended | set its own `mode`, arguments or variables, or define a profile `[profiles.NAME]` with `unattended_mode`, `unattended_args` or `unattended_env`
        ── [[agents]]⏎id = "a"⏎profile = "gemini"⏎unattended = true⏎permissions = "orchestrator"
        4:14 an unattended agent never asks, so it can't have `permissions = "orchestrator"` | leave out one of the two
    "#]].assert_eq(&reported);
}

#[test]
fn keys_that_are_written_often_lead_to_what_is_meant() {
    let texts = [
        "[agent]\nid = \"a\"",
        "[port]\nport = 1",
        "[team]\nport = 1",
        "port = 1",
        "[team]\nlisten = 1",
        "[orchestrator]\non_block = true",
        "[[agents]]\nname = \"a\"\nid = \"a\"\ncommand = [\"c\"]\nargs = [\"x\"]\nallowed = [\"x\"]",
        "[zones]\nallowed = [\"x\"]",
        "[zones]\ndenied = [\"!x\"]",
        "[zone]\nallowed = [\"x\"]",
        "[team]\nname: \"x\"\nscratch = true",
        "[team]\nname = \u{201c}x\u{201d}",
        "[agents.limits]\nmemory_mb = \"2G\"",
    ];
    let listed: String = texts.iter().map(|text| errors(text)).collect();
    expect![[r#"
        1:2 unknown key `agent` at the top level | agents are `[[agents]]`, one each, with two brackets
        2:1 unknown key `port` in `[port]` | the port is `listen` in `[team]`, such as `listen = "127.0.0.1:17320"`
        2:1 unknown key `port` in `[team]` | the port is `listen` in `[team]`, such as `listen = "127.0.0.1:17320"`
        1:8 `port` must be a table, not an integer | the port is `listen` in `[team]`, such as `listen = "127.0.0.1:17320"`
        2:10 `listen` must be a string, not an integer | write one such as "127.0.0.1:17320" or "[::1]:17320"; port 0 takes a free one
        2:12 `on_block` must be a string, not a boolean | it can be "deny", "hold"
        2:1 unknown key `name` in `[[agents]]` | an agent's name is its `id`
        5:1 unknown key `args` in `[[agents]]` | arguments are part of the command: `command = ["PROGRAM", "ARG"]`
        6:1 unknown key `allowed` in `[[agents]]` | it belongs in `[agents.zone]`
        2:1 unknown key `allowed` in `[zones]` | what an agent owns is `allowed` in its `[agents.zone]`; what all may write is `shared`
        2:11 the pattern "!x" starts with `!`, which takes nothing out | write "x" into `denied`; of a name that begins so write "\\!x"
        1:2 unknown key `zone` at the top level | an agent's zone is `[agents.zone]`, below its `[[agents]]`; what holds for all is `[zones]`
        2:5 invalid unquoted key, expected letters, numbers, `-`, `_` | write `name = "x"`
        2:8 string values must be quoted | write it in plain quotes, `"`
        1:2 `agents` must be an array of tables, not a table | write `[[agents]]`, and its keys below, once for each
        1:2 this agent has no `id` | give it one, such as `id = "ui"`
        1:2 this agent has neither `command` nor `profile` | write `command = ["PROGRAM", "ARG"]`, or `profile = "NAME"`; one that runs elsewhere has a `url`
        2:13 `memory_mb` must be a whole number from 1 to 1000000000, not a string | write the number alone, without quotes and without a unit
    "#]].assert_eq(&listed);
}

#[test]
fn a_file_of_another_format_and_none_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eisen.toml");
    let load = || crate::config::Source::read(&file).map(drop).unwrap_err().to_string();
    assert!(load().contains("eisen-core init"));
    for (text, format) in [
        ("{\n  \"team\": {}\n}", "JSON"),
        ("team:\n  name: shop\n", "YAML"),
        ("# a team\n---\nteam: {}\n", "YAML"),
        ("agents: []\n", "YAML"),
        ("- id: ui\n", "YAML"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = load();
        assert!(error.contains(&format!("this is {format}")), "{error}");
    }
    for text in
        ["", "# a: b\n[team]\nname = \"a: b\"\n", "name = 1", "\"a:\" = 1", "a.b = \"x: y\""]
    {
        std::fs::write(&file, text).unwrap();
        assert!(crate::config::Source::read(&file).is_ok(), "{text}");
    }
}
