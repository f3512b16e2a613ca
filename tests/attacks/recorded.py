"""Attacks on what a team records and does on behalf of others: its journal, `undo`, sessions, terminals, calls that
wait for a decision. Each returns what it got, or nothing."""

import json
import os
import subprocess
import threading
import time

from team import ASK, MARK, Port, Team, until

WAIT = """
import time
def until(condition, seconds=8):
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end: time.sleep(0.01)
    return found
"""


def asking(team):
    """Code of an agent that asks the port with its own token."""
    return ASK % (team.port, "os.environ['EISEN_TOKEN']")


def core_reads(team):
    """Another agent has the secret in its session."""
    return team.let("core", {"run": ["cat", team.workspace + "/core/auth.rs"]})


def events_of_another(program, mode):
    """An agent's token reads the journal: another's sessions by all names, a search, single events, replays."""
    team = Team(program, mode)
    core_reads(team)
    team.let("core", {"code": f"open({team.workspace + '/core/new.rs'!r}, 'w').write({MARK!r})"})
    mine = team.steer.ask("list_events", {"agent_id": "core"})["result"]["events"]
    ids = [event["id"] for event in mine]
    sessions = {event["session_id"] for event in mine if event["session_id"]} | {"core/" + str(team.session("core"))}
    code = asking(team) + f"""
result = [ask("list_events", {{"agent_id": "core"}}), ask("search_events", {{"query": {MARK[::-1]!r}[::-1]}}),
          ask("get_diff", {{"agent_id": "core"}}), ask("get_diff", {{}}), ask("blame", {{"path": "core/new.rs"}}),
          ask("list_events", {{"types": ["file", "message", "tool"]}}), ask("get_diff", {{"since": {ids[0]!r}}})]
for name in {sorted(sessions)!r}:
    result += [ask("list_events", {{"session_id": name}}), ask("get_diff", {{"session_id": name}}),
               ask("replay_session", {{"session_id": name, "speed": "max"}}),
               ask("list_events", {{"session_id": name, "agent_id": "ui"}})]
result += [ask("get_event", {{"id": one}}) for one in {ids!r}]
"""
    said = json.dumps(team.let("ui", {"code": code}))
    team.stop()
    return (MARK in said or said.count('"code": 403') < len(sessions) * 4 + 2) and said[:2000]


def steered_by_a_member(program, mode):
    """An agent's token takes back what others did, or goes on in their sessions."""
    team = Team(program, mode)
    core_reads(team)
    team.let("core", {"code": f"open({team.workspace + '/core/new.rs'!r}, 'w').write('x')"})
    mine = team.steer.ask("list_events", {"agent_id": "core"})["result"]["events"]
    session, event = "core/" + team.session("core"), mine[0]["id"]
    calls = {
        "undo": {"agent_id": "core", "force": True}, "redo": {}, "reload": {}, "attach": {"agent_id": "core"},
        "rewind_session": {"session_id": session, "to": event, "files": True}, "fork_session": {"session_id": session},
        "prompt": {"agent_id": "core", "text": "x"}, "cancel": {"agent_id": "core"}, "new_session": {"agent_id": "core"},
        "stop_agent": {"agent_id": "core"}, "restart_agent": {"agent_id": "core"}, "remove_agent": {"agent_id": "core"},
        "resolve_blocked": {"id": "b1", "decision": "allow"}, "add_agent": {"config": {"id": "x", "command": ["true"]}},
        "close_session": {"agent_id": "core", "session_id": team.session("core")},
        "add_context_items": {"agent_id": "core", "session_id": team.session("core"), "items": [1]},
    }
    code = asking(team) + f"result = [[name, ask(name, params)] for name, params in {calls!r}.items()]"
    said = team.let("ui", {"code": code})
    kept = os.path.exists(team.workspace + "/core/new.rs")
    team.stop()
    if not isinstance(said, list) or not kept:
        return f"{kept=} {said}"
    return [one for one in said if (one[1] or {}).get("error", {}).get("code") != 403]


