"""Makes values of Python types: for each kind of value that a type knows, at least one."""

import collections.abc
import datetime
import enum
import types
import typing

import pydantic
import typing_extensions

import shapes

# What stands in members of these names, where any text would do for the type but not for the API.
TEXTS = {
    "arguments": '{"city": "Zürich"}',
    "data": "iVBORw0KGgo=",
    "file_data": "data:application/pdf;base64,JVBERg==",
    "image_url": "https://example.com/a.png",
    "url": "https://example.com/",
    "uri": "https://example.com/",
    "media_type": "image/png",
    "mime_type": "image/png",
    "mimeType": "image/png",
    "encrypted_content": "c2VjcmV0",
}

# How deeply values are nested before only what is required is made.
DEPTH = 7


def samples(expected, name="", depth=0):
    """Returns values of a type, as JSON has them. The first has all members, in their first form; the
    second has only those that are required; each of the others has one member in another form."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if isinstance(expected, typing_extensions.TypeAliasType):
        return samples(expected.__value__, name, depth)
    if origin in (typing.Annotated, typing_extensions.Required, typing_extensions.NotRequired):
        return samples(arguments[0], name, depth)
    if origin in (typing.Union, types.UnionType):
        forms = [one for one in arguments if one is not type(None) and not shapes.is_file(one)]
        made = [value for form in forms for value in samples(form, name, depth)]
        return made + [None] if type(None) in arguments else made
    if origin is typing.Literal:
        return list(arguments)
    if origin in (list, collections.abc.Sequence, collections.abc.Iterable):
        return [[]] if depth > DEPTH else [[one] for one in samples(arguments[0], name, depth)] + [[]]
    if origin in (dict, collections.abc.Mapping) or expected is dict:
        return [{"key": one} for one in samples(arguments[1] if arguments else object, name, depth)[:1]] + [{}]
    if isinstance(expected, type) and shapes.shape(expected) or typing_extensions.is_typeddict(expected):
        return _objects(shapes.shape(expected), depth)
    return _scalars(expected, name)


def _objects(known, depth):
    least = {name: samples(known.members[name], name, depth + 1)[0] for name in known.members if name in known.required}
    if depth > DEPTH:
        return [least]
    forms = {name: samples(kind, name, depth + 1) for name, kind in known.members.items()}
    full = {name: values[0] for name, values in forms.items()}
    others = [full | {name: value} for name, values in forms.items() for value in values[1:]]
    return [full, least] + others


def _scalars(expected, name):
    if expected in (typing.Any, object):
        return [{"city": "Zürich"}]
    if expected is str:
        return [TEXTS.get(name, name or "text")]
    if expected is bytes:
        return ["-_-_"]  # the alphabet of URLs, which clients write
    if expected is bool:
        return [True, False]
    if expected is int:
        return [7]
    if expected is float:
        return [0.5]
    if isinstance(expected, type) and issubclass(expected, pydantic.FileUrl):
        return ["file:///work"]
    if expected is datetime.datetime:
        return ["2026-11-22T10:00:00Z"]
    if expected is None or expected is type(None):
        return [None]
    if isinstance(expected, type) and issubclass(expected, enum.Enum):
        return [one.value for one in expected]
    raise TypeError(f"there are no samples of {expected!r}")
