"""A model server that plays the tour. It speaks the APIs of OpenAI (chat and responses), Anthropic
and Gemini, streamed or not, and keeps what the agents sent.

It has no state: which step is next is counted from the conversation that each request brings.
"""

import gzip
import json
import re
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import tour

MARK = re.compile(r"\[\[tour ([^\]\s]+)\]\]")
MODELS = ["fake-model", "gpt-5", "gpt-5.5", "claude-sonnet-4-5", "gemini-2.5-pro", "qwen3-coder-plus"]
INSIDE, OUTSIDE = "CANARY-core-7f3a", "CANARY-outside-51c2"


class Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.forget()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def forget(self):
        self.steps, self.saw_inside, self.saw_outside, self.longest = 0, False, False, ""
        self.tools = set()

    def note(self, body, step, tools):
        text = json.dumps(body)
        with self.lock:
            self.tools.update(name for name in tools if name)
            self.steps = max(self.steps, step)
            self.longest = max(self.longest, text, key=len)
            self.saw_inside |= INSIDE in text
            self.saw_outside |= OUTSIDE in text

    def handle_error(self, request, client_address):
        # An agent may leave in the middle of an answer.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def said(content):
    """The text of a message, without what tools returned."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(said(part) for part in content)
    if isinstance(content, dict) and content.get("type") not in ("tool_result", "tool_use"):
        return content["text"] if isinstance(content.get("text"), str) else said(content.get("content"))
    return ""


def read_chat(body):
    tools = {}
    for tool in body.get("tools") or []:
        function = tool.get("function") or tool
        tools[function.get("name")] = function.get("parameters") or {}
    turns = []
    for message in body.get("messages") or []:
        if message["role"] == "user":
            turns.append(said(message.get("content")))
        elif message["role"] == "assistant" and message.get("tool_calls"):
            turns.append(None)
    return tools, turns


def read_responses(body):
    tools, turns, last = {}, [], None
    for tool in body.get("tools") or []:
        if tool.get("type") == "function":
            tools[tool["name"]] = tool.get("parameters") or {}
        elif tool.get("type") == "custom":
            tools[tool["name"]] = None
    given = body.get("input")
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given or []:
        if item.get("type") in ("function_call", "custom_tool_call"):
            # The calls of one step have ids that begin alike.
            step = (item.get("call_id") or "")[:8]
            if step != last:
                turns.append(None)
            last = step
        elif item.get("role") == "user":
            turns.append(said(item.get("content")))
            last = None
    return tools, turns


def names(read, body):
    """The names of all tools that the model is shown: some are in groups, which the tour has no use for."""
    groups = [tool for tool in body.get("tools") or [] if tool.get("type") == "namespace"]
    grouped = (tool["name"] for group in groups for tool in group.get("tools") or [] if not tool.get("defer_loading"))
    return [*read(body)[0], *grouped]


def read_anthropic(body):
    tools = {t["name"]: t["input_schema"] for t in body.get("tools") or [] if "input_schema" in t}
    turns = []
    for message in body.get("messages") or []:
        content = message.get("content")
        if message["role"] == "user":
            turns.append(said(content))
        elif any(isinstance(p, dict) and p.get("type") == "tool_use" for p in content or []):
            turns.append(None)
    return tools, turns


def read_gemini(body):
    tools, turns = {}, []
    for group in body.get("tools") or []:
        for tool in group.get("functionDeclarations") or []:
            tools[tool["name"]] = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
    for message in body.get("contents") or []:
        parts = message.get("parts") or []
        if message.get("role") != "model":
            turns.append("\n".join(str(part.get("text") or "") for part in parts))
        elif any("functionCall" in part for part in parts):
            turns.append(None)
    return tools, turns


def plan(read, body):
    """The calls of the next step (None: the model ends), and the step's number."""
    tools, turns = read(body)
    ws, step = None, 0
    for turn in turns:
        if turn is None:
            step += 1
        elif found := MARK.findall(turn):
            ws, step = found[-1], 0
    return (tour.calls(tools, ws, step) if ws and tools else None), step if ws else 0


