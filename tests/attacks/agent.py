"""An ACP agent that does what its prompts say: `{"run": [argv]}` starts a program, `{"code": "…"}`
is executed, and may use `call`. It answers with one message of JSON."""

import json
import os
import subprocess
import sys
import threading

answers, arrived, lock, number = {}, threading.Condition(), threading.Lock(), [1000]
session = ["attacker"]
# The names of the next sessions.
names = []


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def call(method, params, timeout=15):
    """Asks the client for something, and returns its answer."""
    number[0] += 1
    ours = number[0]
    send({"id": ours, "method": method, "params": {"sessionId": session[0], **params}})
    with arrived:
        arrived.wait_for(lambda: ours in answers, timeout)
        return answers.pop(ours, None)


def run(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    return (done.stdout + done.stderr)[-100_000:].decode("utf-8", "replace")


def prompted(message):
    session[0] = message["params"]["sessionId"]
    text = "".join(block.get("text", "") for block in message["params"]["prompt"])
    result = text
    try:
        # What the team says first of its tools goes before it.
        task = json.loads(text.rpartition("\n")[2])
        if not isinstance(task, dict):
            raise ValueError(text)
        if "run" in task:
            result = run(task["run"])
        else:
            known = {"call": call, "send": send, "names": names, "json": json, "os": os, "result": None}
            exec(task["code"], known)
            result = known["result"]
    except ValueError:
        with open(os.environ.get("TMPDIR", "/tmp") + "/told.txt", "a") as file:
            file.write(text + "\n")
    except Exception as error:
        result = repr(error)
    chunk = {"sessionUpdate": "agent_message_chunk",
             "content": {"type": "text", "text": json.dumps(result)}}
    send({"method": "session/update", "params": {"sessionId": session[0], "update": chunk}})
    send({"id": message["id"], "result": {"stopReason": "end_turn"}})


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method is None:
        with arrived:
            answers[message.get("id")] = message
            arrived.notify_all()
    elif method == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    elif method == "session/new":
        send({"id": message["id"], "result": {"sessionId": names.pop() if names else f"s-{os.getpid()}"}})
    elif method == "session/prompt":
        threading.Thread(target=prompted, args=(message,), daemon=True).start()
    elif "id" in message:
        send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
