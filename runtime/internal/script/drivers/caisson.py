"""What a script can ask the host for: HTTP requests, secrets, other tools, progress, and its own call.

Each needs the permission of the same name in the manifest, except progress and the call's own data.
"""

import errno
import json
import os

__all__ = ["Denied", "Error", "Response", "call_tool", "context", "emit", "fetch", "has_secret", "progress"]

_STATUS = {1: "denied", 2: "invalid", 3: "limit", 4: "deadline", 5: "not_found", 6: "io", 7: "unavailable"}


class Error(Exception):
    """The host did not do what it was asked for. status is a word, such as "limit", and detail is what the host said."""

    def __init__(self, status, detail):
        self.status, self.detail = status, detail
        super().__init__(detail.get("message") or detail.get("rule") or f"{status}: {detail.get('limit', '')}")


class Denied(Error, PermissionError):
    """The host refused. detail is the receipt."""


def _ask(function, request, body=b""):
    """Calls a host function and returns the bytes of its response."""
    text = json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
    device = os.open("/caisson/host", os.O_RDWR)
    try:
        rest = b"%s %d %d\n" % (function.encode(), len(text), len(body)) + text + body
        while rest:
            try:
                rest = rest[os.write(device, rest):]
            except OSError as error:
                if error.errno != errno.EFBIG:
                    raise
                raise Error("limit", {"message": f"the request is too long: it has {len(text) + len(body)} bytes"}) from None
        response = b""
        while b"\n" not in response:
            response += os.read(device, 1 << 20)
        line, _, response = response.partition(b"\n")
        status, length = map(int, line.split())
        while len(response) < length:
            response += os.read(device, 1 << 20)
    finally:
        os.close(device)
    if status == 0:
        return response
    word = _STATUS.get(status, str(status))
    raise (Denied if status == 1 else Error)(word, json.loads(response or b"{}"))


class Response:
    """An HTTP response: status, url after redirects, headers as a list of pairs, body, and whether it was cut off at a limit."""

    def __init__(self, header, body):
        self.status, self.url, self.headers = header["status"], header["url"], [tuple(pair) for pair in header["headers"]]
        self.truncated, self.body = header.get("truncated", False), body

    @property
    def ok(self):
        return 200 <= self.status < 300

    def header(self, name, default=None):
        """Returns the first header of a name, in any case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), default)

    @property
    def text(self):
        charset = (self.header("content-type") or "").partition("charset=")[2].partition(";")[0].strip(' "') or "utf-8"
        try:
            return self.body.decode(charset, "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.body)


def fetch(url, method="GET", headers=None, body=None, timeout=None):
    """Sends an HTTP request, and returns its response. A body that is neither bytes nor text is sent as JSON."""
    headers = [[str(name), str(value)] for name, value in dict(headers or {}).items()]
    if body is None:
        body = b""
    elif isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, (bytes, bytearray, memoryview)):
        body = json.dumps(body, ensure_ascii=False).encode()
        if not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(["Content-Type", "application/json"])
    request = {"method": method, "url": url, "headers": headers}
    if timeout is not None:
        request["timeout_ms"] = max(1, int(timeout * 1000))
    answer = _ask("caisson:net@1.request", request, bytes(body))
    end = 4 + int.from_bytes(answer[:4], "little")
    return Response(json.loads(answer[4:end]), answer[end:])


def has_secret(name):
    """Reports whether the operator granted a secret of this name."""
    return json.loads(_ask("caisson:secrets@1.exists", {"name": name}))["exists"]


def call_tool(name, arguments=None):
    """Calls another tool, and returns its record, in which result is an object."""
    record = json.loads(_ask("caisson:tools@1.call", {"name": name, "arguments": arguments or {}}))
    record["result"] = json.loads(record["result"])
    return record


def context():
    """Returns what the host says of the call: call_id, tool, context, files and so on."""
    return json.loads(_ask("caisson:context@1.get", {}))


def emit(**emission):
    """Shows something before the call has ended, as ABI.md describes."""
    _ask("caisson:stream@1.emit", emission)


def progress(text=None, fraction=None):
    """Says what is being done, and how much of it is done, from 0 to 1."""
    emit(type="progress", **{key: value for key, value in {"text": text, "fraction": fraction}.items() if value is not None})
