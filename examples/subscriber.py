#!/usr/bin/env python3
"""Follows the port of a running team, a line an event, and decides blocked accesses by rule.

    python3 examples/subscriber.py
    python3 examples/subscriber.py --team demo --resolve --allow 'src/api/**' --deny

The team is found by --port, by --team (its run file $EISEN_DIR/run/TEAM.json), by EISEN_PORT, or
at the default port 17320. Deciding needs the control token: EISEN_TOKEN, or the run file's.
Exit codes: 0 the team ended, 1 it can't be reached or refused the token, 2 wrong usage.
"""

import argparse
import json
import os
import re
import socket
import sys
from pathlib import Path

DEFAULT_PORT = 17320


def main() -> int:
    options = parse_options()
    try:
        port, token = find_team(options)
        with connect(options.host, port) as connection:
            return Subscriber(connection, options, token).follow()
    except (OSError, Failure) as error:
        print(f"subscriber: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def connect(host: str, port: int) -> socket.socket:
    try:
        return socket.create_connection((host, port))
    except OSError as error:
        raise Failure(f"no team at {host}:{port}: {error}") from None


class Failure(Exception):
    """Something a person must act on."""


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Follows the port of a running team, a line an event.",
        epilog="A blocked access is allowed by the first --allow that matches its path; else a "
        "read gets the --answer; else it is denied with --deny; else it is left to others.",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, help="of the team")
    parser.add_argument("--team", help="its name: port and token are read from its run file")
    parser.add_argument("--resolve", action="store_true", help="decide blocked accesses")
    parser.add_argument("--allow", metavar="GLOB", action="append", default=[], type=glob)
    parser.add_argument("--answer", metavar="TEXT", help="what a blocked read gets for the file")
    parser.add_argument("--deny", action="store_true", help="deny what nothing else decides")
    options = parser.parse_args()
    if options.resolve != bool(options.allow or options.answer is not None or options.deny):
        parser.error("--resolve needs --allow, --answer or --deny, and they need --resolve")
    return options


def find_team(options: argparse.Namespace) -> tuple[int, str | None]:
    """The port, and the control token if there is one to be found."""
    run_dir = Path(os.environ.get("EISEN_DIR") or Path.home() / ".eisen") / "run"
    token = os.environ.get("EISEN_TOKEN")
    if options.team:
        try:
            run = read_run_file(run_dir / f"{options.team}.json")
        except (OSError, ValueError) as error:
            raise Failure(f"no team {options.team!r} is running here: {error}") from None
        return options.port or run["port"], token or run["token"]
    port = options.port or int(os.environ.get("EISEN_PORT") or DEFAULT_PORT)
    if options.resolve and not token:
        token = token_of_port(run_dir, port)
    return port, token


def token_of_port(run_dir: Path, port: int) -> str | None:
    for path in sorted(run_dir.glob("*.json")):
        try:
            run = read_run_file(path)
        except (OSError, ValueError):
            continue
        if run["port"] == port:
            return run["token"]
    return None


def read_run_file(path: Path) -> dict:
    run = json.loads(path.read_text())
    if not isinstance(run, dict) or not {"port", "token"} <= run.keys():
        raise ValueError(f"{path} is no run file")
    return run


class Subscriber:
    def __init__(self, connection: socket.socket, options: argparse.Namespace, token: str | None):
        self.connection = connection
        self.options = options
        self.token = token
        self.decided: set[str] = set()

    def follow(self) -> int:
        if self.token:
            self.send({"type": "auth", "token": self.token})
        elif self.options.resolve:
            raise Failure("--resolve needs a token: EISEN_TOKEN or --team")
        for line in self.connection.makefile("rb"):
            try:
                event = json.loads(line)
                print(describe(event), flush=True)
            except (ValueError, KeyError, TypeError, AttributeError):
                print(f"?         {clean(line.decode(errors='replace').strip())}", flush=True)
                continue
            if event["type"] == "rpc_error" and event.get("id") is None:
                if event["error"]["code"] == 401:
                    raise Failure("the team refused the token")
            if event["type"] == "blocked" and self.options.resolve:
                self.decide(event)
        return 0

    def decide(self, blocked: dict) -> None:
        """Decides an access once, when it is first seen; a denied one is decided for its next try."""
        seen = blocked["id"] in self.decided
        self.decided.add(blocked["id"])
        if seen or blocked["status"] not in ("pending", "denied"):
            return
        decision = self.decision(blocked)
        if decision:
            params = {"id": blocked["id"], **decision}
            method = "resolve_blocked"
            self.send({"type": "rpc", "id": blocked["id"], "method": method, "params": params})

    def decision(self, blocked: dict) -> dict | None:
        if blocked.get("denied_by"):
            # Only a person opens what a pattern of `denied` matches, by `--even-denied`.
            denies = self.options.deny and blocked["status"] == "pending"
            return {"decision": "deny"} if denies else None
        if any(pattern.fullmatch(blocked["path"]) for pattern in self.options.allow):
            return {"decision": "allow"}
        if self.options.answer is not None:
            if blocked["action"] == "read" and blocked["via"] == "fs":
                return {"decision": "answer", "content": self.options.answer}
        if self.options.deny and blocked["status"] == "pending":
            return {"decision": "deny"}
        return None

    def send(self, message: dict) -> None:
        self.connection.sendall(json.dumps(message).encode() + b"\n")


