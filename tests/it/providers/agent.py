"""A small agent that calls the provider it is led to, as its prompts say."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request


VERBS = ["call", "calls", "report", "env", "sh"]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(words, token):
    model = os.environ.get("MY_MODEL") or "claude-sonnet-4-5"
    ask = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": words}]}
    headers = {"content-type": "application/json", "x-api-key": token}
    url = os.environ["MY_URL"] + "/v1/messages"
    request = urllib.request.Request(url, json.dumps(ask).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return "200 " + json.load(answer)["content"][0]["text"]
    except urllib.error.HTTPError as error:
        return "%d %s" % (error.code, json.load(error)["error"]["message"])


def work(verb, rest):
    token = os.environ["MY_TOKEN"]
    if verb == "call":
        return call(rest, token), {}
    if verb == "calls":
        return "\n".join(call("hello", token) for _ in range(int(rest))), {}
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
        content = {"type": "text", "text": said}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        send({"method": "session/update", "params": {"sessionId": "s1", "update": update}})
        send({"id": of, "result": {"stopReason": "end_turn", **beside}})
    elif of is not None:
        send({"id": of, "error": {"code": -32601, "message": "no"}})
