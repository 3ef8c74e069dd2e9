"""The Responses API: responses with an item of each form, streams with each event, and items that the
client sends."""

import json
import typing

from openai.types import responses
from openai.types.responses.response_input_item_param import ResponseInputItemParam

import samples
import written

DIALECT = "responses"
# Those whose item is not ours to run. Reasoning is not reported.
SAID_OR_CALLED = ("message", "function_call", "custom_tool_call", "local_shell_call", "reasoning")
WAITING = ("computer_call", "apply_patch_call", "mcp_approval_request")


def documents():
    for variant in variants(responses.ResponseOutputItem):
        for i, item in enumerate(samples.samples(variant)):
            yield from with_item(i, written.adapted(variant, item))
    yield from events()
    yield from answers()


def variants(union):
    return typing.get_args(typing.get_args(union)[0])


def with_item(i, item):
    whole, name = response([item]), f"{item.type} {i}"
    for way, text in written.ways(whole, i).items():
        yield "response", f"{name} {way}", text, want(item)
    stream = [event("response.created", response=response([], "in_progress")), event("response.output_item.added", output_index=0, item=item),
              event("response.output_item.done", output_index=0, item=item), event("response.completed", response=whole)]
    for way, text in written.transcripts(stream, i).items():
        yield "stream", f"{name} {way}", text, want(item)


def response(output, status="completed"):
    return responses.Response.model_validate({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "model-1", "status": status,
        "output": [one.model_dump(by_alias=True, exclude_unset=True) for one in output], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    })


def event(kind, **members):
    return written.adapted(responses.ResponseStreamEvent, {"type": kind, "sequence_number": 0} | {
        name: one.model_dump(by_alias=True, exclude_unset=True) if hasattr(one, "model_dump") else one for name, one in members.items()
    })


def want(item):
    calls = called(item)
    return {
        "content": "".join(getattr(part, "text", "") or getattr(part, "refusal", "") for part in item.content) if item.type == "message" else "",
        "calls": calls, "finish": "tool_calls" if calls else "stop",
        "items": [] if item.type in SAID_OR_CALLED else [{"type": item.type, "waiting": is_waiting(item)}],
    }


def called(item):
    was_cut = getattr(item, "status", None) == "incomplete"
    if item.type in ("function_call", "custom_tool_call"):
        text, kind = (item.arguments, "function") if item.type == "function_call" else (item.input, "custom")
        known = {"namespace": item.namespace, "caller": item.caller and item.caller.model_dump(), "async": item.async_}
        origin = {name: value for name, value in known.items() if value is not None}
        return [written.call(item.call_id, item.name, text, kind, was_cut, {"responses": origin} if origin else None)]
    if item.type == "local_shell_call":
        return [written.call(item.call_id, "local_shell", item.action.model_dump(exclude_none=True, exclude={"type"}), "local_shell", was_cut)]
    return []


def is_waiting(item):
    if item.type == "shell_call":
        return item.environment is None or item.environment.type == "local"
    return item.type in WAITING or item.type == "tool_search_call" and item.execution == "client"


# The events that only stand with an item, of which with_item and pieces have streams.
OF_ITEMS = ("response.created", "response.queued", "response.in_progress", "response.completed", "response.output_item.added", "response.output_item.done",
            "response.function_call_arguments.delta", "response.function_call_arguments.done", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done")


def events():
    """Each event, in a stream that has nothing else."""
    yield from pieces()
    for variant in variants(responses.ResponseStreamEvent):
        for i, sample in enumerate(samples.samples(variant)[:2]):
            kind = sample["type"]
            if kind in OF_ITEMS:
                continue
            if kind in ("response.failed", "response.incomplete"):
                sample = sample | {"response": response([], kind.removeprefix("response.")).model_dump(by_alias=True, exclude_unset=True)}
            ends = [] if kind == "response.incomplete" else [event("response.completed", response=response([]))]
            stream = [event("response.created", response=response([], "in_progress")), written.adapted(responses.ResponseStreamEvent, sample)] + ends
            said = sample["delta"] if kind in ("response.output_text.delta", "response.refusal.delta") else ""
            for way, text in written.transcripts(stream, i).items():
                yield "stream", f"{kind} {i} {way}", text, {"content": said, "calls": [], "finish": "incomplete" if kind == "response.incomplete" else "stop"}


def pieces():
    """Calls whose arguments come in pieces."""
    for kind, member, name, text in (("function_call", "arguments", "function_call_arguments", '{"city": "Zürich"}'), ("custom_tool_call", "input", "custom_tool_call_input", "*** Begin")):
        item = {"type": kind, "id": "item_1", "call_id": "call_1", "name": "weather"}
        begun = written.adapted(responses.ResponseOutputItem, item | {member: ""})
        whole = written.adapted(responses.ResponseOutputItem, item | {member: text})
        at = {"item_id": "item_1", "output_index": 0}
        done = {"name": "weather"} if kind == "function_call" else {}
        stream = [event("response.output_item.added", output_index=0, item=begun), event(f"response.{name}.delta", delta=text[:5], **at), event(f"response.{name}.delta", delta=text[5:], **at),
                  event(f"response.{name}.done", **{member: text}, **at, **done), event("response.output_item.done", output_index=0, item=whole), event("response.completed", response=response([whole]))]
        for ending in (stream, stream[:3] + stream[5:], stream[:4] + stream[5:]):
            for way, text_of in written.transcripts(ending, 0).items():
                yield "stream", f"{kind} in pieces {len(ending)} {way}", text_of, want(whole)


def answers():
    for i, item in enumerate(samples.samples(ResponseInputItemParam)):
        kind, outputs, approvals = item.get("type"), [], []
        if kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            outputs = [{"id": item.get("call_id") or item.get("id"), "success": item.get("status") != "incomplete"}]
        if kind == "mcp_approval_response":
            approvals = [{"id": item["approval_request_id"], "approve": item["approve"]}]
        for name, document in (("request", {"input": [item]}), ("items", [item])):
            yield "answers", f"{i} {kind} {name}", json.dumps(document), {"outputs": outputs, "approvals": approvals}
