"""Runs a script of a skill as Python runs a program, and returns what it prints and its exit code."""

import atexit
import io
import linecache
import os
import re
import sys
import traceback
import types

# Modules that scripts often use: they are imported before the first call.
import argparse, collections, csv, datetime, functools, itertools, json, math, pathlib, textwrap  # noqa: E401, F401

SKILLS = "/skills"
MOST = 100_000  # characters that are kept of each stream

ELSEWHERE = {
    ".js": "for JavaScript, read the script with read_skill, and run its code with execute_javascript",
    ".mjs": "for JavaScript, read the script with read_skill, and run its code with execute_javascript",
    ".cjs": "for JavaScript, read the script with read_skill, and run its code with execute_javascript",
    ".sh": "there is no shell in the sandbox: read the script with read_skill, and do its steps with other tools",
    ".bash": "there is no shell in the sandbox: read the script with read_skill, and do its steps with other tools",
    ".wasm": "for a module, the operator writes a manifest, which makes it a tool of its own",
}


class Refused(Exception):
    """The call names no script that can run. Its text is for the model."""


class Stream(io.BytesIO):
    """Keeps what is printed, even if the script closes it."""

    def close(self):
        pass


def named(folder):
    """Returns the name in the front matter of a skill, or None."""
    try:
        with open(f"{SKILLS}/{folder}/SKILL.md", encoding="utf-8-sig") as file:
            front = re.match(r"---[ ]*\n(.*?)\n---[ ]*(\n|$)", file.read(32 << 10), re.DOTALL)
    except (OSError, UnicodeError):
        return None
    name = front and re.search(r"^name:[ \t]*(.*?)[ \t]*$", front[1], re.MULTILINE)
    return name and name[1].strip("\"'")


def folder_of(skill):
    """Returns the folder of a skill: the one of this name or, if there is none, the one whose front matter has the name."""
    # A skill that has the name needs no look at the others, of which some may be broken.
    if "/" not in skill and not skill.startswith(".") and os.path.isfile(f"{SKILLS}/{skill}/SKILL.md"):
        return skill
    folders = sorted(entry for entry in os.listdir(SKILLS) if not entry.startswith(".") and os.path.isfile(f"{SKILLS}/{entry}/SKILL.md"))
    found = [folder for folder in folders if named(folder) == skill]
    if len(found) == 1:
        return found[0]
    if found:
        raise Refused(f"several skills have the name {skill!r}; name one of the folders {', '.join(found)}")
    if not folders:
        raise Refused("there are no skills: no folder has a SKILL.md")
    raise Refused(f"there is no skill {skill!r}; there are {', '.join(folders[:50])}")


def scripts_in(folder):
    """Lists the scripts of a skill, for a message."""
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        found += [os.path.relpath(os.path.join(parent, name), folder) for name in files if name.endswith(".py")]
    return "it has " + ", ".join(sorted(found)[:50]) if found else "it has no scripts in Python"


def script_of(skill, script):
    """Returns the path and the source of a script."""
    folder = f"{SKILLS}/{folder_of(skill)}"
    parts = script.split("/")
    while parts[:1] == ["."]:
        parts = parts[1:]
    if not parts or any(part in ("", ".", "..") for part in parts):
        raise Refused(f"script_path {script!r} is not within the skill; write a path from its folder, such as scripts/run.py")
    path = "/".join([folder, *parts])
    try:
        with open(path, "rb") as file:
            source = file.read()
    except IsADirectoryError:
        raise Refused(f"{script} is a folder; {scripts_in(folder)}") from None
    except (FileNotFoundError, NotADirectoryError):
        raise Refused(f"the skill {skill} has no {script}; {scripts_in(folder)}") from None
    except OSError as error:
        raise Refused(f"{script}: {error.strerror}") from None
    ending = os.path.splitext(path)[1].lower()
    is_python = source.startswith(b"#!") and b"python" in source.split(b"\n", 1)[0]
    if ending != ".py" and not (ending == "" and is_python):
        raise Refused(f"{script} is no script in Python, and no others run here; " + ELSEWHERE.get(ending, "read it with read_skill"))
    return path, source


def report(error, path):
    """Returns the traceback of an exception, from the script on."""
    kept = error.__traceback__
    while kept is not None and kept.tb_frame.f_code.co_filename != path:
        kept = kept.tb_next
    if kept is None and not isinstance(error, SyntaxError):
        kept = error.__traceback__
    shown = traceback.TracebackException(type(error), error, kept, limit=-16, compact=True)
    return "".join(shown.format())


def execute(path, source):
    """Runs a script, and returns its exit code."""
    try:
        code = compile(source, path, "exec", dont_inherit=True)
        exec(code, sys.modules["__main__"].__dict__)
    except SystemExit as error:
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        sys.stderr.write(report(error, path))
        return 1
    return 0


def text(stream):
    """Returns what a stream holds, cut if it is long."""
    held = stream.getvalue().decode("utf-8", "replace")
    if len(held) <= MOST:
        return held
    return held[:MOST] + f"\n[cut: {len(held) - MOST} more characters]"


def outcome(script, stdout, stderr, code):
    """Returns the result object. Its output is what a terminal would show."""
    shown = stdout
    if stderr:
        shown += ("\n" if stdout and not stdout.endswith("\n") else "") + "[stderr]\n" + stderr
    data = {"stdout": stdout, "stderr": stderr, "exit_code": code}
    if code == 0:
        return {"success": True, "output": shown or "(the script printed nothing)", "data": data}
    last = stderr.strip().splitlines()[-1:]
    said = f": {last[0][:500]}" if last else ""
    return {"success": False, "error": f"{script} exited with code {code}{said}", "output": shown, "data": data}


def run(arguments):
    script = arguments["script_path"]
    try:
        path, source = script_of(arguments["skill_name"], script)
    except Refused as error:
        return {"success": False, "error": str(error)}
    streams, caller = (sys.stdin, sys.stdout, sys.stderr), sys.modules["__main__"]
    own = sys.modules.pop("tool", None)  # the name is free for a module of the skill
    out, err = Stream(), Stream()
    sys.stdin = io.TextIOWrapper(io.BytesIO(arguments.get("input", "").encode("utf-8", "surrogatepass")), "utf-8")
    sys.stdout = io.TextIOWrapper(out, "utf-8", "backslashreplace", write_through=True)
    sys.stderr = io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)
    written = sys.stdout, sys.stderr
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = path, __builtins__
    sys.modules["__main__"] = main
    sys.argv = [path, *arguments.get("args", [])]
    sys.path.insert(0, os.path.dirname(path))
    sys.path.append("/packages")
    os.chdir(os.path.dirname(path))
    linecache.clearcache()
    try:
        code = execute(path, source)
        atexit._run_exitfuncs()
        for stream in {sys.stdout, sys.stderr, *written}:
            try:
                stream.flush()
            except Exception:
                pass  # it is closed, or the script's own
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.modules["__main__"] = caller
        if own is not None:
            sys.modules["tool"] = own
    return outcome(script, text(out), text(err), code)