def session_named_as_another(program, mode):
    """An agent gives its session the id of another's, and asks for that by the id."""
    team = Team(program, mode)
    core_reads(team)
    theirs = team.session("core")
    team.let("ui", {"code": f"names.append({theirs!r})"})
    opened = team.steer.ask("new_session", {"agent_id": "ui"})
    spy = f"""
import threading
f.write(json.dumps({{"type": "subscribe", "topics": ["session_update"]}}) + "\\n"); f.flush()
result = [ask("list_events", {{"session_id": {theirs!r}}}), ask("get_diff", {{"session_id": {theirs!r}}}),
          ask("replay_session", {{"session_id": {theirs!r}, "speed": "max"}}),
          ask("get_session_state", {{"agent_id": "core", "session_id": {theirs!r}}})]
import builtins; builtins.heard = []
def hear():
    for line in f: builtins.heard.append(line)
threading.Thread(target=hear, daemon=True).start()
"""
    said = json.dumps(team.let("ui", {"code": asking(team) + spy}, session=theirs))
    core_reads(team)
    time.sleep(0.3)
    said += json.dumps(team.let("ui", {"code": "import builtins; result = builtins.heard"}, session=theirs))
    team.stop()
    return MARK in said and said[-2000:] or "rpc_result" not in json.dumps(opened) and opened


def lines_in_the_name_of_another(program, mode):
    """An agent reports, and asks for files, under the session of another."""
    team = Team(program, mode)
    theirs, path = team.session("core"), team.workspace + "/core/db.py"
    code = f"""
update = {{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "FORGED", "kind": "edit", "status": "completed",
          "locations": [{{"path": {path!r}}}]}}
send({{"method": "session/update", "params": {{"sessionId": {theirs!r}, "update": update}}}})
result = [call("fs/read_text_file", {{"sessionId": {theirs!r}, "path": {path!r}}}),
          call("fs/write_text_file", {{"sessionId": {theirs!r}, "path": {path!r}, "content": "x"}})]
"""
    said = json.dumps(team.let("ui", {"code": code}))
    events = json.dumps(team.steer.ask("list_events", {"agent_id": "core"})["result"])
    written = "x" == open(path).read()
    team.stop()
    return (MARK in said or "FORGED" in events or written) and said + events[-500:]


def terminal_of_another(program, mode):
    """An agent reads a terminal that another one started, by its id."""
    team = Team(program, mode)
    path = team.workspace + "/core/auth.rs"
    theirs = team.let("core", {"code": f"result = call('terminal/create', {{'command': 'cat', 'args': [{path!r}]}})"})
    # An answer that did not come is a text.
    name = theirs.get("result", {}).get("terminalId") if isinstance(theirs, dict) else None
    code = f"""
result = []
for one in {{{name!r}, "terminal-1", "t1", "1"}}:
    for method in ("output", "wait_for_exit", "kill", "release"):
        for session in (None, {team.session('core')!r}):
            params = {{"terminalId": one}} | ({{"sessionId": session}} if session else {{}})
            result.append(call("terminal/" + method, params, 3))
"""
    said = json.dumps(team.let("ui", {"code": code}))
    own = json.dumps(team.let("core", {"code": f"result = call('terminal/output', {{'terminalId': {name!r}}})"}))
    team.stop()
    return (MARK in said or MARK not in own) and f"{theirs} {said[-500:]} {own}"


def terminal_outside(program, mode):
    """A terminal with the folder, the program or the environment of another zone."""
    team = Team(program, mode)
    core = team.workspace + "/core"
    tries = [{"command": "cat", "args": ["auth.rs"], "cwd": core}, {"command": core + "/run.sh"},
             {"command": "sh", "args": ["-c", "cat auth.rs"], "cwd": core},
             {"command": "cat", "args": [core + "/auth.rs"]},
             {"command": "cat", "args": [team.home + "/run/attacked.json"]},
             {"command": "sh", "args": ["-c", f"cat {core}/auth.rs; cat <{core}/db.py; . {core}/run.sh"]},
             {"command": "true", "env": [{"name": "LD_PRELOAD", "value": core + "/auth.rs"}]}]
    code = f"""
result = []
for one in {tries!r}:
    made = call("terminal/create", one, 8)
    name = ((made or {{}}).get("result") or {{}}).get("terminalId")
    if name: call("terminal/wait_for_exit", {{"terminalId": name}}, 8)
    result += [made, name and call("terminal/output", {{"terminalId": name}}, 8)]
"""
    said = json.dumps(team.let("ui", {"code": code}))
    token = team.token
    team.stop()
    return (MARK in said or token in said) and said


