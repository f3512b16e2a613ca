"""Attacks by what an agent starts: runs and helpers whose program, profile or folder it chooses, and places of its own
profile that it replaces. Each returns what it got, or nothing. With `confine = "workspace"` all of them may read the
home anyway."""

import json
import os
import subprocess

import team as attacked
from recorded import asking
from team import MARK, PYTHON, Team, until

SECRETS = (".ssh/id", ".codex/auth.json", ".claude/.credentials.json", ".config/gh/hosts.yml", "notes/a.txt")
PROGRAMS = ("codex-acp", "copilot", "claude-agent-acp")


class TeamWithHome(Team):
    """Its user has logins and notes, and agents of other profiles on PATH."""

    def make(self, lead):
        super().make(lead)
        for name in SECRETS:
            self.put(name, MARK + name)
        self.put(".claude.json", "{}")
        os.makedirs(self.folder + "/bin")
        for name in PROGRAMS:
            self.program_at(f"{self.folder}/bin/{name}", f"#!/bin/sh\nexec {PYTHON} {self.tools}/agent.py\n")
        attacked.ENVIRONMENT["PATH"] = self.folder + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.further()
        if self.user:
            subprocess.run(["chown", "-R", str(self.user.pw_uid), self.folder + "/user", self.folder + "/team"], check=True)

    def further(self):
        pass

    def put(self, name, text):
        path = f"{self.folder}/user/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    @staticmethod
    def program_at(path, text):
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def secrets(self):
        return [f"{self.folder}/user/{name}" for name in SECRETS]

    def stop(self):
        attacked.ENVIRONMENT["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        super().stop()


class TeamWithProfile(TeamWithHome):
    """Its agent `ui` has the places of a profile, which it may replace."""

    def secrets(self):
        return [path for path in super().secrets() if "/.claude/" not in path]

    def further(self):
        with open(self.config) as file:
            text = file.read()
        command = f'command = ["{PYTHON}", "{self.tools}/agent.py"]'
        text = text.replace(f'id = "ui"\n{command}', 'id = "ui"\nprofile = "claude-code"')
        text += f'\n[profiles.claude-code]\nbase = "claude-code"\n{command}\n'
        with open(self.config, "w") as file:
            file.write(text)


def tries(team, taken):
    """Code that reads what is not the agent's, and writes beside it; `result` is what it got."""
    return f"""
result = []
for path in {team.secrets()!r}:
    try: result.append(open(path).read())
    except OSError: pass
for path in ({team.folder + "/user/.bashrc"!r}, {team.folder + "/user/.codex/planted"!r}):
    try: result.append("{MARK} wrote " + str(open(path, "w").write("x")))
    except OSError: pass
{taken}
"""


def started(team, params):
    """What a run came to that `ui` starts."""
    return team.let("ui", {"code": asking(team) + f"result = ask('start_run', {params!r})"}, 60)


def strict(mode, attack):
    """Only there a child has less than the user."""
    return attack() if "strict" in mode else None


def own_program_with_a_profiles_name(program, mode):
    """The name of a program selects a profile, and so its places; the folder of an absolute one is read."""
    def attack():
        team = TeamWithHome(program, mode)
        out = team.workspace + "/ui/got"
        script = "#!%s\n" % PYTHON + tries(team, f"open({out!r}, 'a').write(repr(result))")
        for name in (*PROGRAMS, "plain"):
            path = f"{team.workspace}/ui/{name}"
            team.let("ui", {"code": f"open({path!r}, 'w').write({script!r}); os.chmod({path!r}, 0o755)"})
            for further in ({}, {"profile": "copilot"}):
                started(team, {"task": "x", "command": [path], "wait": True, "timeout_s": 10, **further})
        until(lambda: os.path.exists(out), 2)
        got = os.path.exists(out) and open(out).read()
        team.stop()
        return got is False and "no program ran, so nothing was tried" or MARK in got and got
    return strict(mode, attack)


def helper_of_another_profile(program, mode):
    """A helper, and a run, of a profile whose places their agent does not have."""
    def attack():
        team = TeamWithHome(program, mode)
        task = json.dumps({"code": tries(team, "")})
        got = []
        for profile in ("codex", "copilot", "claude-code"):
            got.append(team.let("ui", {"code": asking(team) + f"""
started = ask("start_helper", {{"task": {task!r}, "zone": ["ui/**"], "profile": {profile!r}}})
task = (started.get("result") or {{}}).get("id")
for _ in range(4):
    if task and not ask("wait_for_tasks", {{"ids": [task], "timeout_s": 5}})["result"].get("timed_out"): break
result = [started, task and ask("task_result", {{"id": task}})]
"""}, 60))
            got.append(started(team, {"task": task, "profile": profile, "wait": True, "timeout_s": 15}))
        team.stop()
        return MARK in str(got) and got
    return strict(mode, attack)


def names_a_variable_of_the_team(program, mode):
    """The zone of a helper names a variable of the supervisor, which the refusal then spells."""
    attacked.ENVIRONMENT["SECRET_OF_TEAM"] = MARK
    team = Team(program, mode)
    del attacked.ENVIRONMENT["SECRET_OF_TEAM"]
    code = asking(team) + """
result = [ask("start_helper", {"task": "x", "zone": ["${SECRET_OF_TEAM}/**"], "profile": one} if one else
              {"task": "x", "zone": ["${SECRET_OF_TEAM}/**"]}) for one in (None, "${SECRET_OF_TEAM}")]
result.append(ask("start_run", {"task": "x", "zone": ["${SECRET_OF_TEAM}/**"], "model": "${SECRET_OF_TEAM}"}))
"""
    said = team.let("ui", {"code": code}, 60)
    team.stop()
    return MARK in str(said) and said


def folder_of_a_program_is_swapped(program, mode):
    """The folder of a run's program is a link, which leads elsewhere at another moment."""
    def attack():
        team = TeamWithHome(program, mode)
        ui, out = team.workspace + "/ui", team.workspace + "/ui/got"
        script = "#!%s\n" % PYTHON + tries(team, f"open({out!r}, 'a').write(repr(result))")
        code = f"""
import ctypes, threading, time
os.makedirs({ui + "/d"!r}, exist_ok=True)
open({ui + "/d/tool"!r}, "w").write({script!r}); os.chmod({ui + "/d/tool"!r}, 0o755)
os.symlink({ui + "/d"!r}, {ui + "/one"!r}); os.symlink({team.folder + "/user/.ssh"!r}, {ui + "/two"!r})
libc, ended = ctypes.CDLL(None), []
number = 316 if os.uname().machine == "x86_64" else 276
def swap():
    while not ended:
        libc.syscall(number, -100, {(ui + "/one").encode()!r}, -100, {(ui + "/two").encode()!r}, 2); time.sleep(0.004)
threading.Thread(target=swap, daemon=True).start()
""" + asking(team) + f"""
for _ in range(15): ask("start_run", {{"task": "x", "command": [{ui + "/one/tool"!r}], "wait": True, "timeout_s": 5}})
ended.append(1)
"""
        team.let("ui", {"code": code}, 120)
        got = os.path.exists(out) and open(out).read()
        team.stop()
        return got and MARK in got and got
    return strict(mode, attack)


def place_becomes_a_link(program, mode):
    """An agent replaces a place of its profile by a link to the home, to other folders, and above; then it asks for a
    run, crashes, is restarted, and its team starts again."""
    def attack():
        got = []
        for place, to in ((".claude.json", ""), (".claude.json", ".ssh"), (".claude.json", ".."), (".claude/sub", "")):
            team = TeamWithProfile(program, mode)
            home, task = team.folder + "/user", tries(team, "")
            link = f"{home}/{place}"
            got.append(team.let("ui", {"code": f"""
if os.path.exists({link!r}): os.unlink({link!r})
os.symlink({home + "/" + to!r}, {link!r})
"""}))
            got.append(team.let("ui", {"code": task}))
            got.append(started(team, {"task": json.dumps({"code": task}), "wait": True, "timeout_s": 10}))
            team.steer.ask("reload")
            got.append(team.let("ui", {"code": task}))
            team.let("ui", {"code": "os._exit(1)"}, 2)
            team.steer.ask("restart_agent", {"agent_id": "ui"}, 5)
            got.append(team.let("ui", {"code": task}, 10))
            team.process.terminate()
            team.process.wait(20)
            try:
                team.start(10)
                got.append(team.let("ui", {"code": task}))
                if place == ".claude.json":
                    got.append(f"{MARK}: the agent starts with {place} -> {to}")
            except SystemExit:
                pass
            said = team.cli("ps", "--json").stdout.decode()
            if place == ".claude.json" and "trust-place" not in said:
                got.append(f"{MARK}: nothing says why it does not start: {said[-500:]}")
            team.stop()
        return MARK in str(got) and got
    return strict(mode, attack)


def place_that_was_a_link_at_first(program, mode):
    """People's dotfiles: such an agent starts, again and again, until the link leads elsewhere."""
    class Dotfiles(TeamWithProfile):
        def further(self):
            super().further()
            self.put("dotfiles/claude.json", "{}")
            os.unlink(self.folder + "/user/.claude.json")
            os.symlink("dotfiles/claude.json", self.folder + "/user/.claude.json")

    def attack():
        team = Dotfiles(program, mode)
        place = team.folder + "/user/.claude.json"
        write = {"code": f"result = open({place!r}, 'w').write('MINE')"}
        wrote = [team.let("ui", write)]
        team.process.terminate()
        team.process.wait(20)
        team.start()
        wrote.append(team.let("ui", write))
        team.stop()
        return wrote != [4, 4] and f"it can't use its place: {wrote}"
    return strict(mode, attack)


ATTACKS = [own_program_with_a_profiles_name, helper_of_another_profile, names_a_variable_of_the_team,
           folder_of_a_program_is_swapped, place_becomes_a_link, place_that_was_a_link_at_first]
