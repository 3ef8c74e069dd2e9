"""Reads documents that the dialects write, one JSON object a line: what it is ("as"), its "name" and the
"document". Writes one line of JSON for each: its name and what is wrong with it."""

import functools
import json
import re
import sys

import mcp_types
import mcp_types.methods
import mcp_types.version
import pydantic
from anthropic.types import ToolResultBlockParam, ToolUnionParam, ToolUseBlockParam
from google.genai import types as gemini
from openai.types import chat
from openai.types import responses
from openai.types.responses.response_input_item_param import ResponseInputItemParam

import strict

TYPES = {
    "openai definition": chat.ChatCompletionToolUnionParam,
    "openai call": chat.ChatCompletionMessageToolCallUnionParam,
    "openai result": chat.ChatCompletionToolMessageParam,
    "responses definition": responses.ToolParam,
    "responses call": ResponseInputItemParam,
    "responses result": ResponseInputItemParam,
    "responses event": responses.ResponseStreamEvent,
    "anthropic definition": ToolUnionParam,
    "anthropic call": ToolUseBlockParam,
    "anthropic result": ToolResultBlockParam,
    "gemini definition": gemini.Tool,
    "gemini call": gemini.Part,
    "gemini result": gemini.Part,
    "mcp definition": mcp_types.Tool,
    "mcp call": mcp_types.JSONRPCRequest,
    "mcp result": mcp_types.JSONRPCResponse | mcp_types.JSONRPCError,
}

# What the types do not know, and why it is written all the same: a pattern for "as: fault", and the reason.
# One that no document needs is a fault itself.
REASONS = {
}


def wrong(kind, document):
    """Returns what is wrong with a document, by our own check and by the client's."""
    expected = TYPES[kind]
    found = strict.faults(document, expected)
    try:
        reader(kind).validate_python(document)
        if kind.startswith("mcp "):
            protocol(kind, document)
    except (pydantic.ValidationError, ValueError) as refused:
        found.append(f"the client: {refused}")
    return found


@functools.cache
def reader(kind):
    """Returns what the client reads documents with."""
    return pydantic.TypeAdapter(TYPES[kind])


def protocol(kind, document):
    """Has the client read a message in each revision of the protocol, as it does what it receives."""
    for version in mcp_types.version.KNOWN_PROTOCOL_VERSIONS:
        is_last = version >= "2026"
        if kind == "mcp call":
            params = document["params"]
            if is_last:  # where the transport, which is not ours, adds what belongs to the connection
                params = params | {"_meta": {
                    "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                }}
            mcp_types.methods.parse_client_request(document["method"], version, params)
        elif kind == "mcp definition":
            page = {"tools": [document], "resultType": "complete"} | ({"ttlMs": 0, "cacheScope": "private"} if is_last else {})
            mcp_types.methods.parse_server_result("tools/list", version, page)
        elif "result" in document:
            mcp_types.methods.parse_server_result("tools/call", version, document["result"])


def main():
    used = set()
    for line in sys.stdin:
        given = json.loads(line)
        found = []
        for fault in wrong(given["as"], given["document"]):
            known = [one for one in REASONS if re.fullmatch(one, f"{given['as']}: {fault}", re.DOTALL)]
            used.update(known)
            if not known:
                found.append(fault)
        print(json.dumps({"name": given["name"], "faults": found}))
    for pattern in REASONS.keys() - used:
        print(json.dumps({"name": "REASONS", "faults": [f"no document needs {pattern!r}"]}))


if __name__ == "__main__":
    main()