def recorded_through_links(program, mode):
    """The supervisor reads what an agent wrote again, at a path that leads elsewhere by then; the agent reads that
    in its own diff."""
    team = Team(program, mode)
    ui, core = team.workspace + "/ui", team.workspace + "/core"
    code = f"""
import shutil
for name in ("auth.rs", "db.py"):
    os.makedirs({ui!r} + "/d-" + name)
    open({ui!r} + "/d-" + name + "/" + name, "w").write("mine")
    open({ui!r} + "/" + name, "w").write("mine")
for name in ("auth.rs", "db.py"):
    shutil.rmtree({ui!r} + "/d-" + name); os.symlink({core!r}, {ui!r} + "/d-" + name)
    os.unlink({ui!r} + "/" + name); os.symlink({core!r} + "/" + name, {ui!r} + "/" + name)
    try: open({ui!r} + "/" + name, "a").write("x")
    except OSError: pass
os.symlink({core!r}, {ui!r} + "/core-link")
"""
    team.let("ui", {"code": code})
    said = json.dumps(team.let("ui", {"code": asking(team) + """
result = [ask("get_diff", {}), ask("list_events", {}), ask("blame", {"path": "ui/d-auth.rs/auth.rs"}),
          ask("blame", {"path": "ui/auth.rs"})]"""}))
    shown = team.cli("diff", "ui").stdout.decode("utf-8", "replace")
    team.stop()
    return MARK in said + shown and said[-2000:]


def ignore_file_that_is_elsewhere(program, mode):
    """The supervisor asks git's ignore files of the zone: links to files that never end, and pipes."""
    team = Team(program, mode)
    ui = team.workspace + "/ui"
    code = WAIT + f"""
import threading
for number, target in enumerate(("/proc/kmsg", "/sys/kernel/tracing/trace_pipe", "/dev/zero", "/dev/tty", "/proc/self/mem")):
    os.makedirs({ui!r} + f"/i{{number}}")
    os.symlink(target, {ui!r} + f"/i{{number}}/.gitignore")
    open({ui!r} + f"/i{{number}}/f", "w").write("x")
os.makedirs({ui!r} + "/swap"); at = {ui!r} + "/swap/.gitignore"; stop = []
os.mkfifo(at + "-pipe"); open(at + "-file", "w").write("x")
def swap():
    while not stop:
        for kind in ("-file", "-pipe"):
            try: os.link(at + kind, at + "-new"); os.rename(at + "-new", at)
            except OSError: pass
threading.Thread(target=swap, daemon=True).start()
end = time.monotonic() + 3
while time.monotonic() < end: open({ui!r} + "/swap/f", "a").write("x"); time.sleep(0.001)
stop.append(1)
"""
    team.let("ui", {"code": code}, 30)
    written = team.let("ui", {"code": f"open({ui!r} + '/after', 'w').write('AFTER'); result = 1"}, 20)
    events = team.steer.ask("list_events", {"agent_id": "ui", "types": ["file"], "limit": 1000}, 20)
    found = "ui/after" in json.dumps(events) or "ui/after" in json.dumps(team.steer.ask("get_diff", {"agent_id": "ui"}, 20))
    team.stop()
    return not found and f"nothing is recorded any more: {written} {str(events)[-300:]}"


