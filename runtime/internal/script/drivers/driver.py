"""Calls the script of a tool: imports it, warms up, waits for a call's arguments, and returns its result.

Everything before the input is read happens once for all calls. Usage: driver.py SCRIPT FOLDER...
"""

import atexit
import gc
import io
import json
import linecache
import os
import sys
import traceback

FOLDER = "/caisson"
MAX_TRACE = 16  # frames of a traceback
MAX_GROUP = 8  # exceptions of a group that the model reads
FILES = io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom


class Printed(io.BytesIO):
    """What is printed before the first call, even if the script closes the stream."""

    def close(self):
        pass

# Made once: json.loads and json.dumps take longer to find out how to read and write than to do it, and a script may
# replace them.
decode = json.JSONDecoder().decode
encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
quote = json.encoder.encode_basestring


def load(script, folders):
    """Imports the script as a module of its own. Modules of the standard library win over those beside it."""
    import importlib.util

    sys.path += [FOLDER + "/lib", *folders, FOLDER + "/packages"]
    sys.argv = [script]
    spec = importlib.util.spec_from_file_location("tool", script)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tool"] = module
    spec.loader.exec_module(module)
    return module


def quiet(update, folder):
    """Returns a linecache.updatecache that does not look for the sources of the standard library, which are not there."""

    def updatecache(filename, module_globals=None):
        return [] if filename.startswith(folder) else update(filename, module_globals)

    return updatecache


linecache.updatecache = quiet(linecache.updatecache, os.path.dirname(linecache.getline.__code__.co_filename) + "/")


def shown(path):
    """Shows a path below the tool as the author knows it."""
    return path.removeprefix(FOLDER + "/tool/")


def shorten(report, seen):
    """Shows the paths in a report, and in those of its causes and of its group, as the author knows them."""
    if report is None or id(report) in seen:
        return
    seen.add(id(report))
    for frame in report.stack:
        frame.filename = shown(frame.filename)
    for other in report.__cause__, report.__context__, *(report.exceptions or ()):
        shorten(other, seen)


def place(trace):
    """Returns the last line of the script, or of a package beside it, in a traceback."""
    found = ""
    for frame, line in traceback.walk_tb(trace):
        if frame.f_code.co_filename.startswith(FOLDER + "/tool/"):
            found = f" ({shown(frame.f_code.co_filename)}, line {line})"
    return found


