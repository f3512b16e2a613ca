"""A team of scripted agents in a temporary folder, and clients of its port: for the trials beside
this file. Needs nothing but Python 3.9 and the program."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What each agent does by what it is told: a file of its own is read, one of another's is denied, a
# program runs in a terminal.
SCRIPT = """
[agent]
name = "{id}"
[[on]]
prompt = "read"
steps = [{{ read = "{id}/a.txt" }}, {{ say = "read {{last}}" }}, {{ usage = {{ used = 10, size = 1000 }} }}]
[[on]]
prompt = "write"
steps = [{{ write = "{id}/a.txt", content = "{id}" }}, {{ say = "written" }}]
[[on]]
prompt = "denied"
steps = [{{ read = "{other}/a.txt", on_error = [{{ say = "denied" }}] }}]
[[on]]
prompt = "run"
steps = [{{ run = "cat {id}/a.txt" }}, {{ say = "ran" }}]
[[on]]
steps = [{{ say = "{{prompt}}" }}]
"""


def program(given):
    """The program to try: the one given, else the release build of this checkout."""
    path = Path(given or ROOT / "target/release/eisen-core").resolve()
    if not path.exists():
        raise SystemExit(f"{path} is not there: cargo build --release, or --program PATH")
    return str(path)


class Team:
    """`eisen-core up` in a folder of its own. All that it starts has `mark` in its environment."""

    def __init__(self, program, agents, keys=""):
        self.program, self.folder = program, Path(tempfile.mkdtemp(prefix="eisen-trial-"))
        self.agents = [f"a{n}" for n in range(agents)]
        self.mark = f"EISEN_TRIAL={uuid.uuid4()}"
        self.child = None
        text = f'[team]\nname = "trial"\nworkspace = "work"\nlisten = "127.0.0.1:0"\n{keys}\n'
        for number, id in enumerate(self.agents):
            other = self.agents[(number + 1) % agents]
            (self.folder / "work" / id).mkdir(parents=True)
            (self.folder / "work" / id / "a.txt").write_text(id)
            script = self.folder / f"{id}.toml"
            script.write_text(SCRIPT.format(id=id, other=other))
            command = json.dumps([program, "scripted-agent", str(script)])
            text += f'[[agents]]\nid = "{id}"\ncommand = {command}\n'
            text += f'[agents.zone]\nallowed = ["{id}/**"]\n'
        (self.folder / "eisen.toml").write_text(text)

    def start(self):
        name, value = self.mark.split("=")
        kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        (self.folder / "tmp").mkdir(exist_ok=True)
        here = {"HOME": self.folder / "home", "EISEN_DIR": self.folder / "eisen", "TMPDIR": self.folder / "tmp"}
        environment = {**kept, **{key: str(path) for key, path in here.items()}, name: value}
        log = open(self.folder / "log", "ab")
        self.child = subprocess.Popen(
            [self.program, "up", "-c", str(self.folder / "eisen.toml")],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True,
        )
        for line in self.child.stderr:
            log.write(line)
            if line.startswith(b"eisen-core tcp port: "):
                self.port = int(line.split()[-1])
                break
        else:
            raise SystemExit(f"the team did not come up: {(self.folder / 'log').read_text()}")
        pipe = self.child.stderr
        threading.Thread(target=shutil.copyfileobj, args=(pipe, log), daemon=True).start()
        run = json.loads((self.folder / "eisen/run/trial.json").read_text())
        self.token = run["token"]

    def client(self):
        return Client(self.port, self.token)

    def marked(self):
        """The processes that are left of this team, with what they are."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                    if state not in "ZX":
                        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                        found.append((int(entry.name), command.decode(errors="replace")))
            except OSError:
                pass
        return found

    def left_after(self, patience):
        """What is left once nothing is, or after so many seconds."""
        until = time.monotonic() + patience
        while (left := self.marked()) and time.monotonic() < until:
            time.sleep(0.02)
        return left

    def memory(self):
        """What is resident of the supervisor, in bytes."""
        pages = Path(f"/proc/{self.child.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def end(self, how=signal.SIGINT):
        self.child.send_signal(how)
        return self.child.wait(60)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Client:
    """One connection to the port, with the token."""

    def __init__(self, port, token=None):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.lines = self.socket.makefile("rb")
        self.last = 0
        if token:
            self.send({"type": "auth", "token": token})

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def ask(self, method, **params):
        self.last += 1
        self.send({"type": "rpc", "id": self.last, "method": method, "params": params})
        return self.last

    def call(self, method, **params):
        """Asks, and waits for the answer; what else comes is let go."""
        id = self.ask(method, **params)
        for line in self:
            if line.get("type") == "rpc_result" and line.get("id") == id:
                return line
        raise ConnectionError("the port closed the connection")

    def until_ready(self, agents):
        """Waits until these agents are ready."""
        missing = set(agents)
        for line in self:
            if line.get("type") == "agent" and line["state"] == "ready":
                missing.discard(line["agent_id"])
                if not missing:
                    return
        raise ConnectionError(f"the port closed the connection before {missing} were ready")

    def __iter__(self):
        for line in self.lines:
            yield json.loads(line)

    def close(self):
        self.socket.close()
