"""generateContent: with a part of each form, whole and streamed, by both kinds of names, and parts with
results."""

from google.genai import types

import samples
import written

DIALECT = "gemini"
FILTERED = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION")
# Members of a part that only say something about the others.
ABOUT = ("thought", "thoughtSignature", "mediaResolution", "mediaProcessing")


def documents():
    for i, name, given, result in parts():
        yield from received(name, {"content": {"role": "model", "parts": given}, "finishReason": "STOP"}, result, i)
    yield from partial()
    for reason in types.FinishReason:
        finish = {"STOP": "stop", "MAX_TOKENS": "length"}.get(reason.value, "content_filter" if reason.value in FILTERED else reason.value)
        yield from received(reason.value, {"content": {"parts": [{"text": "a"}]}, "finishReason": reason.value}, {"content": "a", "calls": [], "finish": finish})
    for feedback in samples.samples(types.GenerateContentResponsePromptFeedback)[2:]:
        if feedback["blockReason"]:
            blocked = types.GenerateContentResponse.model_validate({"promptFeedback": feedback})
            yield from both(f"blocked {feedback['blockReason']}", blocked, {"content": "", "calls": [], "finish": "content_filter"})
    yield from answers()


def received(name, candidate, result, number=0):
    usage = samples.samples(types.GenerateContentResponseUsageMetadata)[0]
    response = types.GenerateContentResponse.model_validate({"candidates": [candidate], "responseId": "r", "modelVersion": "model-1", "usageMetadata": usage})
    yield from both(name, response, result, number)


def both(name, response, result, number=0):
    for way, text in written.ways(response, number).items():
        yield "response", f"{name} {way}", text, result
        yield "response", f"{name} {way}, in an array", f"[{text}]", result
        yield "stream", f"{name} {way}", f"data: {text}\n\n", result


def parts():
    """A part with each of its members alone, in each form, and with a signature."""
    for name, field in types.Part.model_fields.items():
        alias = field.alias or field.validation_alias or name
        for i, value in enumerate(samples.samples(field.annotation, alias)):
            if value is None or alias == "functionCall" and ("partialArgs" in value or "willContinue" in value):
                continue
            for extra in ({}, {"thoughtSignature": "-_-_"}, {"thought": True}):
                yield i, f"{alias} {i} {sorted(extra)}", [extra | {alias: value}], want(alias, value, extra)
    for i, given in enumerate(samples.samples(types.FunctionCall)):
        given = {key: value for key, value in given.items() if key not in ("partialArgs", "willContinue")}
        yield i, f"functionCall {i}", [{"functionCall": given}], want("functionCall", given, {})


def want(alias, value, extra):
    calls = []
    if alias == "functionCall" and value.get("name"):  # without a name, it says that nothing more comes
        calls = [written.call(value.get("id"), value.get("name"), value.get("args") or {})]
    is_item = alias not in ("text", "functionCall") and alias not in ABOUT and not alias.endswith("Metadata")
    return {
        "content": value if alias == "text" and "thought" not in extra else "", "calls": calls, "finish": "tool_calls" if calls else "stop",
        "items": [{"type": alias, "waiting": False}] if is_item else [],
    }


def partial():
    """Arguments in pieces of each kind."""
    kinds = {"stringValue": "a", "numberValue": 0.5, "boolValue": False, "nullValue": "NULL_VALUE"}
    assert set(kinds) | {"jsonPath", "willContinue"} == {field.alias for field in types.PartialArg.model_fields.values()}
    pieces = [{"jsonPath": f"$.{kind}", kind: value} for kind, value in kinds.items()]
    whole = {kind: None if kind == "nullValue" else value for kind, value in kinds.items()}
    first = {"functionCall": {"name": "weather", "partialArgs": pieces[:1], "willContinue": True}}
    for ends in ({"willContinue": False}, {}):
        last = {"functionCall": {"partialArgs": pieces[1:]} | ends}
        result = {"content": "", "calls": [written.call(None, "weather", whole)], "finish": "tool_calls"}
        yield from received(f"partialArgs {ends}", {"content": {"parts": [first, last]}, "finishReason": "STOP"}, result)
    half = {"content": "", "calls": [written.call(None, "weather", {"stringValue": "a"}, incomplete=True)], "finish": "length"}
    yield from received("cut off", {"content": {"parts": [first]}, "finishReason": "MAX_TOKENS"}, half)


def answers():
    """Results, with each form of media; what is sent is a content, or the contents of a request."""
    forms = [{"response": one} for one in ({"output": "a"}, {"output": {"b": 1}}, {"error": "c"}, {"error": {"d": 1}}, {"e": 1}, {})]
    for name, field in types.FunctionResponsePart.model_fields.items():
        forms += [{"response": {}, "parts": [{field.alias or name: value}]} for value in samples.samples(field.annotation, name) if value]
    forms += [{"response": {}, "willContinue": one} for one in (True, False)]
    forms += [{"response": {}, "scheduling": one.value} for one in types.FunctionResponseScheduling]
    for i, form in enumerate(forms):
        for identity in ({"id": "call_1"}, {}):
            response = {"name": "weather"} | identity | form
            content = types.Content.model_validate({"role": "user", "parts": [{"text": "a"}, {"functionResponse": response}]})
            found = [{"id": "call_1" if identity else "weather", "success": "error" not in form["response"]}]
            result = {"outputs": found} if identity else {"named": found}
            for way, text in written.ways(content, i).items():
                yield "answers", f"{i} {way}", text, result
                yield "answers", f"{i} {way}, in a request", f'{{"contents":[{text}]}}', result
