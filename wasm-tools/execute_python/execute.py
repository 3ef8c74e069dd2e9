"""Runs a program, and returns what it prints and the value of its last line."""

import ast
import io
import json
import linecache
import sys
import traceback

NAME = "<code>"
encode = json.JSONEncoder(allow_nan=False).encode


def value_of(value):
    """Returns a value as JSON has it, or its repr."""
    if value is None:
        return None
    try:
        encode(value)
        return value
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def execute(code):
    """Runs the program, and returns the value of its last line if that is an expression."""
    linecache.cache[NAME] = (len(code), None, code.splitlines(keepends=True), NAME)
    names = {"__name__": "__main__", "__builtins__": __builtins__}
    if "\n" not in code and not code[:1].isspace():
        try:
            expression = compile(code, NAME, "eval")  # takes a third of the time that a tree does
        except SyntaxError:
            pass  # it is no expression
        else:
            return eval(expression, names)
    tree = ast.parse(code, NAME)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, NAME, "exec"), names)
    return None if last is None else eval(compile(last, NAME, "eval"), names)


def failure(error, stdout, stderr):
    """Returns the result object of a program that failed."""
    kept = error.__traceback__
    while kept is not None and kept.tb_frame.f_code.co_filename != NAME:
        kept = kept.tb_next
    report = traceback.TracebackException(type(error), error, kept, limit=-16, compact=True)
    said = "".join(report.format_exception_only()).strip().splitlines()[-1]
    line = None
    if isinstance(error, SyntaxError):
        said, line = f"{type(error).__name__}: {error.msg}", error.lineno
    else:
        line = next((frame.lineno for frame in reversed(report.stack) if frame.filename == NAME), None)
    if isinstance(error, SystemExit):
        said, line = (error.code, None) if isinstance(error.code, str) else (f"the program exited with code {error.code}", None)
    return {
        "success": False,
        "error": said if line is None else f"{said} (line {line})",
        "output": stdout,
        "data": {"stdout": stdout, "stderr": stderr, "traceback": "" if isinstance(error, SystemExit) else "".join(report.format())},
    }


def run(arguments):
    streams = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(arguments.get("input", "")), io.StringIO(), io.StringIO()
    out, err = sys.stdout, sys.stderr
    sys.path.append("/packages")
    sys.argv = [""]
    try:
        value = value_of(execute(arguments["code"]))
    except SystemExit as error:
        if error.code is None or error.code == 0:
            return {"result": None, "stdout": out.getvalue(), "stderr": err.getvalue()}
        return failure(error, out.getvalue(), err.getvalue())
    except BaseException as error:
        return failure(error, out.getvalue(), err.getvalue())
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
    return {"result": value, "stdout": out.getvalue(), "stderr": err.getvalue()}