def describe(event: dict) -> str:
    """One readable line; an event of a type not known here is shown as it came."""
    kind = event["type"]
    who = f"{event.get('agent_id', '')}/{event.get('session_id', '')}"
    if kind == "snapshot":
        nodes = event["nodes"].values()
        hot = sum(node["in_context"] for node in nodes)
        text = f"{who}  #{event['seq']}  {len(nodes)} files, {hot} in context"
    elif kind == "delta":
        parts = [f"{n['path']} {n['last_action']} {n['heat']:.2f}" for n in event["updates"]]
        parts += [f"-{path}" for path in event["removed"]]
        more = f", and {len(parts) - 6} more" if len(parts) > 6 else ""
        text = f"{who}  #{event['seq']}  {', '.join(parts[:6])}{more}"
    elif kind == "usage":
        cost = event["cost"]
        money = f", {cost['amount']} {cost['currency']}" if cost else ""
        text = f"{who}  {event['used']} of {event['size']} tokens{money}"
    elif kind == "blocked":
        owners = ", ".join(event["owners"]) or "nobody"
        text = (
            f"{event['id']} {event['status']}  {event['agent_id']} {event['action']} "
            f"{event['path']}  (by {event['via']}, owned by {owners})"
        )
    elif kind == "agent":
        pid = f"  pid {event['pid']}" if event["pid"] else ""
        reason = f"  {event['reason']}" if event["reason"] else ""
        text = f"{event['agent_id']}  {event['state']}{pid}{reason}"
    elif kind == "turn":
        reason = f": {event['reason']}" if event.get("reason") else ""
        text = f"{who}  turn {event['turn']}  {event['stop_reason']}{reason}"
    elif kind == "lagged":
        text = f"{event['missed']} events were missed"
    elif kind == "rpc_error":
        text = f"{event.get('id')}  {event['error']['code']} {event['error']['message']}"
    else:
        text = json.dumps({key: value for key, value in event.items() if key != "type"})
    return clean(f"{kind:<9} {text}")


def clean(text: str) -> str:
    """Paths and messages come from agents: nothing of them may steer the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def glob(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stay within a segment, `**` spans any number, `{a,b}` and `[ab]` choose."""
    regex, depth = "", 0
    tokens = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[!?\]?[^]]*\]|[{},]|.", re.DOTALL)
    for token in tokens.findall(pattern):
        if token == "**/":
            regex += "(?:.*/)?"
        elif token == "/**":
            regex += "(?:/.*)?"
        elif token == "**":
            regex += ".*"
        elif token == "*":
            regex += "[^/]*"
        elif token == "?":
            regex += "[^/]"
        elif token == "{":
            regex, depth = regex + "(?:", depth + 1
        elif token == "}" and depth:
            regex, depth = regex + ")", depth - 1
        elif token == "," and depth:
            regex += "|"
        elif token.startswith("[") and len(token) > 2:
            regex += "[" + token[1:].replace("\\", "\\\\").replace("!", "^", token[1] == "!")
        elif token == "[" or (token == "}" and not depth):
            raise argparse.ArgumentTypeError(f"{pattern!r} is no pattern: {token} stands alone")
        else:
            regex += re.escape(token)
    if depth:
        raise argparse.ArgumentTypeError(f"{pattern!r} is no pattern: a {{ stands alone")
    try:
        return re.compile(regex, re.DOTALL)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{pattern!r} is no pattern: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
