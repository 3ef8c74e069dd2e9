"""Runs Python code, as a tool that executes code for a model does."""

import ast
import contextlib
import io
import traceback


def run(arguments):
    stdout, stderr = io.StringIO(), io.StringIO()
    names = {"__name__": "__main__"}
    result = None
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            tree = ast.parse(arguments["code"], "<code>")
            last = tree.body[-1] if tree.body else None
            if isinstance(last, ast.Expr):
                tree.body.pop()
            exec(compile(tree, "<code>", "exec"), names)
            if isinstance(last, ast.Expr):
                result = eval(compile(ast.Expression(last.value), "<code>", "eval"), names)
        except BaseException:
            traceback.print_exc()
    return {"stdout": stdout.getvalue(), "stderr": stderr.getvalue(), "result": None if result is None else repr(result)}
