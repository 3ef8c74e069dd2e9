"""The ways in which the clients write their models."""

import functools
import json

import pydantic


WAYS = {
    "as the API has it": {"by_alias": True, "exclude_unset": True},
    "without nulls": {"by_alias": True, "exclude_none": True},
    "with nulls": {"by_alias": True},
    "by the client's names": {"by_alias": False},
    "by the client's names, without nulls": {"by_alias": False, "exclude_none": True},
}


@functools.cache
def _adapter(kind):
    return pydantic.TypeAdapter(kind)


def adapted(kind, value):
    """Returns a value as the client's own model."""
    return _adapter(kind).validate_python(value)


def ways(model, number):
    """Returns the texts of a model, by how it is written. The first two samples of a type are written in all
    ways, and each other one in one of them."""
    return {way: model.model_dump_json(**WAYS[way]) for way in chosen(list(WAYS), number)}


def transcripts(models, number, name_of=lambda model: model.type):
    """Returns the same for the events of a stream, as server-sent events."""
    events = lambda way: (f"event: {name_of(model)}\ndata: {model.model_dump_json(**WAYS[way])}\n\n" for model in models)
    return {way: "".join(events(way)) for way in chosen(list(WAYS), number)}


def chosen(forms, number):
    """Returns all forms for the first two samples of a type, and one of them for each other sample."""
    return forms if number < 2 else [forms[number % len(forms)]]


def call(identity, name, arguments, kind="function", incomplete=False, origin=None):
    """Returns a call that is to be read. The arguments are compared as JSON, unless they are a text."""
    return {"id": identity, "type": kind, "name": name, "arguments": arguments, "incomplete": incomplete, "origin": origin or {}}


def is_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False