def like(schema, root=None):
    """Something of a schema, for requests that want JSON."""
    root = root or schema
    schema = tour.resolve(schema, root)
    kinds = tour.types(schema)
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("properties") or "object" in kinds:
        return {key: like(part, root) for key, part in (schema.get("properties") or {}).items()}
    empty = {"array": [], "boolean": False, "integer": 0, "number": 0}
    return next((value for kind, value in empty.items() if kind in kinds), "flash")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.json({})

    def do_GET(self):
        models = [{"id": name, "object": "model", "type": "model", "created": 0} for name in MODELS]
        self.json({"object": "list", "data": models, "has_more": False})

    def do_POST(self):
        body, path = self.body(), self.path.split("?")[0]
        if path.endswith("/chat/completions"):
            self.serve(read_chat, body, self.answer_chat)
        elif path.endswith("/responses"):
            self.serve(read_responses, body, self.answer_responses)
        elif path.endswith("/messages"):
            self.serve(read_anthropic, body, self.answer_anthropic)
        elif "enerateContent" in path:
            self.serve(read_gemini, body, self.answer_gemini)
        elif path.endswith("/count_tokens"):
            self.json({"input_tokens": 1000})
        else:
            self.json({"totalTokens": 1000})

    def serve(self, read, body, write):
        calls, step = plan(read, body)
        self.server.note(body, step, names(read, body))
        write(body, calls or [], f"Step {step + 1}." if calls else "Done with the tour.", step)

    def body(self):
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            return json.loads(raw or b"{}")
        except ValueError:
            return {}

    def json(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, data, name=None):
        head = f"event: {name}\n" if name else ""
        text = data if isinstance(data, str) else json.dumps(data)
        self.wfile.write(f"{head}data: {text}\n\n".encode())
        self.wfile.flush()

    def answer_chat(self, body, calls, text, step):
        wanted = (body.get("response_format") or {}).get("json_schema")
        if wanted:
            text = json.dumps(like(wanted.get("schema") or {}))
        made = [
            {"index": i, "id": f"call_{step}{i}{uuid.uuid4().hex[:6]}", "type": "function",
             "function": {"name": call["name"], "arguments": json.dumps(call["args"])}}
            for i, call in enumerate(call for call in calls if "args" in call)
        ]
        ends = "tool_calls" if made else "stop"
        usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
        head = {"id": f"chatcmpl-{uuid.uuid4().hex[:8]}", "created": 0, "model": body.get("model", "fake-model")}
        if not body.get("stream"):
            message = {"role": "assistant", "content": text}
            if made:
                message["tool_calls"] = [{k: v for k, v in call.items() if k != "index"} for call in made]
            choice = {"index": 0, "message": message, "finish_reason": ends}
            return self.json({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
        head["object"] = "chat.completion.chunk"
        self.stream()
        for delta, end in (({"role": "assistant", "content": text}, None),
                           *(({"tool_calls": [call]}, None) for call in made), ({}, ends)):
            self.event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
        self.event({**head, "choices": [], "usage": usage})
        self.event("[DONE]")

    def answer_responses(self, body, calls, text, step):
        wanted = ((body.get("text") or {}).get("format") or {}).get("schema")
        if wanted:
            text = json.dumps(like(wanted))
        items = [{"type": "message", "id": f"msg_{uuid.uuid4().hex[:8]}", "role": "assistant",
                  "status": "completed",
                  "content": [{"type": "output_text", "text": text, "annotations": []}]}]
        for call in calls:
            own = {"call_id": f"step{step:04}{uuid.uuid4().hex[:6]}", "name": call["name"], "status": "completed"}
            own |= ({"type": "function_call", "id": f"fc_{uuid.uuid4().hex[:8]}", "arguments": json.dumps(call["args"])}
                    if "args" in call else
                    {"type": "custom_tool_call", "id": f"ctc_{uuid.uuid4().hex[:8]}", "input": call["text"]})
            items.append(own)
        usage = {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1020}
        whole = {"id": f"resp_{uuid.uuid4().hex[:8]}", "object": "response", "created_at": 0,
                 "model": body.get("model", "fake-model"), "status": "completed", "output": items, "usage": usage}
        if not body.get("stream"):
            return self.json(whole)
        self.stream()
        sent = 0

        def event(name, **more):
            nonlocal sent
            self.event({"type": name, "sequence_number": sent, **more}, name)
            sent += 1

        event("response.created", response={**whole, "status": "in_progress", "output": []})
        for index, item in enumerate(items):
            event("response.output_item.added", output_index=index, item=item)
            if item["type"] == "message":
                part = {"item_id": item["id"], "output_index": index, "content_index": 0}
                event("response.output_text.delta", delta=text, **part)
                event("response.output_text.done", text=text, **part)
            event("response.output_item.done", output_index=index, item=item)
        event("response.completed", response=whole)

    def answer_anthropic(self, body, calls, text, step):
        blocks = [{"type": "text", "text": text}]
        blocks += [{"type": "tool_use", "id": f"toolu_{step}{i}{uuid.uuid4().hex[:8]}",
                    "name": call["name"], "input": call["args"]} for i, call in enumerate(calls)]
        end = "tool_use" if calls else "end_turn"
        message = {"id": f"msg_{uuid.uuid4().hex[:8]}", "type": "message", "role": "assistant",
                   "model": body.get("model"), "stop_sequence": None,
                   "usage": {"input_tokens": 1000, "output_tokens": 20}}
        if not body.get("stream"):
            return self.json({**message, "content": blocks, "stop_reason": end})
        self.stream()
        event = lambda name, **more: self.event({"type": name, **more}, name)
        event("message_start", message={**message, "content": [], "stop_reason": None})
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": text}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            event("content_block_start", index=index, content_block=empty)
            event("content_block_delta", index=index, delta=delta)
            event("content_block_stop", index=index)
        event("message_delta", delta={"stop_reason": end, "stop_sequence": None}, usage={"output_tokens": 20})
        event("message_stop")

    def answer_gemini(self, body, calls, text, step):
        wanted = body.get("generationConfig") or {}
        schema = wanted.get("responseJsonSchema") or wanted.get("responseSchema")
        if schema or wanted.get("responseMimeType") == "application/json":
            text = json.dumps(like(schema or {"type": "object"}))
        parts = [{"text": text}]
        parts += [{"functionCall": {"name": call["name"], "args": call["args"]}} for call in calls]
        answer = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 20, "totalTokenCount": 1020},
            "modelVersion": "gemini-2.5-pro",
        }
        if "stream" not in self.path:
            return self.json(answer)
        self.stream()
        self.event(answer)
