"""The tour: what the fake model has each agent do, in the words of the agent's own tools.

A step is one or more intentions. `call` finds the tool that serves one, by its name, and fills its
parameters by their names and types, so that it fits agents that nobody has seen before.
"""

import os

OLD = '  return <button className="btn">{label}</button>;'
NEW = '  return <button className="btn btn-primary" type="button">{label}</button>;'
WIDGET = "export function NewWidget() {\n  return <div>new widget</div>;\n}\n"
INJECTED = "print('written outside the zone')\n"
DB, DB_EDITED = "import sqlite3", "import sqlite3  # edited outside the zone"

# Names of tools that serve an intention, the most likely first.
TOOLS = {
    "read": "read read_file readfile read_text_file view_file view open_file read_files cat file_read".split(),
    "search": "grep grep_search search_file_content search search_files ripgrep code_search find_in_files".split(),
    "edit": "edit edit_file replace str_replace strreplacefile search_replace str_replace_editor file_editor editor apply_patch patch".split(),
    "write": "write write_file writefile write_text_file create_file create apply_patch".split(),
    "shell": "bash shell execute run_shell_command exec_command shell_command terminal run_command local_shell run_commands exec".split(),
}
PATHS = {"path", "file_path", "filepath", "filename", "absolute_path", "file", "target_file", "uri"}
FOLDERS = {"dir_path", "dir", "directory", "cwd", "workdir", "search_path"}
OLDS = {"old_string", "oldstring", "oldtext", "old_str", "old", "search", "old_text"}
NEWS = {"new_string", "newstring", "newtext", "new_str", "new", "replace", "new_text"}
CONTENTS = {"content", "contents", "file_text", "text"}
PATCHES = {"input", "patch", "patch_text", "patchtext", "diff"}


def steps(ws):
    """The steps of the tour through a workspace."""
    at = lambda path: os.path.normpath(os.path.join(ws, path))
    button = at("ui/button.tsx")
    return [
        [{"do": "read", "path": button}],
        [{"do": "search", "path": ws}],
        [{"do": "edit", "path": button, "old": OLD, "new": NEW}],
        [{"do": "write", "path": at("ui/new_widget.tsx"), "content": WIDGET}],
        [{"do": "shell", "command": "cat core/auth.rs"}],
        [{"do": "read", "path": at("core/auth.rs")}],
        [{"do": "read", "path": at("../outside/secret.txt")}],
        [{"do": "write", "path": at("core/injected.py"), "content": INJECTED}],
        [{"do": "read", "path": at("README.md")}, {"do": "read", "path": at("core/db.py")}],
        [{"do": "edit", "path": at("core/db.py"), "old": DB, "new": DB_EDITED}],
        [{"do": "shell", "command": "ls -la ui core; exit 3"}],
    ]


def calls(tools, ws, number):
    """The calls of a step of the tour, None behind its end. `tools` has the schema of each."""
    possible = [[call for call in (one(tools, it, ws) for it in step) if call] for step in steps(ws)]
    possible = [step for step in possible if step]
    return possible[number] if number < len(possible) else None


def one(tools, it, ws):
    name = pick(tools, it["do"])
    if name is None:
        name, it = pick(tools, "shell"), in_shell(it)
        if name is None or it is None:
            return None
    schema = tools[name]
    if schema is None:
        return {"name": name, "text": patch(it, ws)}
    return {"name": name, "args": fill(schema, schema, it, ws)}


def pick(tools, what):
    plain = {name.split("__")[-1].lower(): name for name in tools}
    # An adapter's own tools stand beside those that they replace.
    plain.update({n.split("__")[-1].lower(): n for n in tools if n.startswith("mcp__acp")})
    return next((plain[name] for name in TOOLS[what] if name in plain), None)


def in_shell(it):
    """An intention as a command, for agents that have nothing but a shell."""
    if it["do"] == "read":
        command = f"cat {it['path']}"
    elif it["do"] == "search":
        command = "grep -rn auth ."
    elif it["do"] == "write":
        command = f"cat > {it['path']} <<'END'\n{it['content']}END"
    elif it["do"] == "edit":
        command = f"sed -i 's|{it['old']}|{it['new']}|' {it['path']}"
    else:
        return it
    return {"do": "shell", "command": command}


def patch(it, ws):
    name = os.path.relpath(it["path"], ws)
    if it["do"] == "write":
        lines = "\n".join("+" + line for line in it["content"].splitlines())
        body = f"*** Add File: {name}\n{lines}"
    else:
        body = f"*** Update File: {name}\n@@\n-{it.get('old', '')}\n+{it.get('new', '')}"
    return f"*** Begin Patch\n{body}\n*** End Patch"


def resolve(schema, root):
    for _ in range(8):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        node = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            node = node.get(part, {}) if isinstance(node, dict) else {}
        schema = node
    return schema if isinstance(schema, dict) else {}


def types(schema):
    own = schema.get("type")
    found = [str(t).lower() for t in (own if isinstance(own, list) else [own] if own else [])]
    for key in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(key) or []:
            found += types(option)
    return found


def fill(schema, root, it, ws):
    schema = resolve(schema, root)
    required = schema.get("required") or []
    filled = {}
    for name, part in (schema.get("properties") or {}).items():
        value = fill_one(name, resolve(part, root), root, it, ws, name in required)
        if value is not None:
            filled[name] = value
    return filled


def fill_one(name, schema, root, it, ws, required):
    low, kinds, do = name.lower(), types(schema), it["do"]
    item = resolve(schema.get("items") or {}, root)
    listed = "array" in kinds and "string" not in kinds
    if low in PATHS:
        value = it.get("path") or (ws if required else None)
        return [value] if value and listed else value
    if low in {"paths", "files", "file_paths"} and "array" in kinds:
        return [fill(item, root, it, ws)] if "object" in types(item) else [it.get("path") or ws]
    if low in FOLDERS:
        return ws if required else None
    if low in {"pattern", "query", "regex", "search_term", "q"}:
        return "auth"
    if low in {"queries", "patterns"} and "array" in kinds:
        return ["auth"]
    if do == "edit" and low in OLDS:
        return it["old"]
    if do == "edit" and low in NEWS and "string" in kinds:
        return it["new"]
    if low == "edits" and "array" in kinds:
        return [fill(item, root, it, ws)]
    if low == "edit":
        options = [resolve(option, root) for option in schema.get("anyOf") or [schema]]
        whole = next((option for option in options if option.get("properties")), None)
        return fill(whole, root, it, ws) if whole else [fill(item, root, it, ws)]
    if low in PATCHES:
        return patch(it, ws) if do in ("edit", "write") else None
    if low in CONTENTS:
        return it.get("content", "")
    if low in {"commands", "cmds"} and "array" in kinds:
        return [it.get("command")]
    if low in {"command", "cmd", "script"}:
        # An editor that is one tool with several commands.
        word = {"edit": "str_replace", "read": "view", "write": "create"}.get(do, it.get("command"))
        return ["bash", "-lc", word] if listed else word
    if not required:
        return None
    if schema.get("enum"):
        return schema["enum"][0]
    for kind, value in (("string", f"step: {do}"), ("boolean", False), ("array", [])):
        if kind in kinds:
            return value
    if "integer" in kinds or "number" in kinds:
        return schema.get("minimum", 60000 if "timeout" in low else 1)
    return fill(schema, root, it, ws) if "object" in kinds else "x"
