"""Chat completions: what the client receives, whole and as chunks, and messages with results."""

import json

from openai.types import chat
from openai.types.chat.chat_completion import Choice
from openai.types.chat.chat_completion_chunk import ChoiceDelta

import samples
import written

DIALECT = "openai"
REASONS = Choice.model_fields["finish_reason"].annotation


def documents():
    yield from responses()
    yield from streams()
    yield from answers()


def responses():
    for i, message in enumerate(samples.samples(chat.ChatCompletionMessage)):
        for reason in samples.samples(REASONS):
            for deprecated in (True, False):
                # The deprecated function_call, which is refused, would stand in all other samples.
                given = message if deprecated else {key: value for key, value in message.items() if key != "function_call"}
                completion = chat.ChatCompletion.model_validate({
                    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "model-1",
                    "choices": [{"index": 0, "finish_reason": reason, "message": given, "logprobs": None}],
                })
                for way, text in written.ways(completion, i).items():
                    yield "response", f"{i} {reason} {way}", text, want(completion.choices[0].message, reason)


def want(message, reason):
    was_cut = reason not in ("stop", "tool_calls", "function_call")
    calls = []
    for given in message.tool_calls or []:
        if given.type == "custom":
            calls.append(written.call(given.id, given.custom.name, given.custom.input, "custom", was_cut))
        else:
            calls.append(written.call(given.id, given.function.name, given.function.arguments, "function", was_cut and not written.is_json(given.function.arguments)))
    finish = "tool_calls" if reason == "stop" and calls else reason
    return {"content": (message.content or "") + (message.refusal or ""), "calls": calls, "finish": finish}


def streams():
    for i, delta in enumerate(samples.samples(ChoiceDelta)):
        for deprecated in (True, False):
            given = delta if deprecated else {key: value for key, value in delta.items() if key != "function_call"}
            chunks = [chunk(given), chunk({}, "stop")]
            said = chunks[0].choices[0].delta
            for way, text in written.transcripts(chunks, i, lambda _: "").items():
                calls = [written.call(one.id or f"call_{number}", one.function and one.function.name, one.function and one.function.arguments or {}) for number, one in enumerate(said.tool_calls or [])]
                result = {"content": (said.content or "") + (said.refusal or ""), "calls": calls, "finish": "tool_calls" if calls else "stop"}
                yield "stream", f"{i} {way}", text + "data: [DONE]\n\n", result


def chunk(delta, reason=None):
    return chat.ChatCompletionChunk.model_validate({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "model-1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    })


def answers():
    for i, message in enumerate(samples.samples(chat.ChatCompletionMessageParam)):
        outputs = [{"id": message["tool_call_id"], "success": True}] if message["role"] == "tool" else []
        yield "answers", f"{i} {message['role']}", json.dumps({"messages": [message]}), {"outputs": outputs}