def failure(error):
    """Returns the result object of an exception, and its traceback without the frames of this file."""
    if isinstance(error, SystemExit):
        code = error.code
        if code is None or isinstance(code, int) and code == 0:
            return {"success": True}, ""
        return {"success": False, "error": f"it exited with code {code}" if isinstance(code, int) else str(code)}, ""
    seen = error.__traceback__
    while seen is not None and seen.tb_frame.f_code.co_filename in (__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"):
        seen = seen.tb_next
    report = traceback.TracebackException(type(error), error, seen, limit=-MAX_TRACE, compact=True)
    shorten(report, set())
    text = "".join(report.format())
    if isinstance(error, SyntaxError) and isinstance(error.filename, str):
        return {"success": False, "error": f"{type(error).__name__}: {error.msg} ({shown(error.filename)}, line {error.lineno})"}, text
    said, *notes = report.format_exception_only()
    if report.exceptions:
        said = said.rstrip() + ": " + "; ".join(next(one.format_exception_only()).strip() for one in report.exceptions[:MAX_GROUP])
    return {"success": False, "error": "\n".join([said.strip() + place(seen), *(note.rstrip() for note in notes)])}, text


def result(value):
    """Returns the text of the result object for what the script returned."""
    if isinstance(value, dict) and isinstance(value.get("success"), bool):
        return encode(value)
    if value is None:
        return '{"success": true}'
    if isinstance(value, str):
        return '{"success": true, "output": ' + quote(value) + "}"
    data = encode(value)
    return '{"success": true, "output": ' + quote(data) + ', "data": ' + data + "}"


def call(run, arguments):
    """Calls the script and returns the text of its result object, and the traceback of its failure."""
    try:
        value = run(arguments)
        try:
            return result(value), ""
        except (TypeError, ValueError, RecursionError) as error:
            return encode({"success": False, "error": f"run returned what is no JSON: {error}"}), ""
    except BaseException as error:
        try:
            said, trace = failure(error)
            return encode(said), trace
        except BaseException:  # what a script raises can be of its own making
            return '{"success": false, "error": "it raised an exception that cannot be shown"}', ""


def complete(run):
    """Returns a function that calls the script, and then does what Python does when a program ends."""

    def completed(arguments):
        try:
            return run(arguments)
        finally:
            atexit._run_exitfuncs()
            for file in gc.get_objects():
                if issubclass(type(file), FILES):
                    try:
                        file.flush()
                    except ValueError:
                        pass  # it is closed, detached or only read

    return completed


def reraise(error):
    raise error


def write(descriptor, content):
    while content:
        content = content[os.write(descriptor, content):]


def begin(script, folders):
    """Does what is the same for all calls, and returns the function to call and what was printed."""
    streams = sys.stdout, sys.stderr
    # The objects stay, since a script may have given them to a logger: in a call, they write to the call's log.
    printed = Printed()
    early = sys.stdout, sys.stderr = [io.TextIOWrapper(printed, "utf-8", "backslashreplace", write_through=True) for _ in streams]
    try:
        # What calls use first is slow: have it behind us.
        for _ in range(3):
            call(decode, '{"a": [1.5, "\\u00fc", null, true], "b": {"c": -1}}')
            call(lambda _: {"a": [1.5, "\u00fc"], "b": {}}, None)
        call(lambda _: 1 / 0, None)
        sys.stdin.close()
        try:
            module = load(script, folders)
            run = getattr(module, "run", None)
            if not callable(run):
                raise AttributeError(f"{shown(script)} has no function run(arguments)")
            if getattr(run, "__code__", None) and run.__code__.co_flags & 0x80:  # inspect.CO_COROUTINE
                raise TypeError(f"run in {shown(script)} is async, which this interpreter cannot run; write def run(arguments)")
            sample = FOLDER + "/sample.json"
            try:
                with open(sample, "rb") as file:
                    sample = file.read()
            except OSError:
                sample = None
            if sample is not None:
                said, trace = call(run, decode(sample.decode()))
                if trace:
                    early[1].write(trace + "(with the manifest's sample)\n")
        except BaseException as error:
            text, trace = call(reraise, error)
            said = decode(text)
            if said["success"]:
                said = {"success": False, "error": f"{shown(script)} exited when it was imported, before run was called"}
            early[1].write(trace)

            def run(arguments):
                return said
        gc.collect()
        gc.freeze()  # a collection in a call leaves these objects alone
    finally:
        for stream, standard in zip(early, streams):
            stream.__init__(standard.buffer, "utf-8", "backslashreplace", line_buffering=True)
        sys.stdout, sys.stderr = early
    return run, printed.getvalue()


def main():
    run, printed = begin(sys.argv[1], sys.argv[2:])
    source = b""
    while piece := os.read(0, 1 << 20):
        source += piece
    written = os.open(FOLDER + "/result", os.O_WRONLY)  # before the script has used up the descriptors
    getattr(sys.modules.get("random"), "seed", int)()  # from the host: its state would be the same in all calls
    write(2, printed)
    said, trace = call(complete(run), decode(source.decode() or "{}"))
    for name in "stdout", "stderr":
        try:
            getattr(sys, name).flush()
        except BaseException:
            pass  # the script replaced or closed it
    try:
        write(2, trace.encode("utf-8", "backslashreplace"))
    except OSError:
        pass
    write(written, said.encode("utf-8", "replace"))
    os._exit(0)


main()