def recording_of_special_files(program, mode):
    """The supervisor reads pipes, huge and endless files that an agent opens for writing."""
    team = Team(program, mode)
    ui = team.workspace + "/ui"
    code = f"""
os.mkfifo({ui!r} + "/pipe"); os.close(os.open({ui!r} + "/pipe", os.O_RDWR))
with open({ui!r} + "/sparse", "w") as file: file.truncate(1 << 40)
with open({ui!r} + "/large", "w") as file: file.truncate(255 << 20)
for number in range(2000): open({ui!r} + f"/many{{number}}", "w").write("x")
result = 1
"""
    start = time.monotonic()
    team.let("ui", {"code": code}, 60)
    after = team.let("ui", {"code": f"open({ui!r} + '/after', 'w').write('AFTER'); result = 1"}, 60)
    resident = int(open(f"/proc/{team.process.pid}/status").read().split("VmRSS:")[1].split()[0]) >> 10
    seconds = time.monotonic() - start
    found = "ui/after" in json.dumps(team.steer.ask("get_diff", {"agent_id": "ui"}, 60))
    team.stop()
    return (after != 1 or not found or resident > 400 or seconds > 60) and f"{after} {found} {resident} MB {seconds:.0f} s"


def undone_through_links(program, mode):
    """A person takes back what an agent wrote, in folders that lead elsewhere by then."""
    team = Team(program, mode)
    ui, core = team.workspace + "/ui", team.workspace + "/core"
    os.makedirs(core + "/way")
    for name in ("auth.rs", "way/f"):
        with open(f"{core}/{name}", "a") as file:
            file.write("theirs")
    code = f"""
os.makedirs({ui!r} + "/way"); open({ui!r} + "/way/f", "w").write("one"); open({ui!r} + "/auth.rs", "w").write("one")
"""
    team.let("ui", {"code": code})
    team.let("ui", {"code": f"open({ui!r} + '/way/f', 'w').write('theirs'); open({ui!r} + '/auth.rs', 'w').write('two')"})
    before = {name: open(f"{core}/{name}").read() for name in ("auth.rs", "way/f")}
    # What nobody records: the folders change while the agent seems to be at rest.
    code = f"""
import shutil, threading
stop = []
def swap():
    os.symlink({core!r} + "/way", {ui!r} + "/way-link")
    while not stop:
        import ctypes
        ctypes.CDLL(None).syscall(316, -100, ({ui!r} + "/way").encode(), -100, ({ui!r} + "/way-link").encode(), 2)
import builtins; builtins.swapping = threading.Thread(target=swap, daemon=True); builtins.swapping.start()
"""
    team.let("ui", {"code": code})
    for _ in range(15):
        team.steer.ask("undo", {"agent_id": "ui", "force": True})
        team.steer.ask("redo", {"agent_id": "ui", "force": True})
    after = {name: os.path.exists(f"{core}/{name}") and open(f"{core}/{name}").read() for name in before}
    names = sorted(os.listdir(core + "/way"))
    team.stop()
    return (before != after or names != ["f"]) and f"{after} {names}"


def moved_while_it_waits(program, mode):
    """A call waits for a decision; its path leads elsewhere by the time it is allowed: that is not what was allowed."""
    team = Team(program, mode, lead=True)
    ui, core = team.workspace + "/ui", team.workspace + "/core"
    os.makedirs(core + "/nul", exist_ok=True)
    with open(core + "/nul/auth.rs", "w") as file:
        file.write("harmless")
    if team.user:
        os.chown(core + "/nul/auth.rs", team.user.pw_uid, team.user.pw_gid)
    code = f"""
import subprocess
os.symlink({core!r} + "/nul", {ui!r} + "/held")
child = subprocess.Popen(["cat", {ui!r} + "/held/auth.rs"], stdout=-1, stderr=-2)
time.sleep(1)
os.unlink({ui!r} + "/held"); os.symlink({core!r}, {ui!r} + "/held")
result = child.communicate(timeout=20)[0].decode()
"""
    allowed = []

    def allow():
        pending = lambda: [one for one in team.steer.ask("list_blocked", {"status": "pending"})["result"]
                           if one["agent_id"] == "ui"]
        for one in until(pending, 8) or []:
            time.sleep(1.5)
            allowed.append((one["path"], team.steer.ask("resolve_blocked", {"id": one["id"], "decision": "allow"})))

    person = threading.Thread(target=allow)
    person.start()
    said = team.let("ui", {"code": WAIT + code})
    person.join()
    team.stop()
    return (MARK in str(said) or not allowed) and f"{said} {allowed}"


