"""Messages: with a block of each form, whole and streamed, and blocks with results."""

import json
import typing

from anthropic.types import ContentBlock, Message, MessageParam, RawContentBlockDelta, RawMessageStreamEvent, StopReason, ToolResultBlockParam
from anthropic.types.beta import BetaContentBlock, BetaMessage, BetaRawMessageStreamEvent, BetaStopReason

import samples
import written

DIALECT = "anthropic"
FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length", "tool_use": "tool_calls", "refusal": "content_filter"}
USAGE = {"input_tokens": 1, "output_tokens": 2}


class Forms(typing.NamedTuple):
    """The types of one version of the API."""

    block: typing.Any
    message: type
    event: typing.Any
    reason: typing.Any


STABLE = Forms(ContentBlock, Message, RawMessageStreamEvent, StopReason)
BETA = Forms(BetaContentBlock, BetaMessage, BetaRawMessageStreamEvent, BetaStopReason)


def documents():
    for forms in (STABLE, BETA):
        for variant in typing.get_args(typing.get_args(forms.block)[0]):
            for i, block in enumerate(samples.samples(variant)):
                for reason in written.chosen(typing.get_args(forms.reason), i):
                    yield from with_block(forms, i, written.adapted(variant, block), reason)
    yield from deltas()
    yield from answers()


def with_block(forms, i, block, reason):
    whole, name = message(forms, [block], reason), f"{forms.message.__name__} {block.type} {i} {reason}"
    for way, text in written.ways(whole, i).items():
        yield "response", f"{name} {way}", text, want(block, reason)
    for way, text in streamed(forms, [block], [], reason, i).items():
        yield "stream", f"{name} {way}", text, want(block, reason)


def message(forms, content, reason):
    return forms.message.model_validate({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "model-1", "content": [one.model_dump(by_alias=True, exclude_unset=True) for one in content],
        "stop_reason": reason, "stop_sequence": None, "usage": USAGE,
    })


def streamed(forms, blocks, changes, reason, number):
    """Returns transcripts of blocks that begin as they are given, and of changes to the last."""
    events = [{"type": "message_start", "message": message(forms, [], None).model_dump(by_alias=True, exclude_unset=True)}]
    for i, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": i, "content_block": block.model_dump(by_alias=True, exclude_unset=True)})
        events += [{"type": "content_block_delta", "index": i, "delta": change} for change in changes if i == len(blocks) - 1]
        events.append({"type": "content_block_stop", "index": i})
    events += [{"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 2}}, {"type": "message_stop"}]
    return written.transcripts([written.adapted(forms.event, one) for one in events], number)


def want(block, reason, arguments=None):
    calls, finish = [], FINISH.get(reason, reason)
    if block.type == "tool_use":
        known = {"caller": block.caller and block.caller.model_dump(), "toolset_name": getattr(block, "toolset_name", None)}
        origin = {name: value for name, value in known.items() if value is not None}
        is_cut = finish not in ("stop", "tool_calls", "pause_turn") and arguments is None
        calls = [written.call(block.id, block.name, arguments or block.input, "function", is_cut, {"anthropic": origin} if origin else None)]
    is_ours = block.type in ("text", "thinking", "redacted_thinking", "tool_use")
    return {
        "content": block.text if block.type == "text" else "", "calls": calls, "finish": finish,
        "items": [] if is_ours else [{"type": block.type, "waiting": False}],
    }


def deltas():
    """Each form of a delta, in a block that it belongs to."""
    begins = {
        "text_delta": {"type": "text", "text": "", "citations": None}, "citations_delta": {"type": "text", "text": "", "citations": None},
        "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""}, "signature_delta": {"type": "thinking", "thinking": "", "signature": ""},
        "input_json_delta": {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
    }
    for i, delta in enumerate(samples.samples(RawContentBlockDelta)):
        kind, arguments = delta["type"], None
        block = written.adapted(ContentBlock, begins[kind])
        if kind == "input_json_delta":
            delta, arguments = delta | {"partial_json": '{"city": "Zürich"}'}, {"city": "Zürich"}
        for way, text in streamed(STABLE, [block], [delta], "max_tokens", i).items():
            result = want(block, "max_tokens", arguments)
            if kind == "text_delta":
                result["content"] = delta["text"]
            yield "stream", f"{kind} {i} {way}", text, result


def answers():
    for i, block in enumerate(samples.samples(ToolResultBlockParam)):
        result = {"outputs": [{"id": block["tool_use_id"], "success": not block.get("is_error")}]}
        yield "answers", f"tool_result {i}", json.dumps({"messages": [{"role": "user", "content": [block]}]}), result
    for i, given in enumerate(samples.samples(MessageParam)):
        content = given["content"] if isinstance(given["content"], list) else []
        results = [one for one in content if one["type"] == "tool_result" and given["role"] == "user"]
        yield "answers", f"message {i}", json.dumps([given]), {"outputs": [{"id": one["tool_use_id"], "success": not one.get("is_error")} for one in results]}
