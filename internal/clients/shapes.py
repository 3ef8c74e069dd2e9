"""What the clients' types for objects have: TypedDicts and models."""

import functools
import io
import os
import typing

import pydantic
import typing_extensions


class Shape(typing.NamedTuple):
    """The members of an object."""

    members: dict  # types by the names that the API has
    required: frozenset
    is_open: bool  # whether there may be others


@functools.cache
def shape(expected):
    """Returns the shape of a type of objects, or None for other types."""
    if typing_extensions.is_typeddict(expected):
        hints = typing_extensions.get_type_hints(expected, include_extras=True)
        # The class itself does not know which are required, where its module postpones annotations.
        marks = {name: typing.get_origin(hint) for name, hint in hints.items()}
        required = (name for name, mark in marks.items() if mark is typing_extensions.Required or mark is not typing_extensions.NotRequired and name in expected.__required_keys__)
        return Shape(hints, frozenset(required), getattr(expected, "__pydantic_config__", {}).get("extra") == "allow")
    if isinstance(expected, type) and issubclass(expected, pydantic.BaseModel):
        members, required = {}, set()
        for name, field in expected.model_fields.items():
            api_name, kind = field.validation_alias or field.alias or name, field.annotation
            if "ForwardRef(" in repr(kind):  # within an alias, which the model leaves as it is
                kind = typing_extensions.get_type_hints(expected)[name]
            members[api_name] = kind
            if field.is_required():
                required.add(api_name)
        return Shape(members, frozenset(required), False)
    return None


def is_file(expected):
    """Returns whether a type stands for a file that the client reads itself: it writes its Base64."""
    return (typing.get_origin(expected) or expected) in (typing.IO, os.PathLike, io.IOBase)