def shown_at_the_terminal(program, mode):
    """What an agent says, names and writes reaches a person's terminal by the commands that look back."""
    team = Team(program, mode)
    ui, evil = team.workspace + "/ui", "\x1b]0;x\x07\x1b[2J\u202eEVIL\x9b1m\rEVIL"
    code = f"""
evil = {evil!r}
open({ui!r} + "/" + evil.replace("/", ""), "w").write(evil + "\\n")
for update in ({{"sessionUpdate": "agent_message_chunk", "content": {{"type": "text", "text": evil}}}},
               {{"sessionUpdate": "agent_thought_chunk", "content": {{"type": "text", "text": evil}}}},
               {{"sessionUpdate": "plan", "entries": [{{"content": evil, "status": "pending", "priority": "high"}}]}},
               {{"sessionUpdate": "tool_call", "toolCallId": evil, "title": evil, "kind": "edit", "status": "completed",
                 "locations": [{{"path": {ui!r} + "/" + evil}}]}}):
    send({{"method": "session/update", "params": {{"sessionId": "s-" + str(os.getpid()), "update": update}}}})
import sys; print(evil, file=sys.stderr, flush=True)
call("fs/write_text_file", {{"path": {team.workspace!r} + "/core/" + evil, "content": "x"}}, 8)
"""
    watching = subprocess.Popen([team.program, "watch"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, env=team.environment, cwd=team.folder, **team.rights())
    time.sleep(0.5)
    team.let("ui", {"code": code})
    time.sleep(1)
    watching.terminate()
    shown = {"watch": watching.communicate()[0], "up": team.said().encode()}
    for words in (["ps"], ["blocked"], ["history"], ["history", "ui"], ["history", "search", "EVIL"], ["logs", "ui"],
                  ["diff", "ui", "--stat"], ["undo", "ui", "--dry-run"], ["undo", "ui", "--yes"], ["redo", "ui", "--yes"]):
        shown[" ".join(words)] = team.typed(*words)
    events = team.steer.ask("list_events", {"agent_id": "ui", "limit": 1000})["result"]["events"]
    for event in events[-12:]:
        shown["history show " + event["type"]] = team.typed("history", "show", event["id"])
    team.stop()
    bad = [name for name, text in shown.items()
           if any(piece.encode() in text for piece in ("\x1b]", "\x1b[2J", "\u202e", "\x9b")) or b"x\rEVIL" in text]
    seen = [name for name, text in shown.items() if b"EVIL" in text]
    return bad or (len(seen) < 6 and f"shown only by {seen}")


def journal_without_a_token(program, mode):
    """A program that connects without a token gets no content of journals, nor may it steer."""
    team = Team(program, mode)
    core_reads(team)
    spy = Port(team.port)
    said = [spy.ask(method, params) for method, params in (
        ("list_events", {}), ("search_events", {"query": MARK}), ("get_diff", {}), ("blame", {"path": "ui/a.txt"}),
        ("replay_session", {"session_id": team.session("core"), "speed": "max"}), ("undo", {"agent_id": "core"}),
        ("rewind_session", {"session_id": team.session("core"), "to": "x"}), ("fork_session", {"session_id": "x"}))]
    team.stop()
    return [one for one in said if (one.get("error") or {}).get("code") != 401]


ATTACKS = [events_of_another, steered_by_a_member, session_named_as_another, lines_in_the_name_of_another,
           terminal_of_another, terminal_outside, recorded_through_links, ignore_file_that_is_elsewhere,
           recording_of_special_files, undone_through_links, moved_while_it_waits, shown_at_the_terminal,
           journal_without_a_token]
