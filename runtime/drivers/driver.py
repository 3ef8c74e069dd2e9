"""Calls the script of a tool: imports it, warms up, waits for a call's arguments, and returns its result.

Everything before the input is read happens once for all calls. Usage: driver.py SCRIPT FOLDER...
"""

import gc
import io
import json
import linecache
import os
import sys
import traceback

FOLDER = "/caisson"
MAX_TRACE = 16  # frames of a traceback

# Made once: json.loads and json.dumps take longer to find out how to read and write than to do it.
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


def failure(error):
    """Returns the result object of an exception, and its traceback without the frames of this file."""
    if isinstance(error, SystemExit):
        if error.code is None or error.code == 0:
            return {"success": True}, ""
        said = error.code if isinstance(error.code, str) else f"it exited with code {error.code}"
        return {"success": False, "error": said}, ""
    seen = error.__traceback__
    while seen is not None and seen.tb_frame.f_code.co_filename in (__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"):
        seen = seen.tb_next
    report = traceback.TracebackException(type(error), error, seen, limit=-MAX_TRACE, compact=True)
    for frame in report.stack:
        frame.filename = shown(frame.filename)
    own = [frame for frame in report.stack if not frame.filename.startswith(FOLDER)] or report.stack
    text = "".join(report.format())
    said = "".join(report.format_exception_only()).strip().splitlines()[-1]
    place = ""
    if isinstance(error, SyntaxError) and error.filename:
        place = f" ({shown(error.filename)}, line {error.lineno})"
        said = f"{type(error).__name__}: {error.msg}"
    elif own:
        place = f" ({own[-1].filename}, line {own[-1].lineno})"
    return {"success": False, "error": said + place}, text


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
        said, trace = failure(error)
        return encode(said), trace


def begin(script, folders):
    """Does what is the same for all calls, and returns the function to call and what was printed."""
    streams = sys.stdout, sys.stderr
    printed = sys.stdout = sys.stderr = io.StringIO()
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
                    print(trace + "(with the manifest's sample)")
        except BaseException as error:
            said, trace = failure(error)
            print(trace, end="")

            def run(arguments):
                return said
        gc.collect()
        gc.freeze()  # a collection in a call leaves these objects alone
    finally:
        sys.stdout, sys.stderr = streams
        sys.stdout.reconfigure(line_buffering=True)
    return run, printed.getvalue()


def main():
    run, printed = begin(sys.argv[1], sys.argv[2:])
    source = b""
    while piece := os.read(0, 1 << 20):
        source += piece
    if "random" in sys.modules:
        sys.modules["random"].seed()  # from the host: its state would be the same in all calls
    if printed:
        sys.stderr.write(printed)
    said, trace = call(run, decode(source.decode() or "{}"))
    for stream, text in (sys.stdout, ""), (sys.stderr, trace):
        try:
            if text:
                stream.write(text)
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # the script replaced or closed it
    written = os.open(FOLDER + "/result", os.O_WRONLY)
    said = said.encode("utf-8", "replace")
    while said:
        said = said[os.write(written, said):]
    os._exit(0)


main()
