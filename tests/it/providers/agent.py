"""A small agent that calls the provider it is led to, as its prompts say."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request


VERBS = ["call", "calls", "leak", "persist", "open", "close", "report", "env", "sh"]

# Answers that are read no further.
opened = []


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask(words, token, **more):
    model = os.environ.get("MY_MODEL") or "claude-sonnet-4-5"
    body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": words}], **more}
    headers = {"content-type": "application/json", "x-api-key": token}
    url = os.environ["MY_URL"] + "/v1/messages"
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers))


def call(words, token):
    try:
        with ask(words, token) as answer:
            return "200 " + json.load(answer)["content"][0]["text"]
    except urllib.error.HTTPError as error:
        return "%d %s" % (error.code, json.load(error)["error"]["message"])


def work(verb, rest):
    token = os.environ["MY_TOKEN"]
    if verb == "call":
        return call(rest, token), {}
    if verb == "calls":
        return "\n".join(call("hello", token) for _ in range(int(rest))), {}
    if verb == "leak":
        return call("%s, or %s" % (rest.replace(" ", ""), token), token), {}
    if verb == "persist":
        said = call(rest, token)
        # It tries again in silence, and then waits.
        return said if said.startswith("200") or call(rest, token).startswith("200") else None, {}
    if verb == "open":
        answer = ask(rest, token, model="slow", stream=True)
        answer.readline()
        opened.append(answer)
        return "opened", {}
    if verb == "close":
        opened.pop().close()
        return "closed", {}
    if verb == "report":
        call("hello", token)
        total = int(rest)
        return "reported", {"usage": {"inputTokens": total, "outputTokens": 0, "totalTokens": total}}
    if verb == "env":
        return "\n".join("%s=%s" % pair for pair in os.environ.items()), {}
    if verb == "sh":
        return subprocess.run(rest, shell=True, capture_output=True, text=True).stdout, {}
    return "?", {}


for line in sys.stdin:
    message = json.loads(line)
    of, method = message.get("id"), message.get("method")
    if method == "initialize":
        send({"id": of, "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    elif method == "session/new":
        send({"id": of, "result": {"sessionId": "s1"}})
    elif method == "session/prompt":
        text = "\n".join(block.get("text", "") for block in message["params"]["prompt"])
        # A candidate that takes over is told more than the task.
        lines = [line.strip().partition(" ") for line in text.split("\n")]
        verb, _, rest = next(line for line in lines if line[0] in VERBS)
        said, beside = work(verb, rest)
        if said is None:
            waiting = of
            continue
        content = {"type": "text", "text": said}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        send({"method": "session/update", "params": {"sessionId": "s1", "update": update}})
        send({"id": of, "result": {"stopReason": "end_turn", **beside}})
    elif method == "session/cancel":
        send({"id": waiting, "result": {"stopReason": "cancelled"}})
    elif of is not None:
        send({"id": of, "error": {"code": -32601, "message": "no"}})
