"""Checks JSON values against Python types, more strictly than the clients do.

The clients' models take members that they do not know, and their dictionaries are not checked at
all. Here a member that a type does not have is a fault, and so are a missing member and a value of
another type.
"""

import base64
import binascii
import collections.abc
import datetime
import enum
import types
import typing

import pydantic
import typing_extensions

import shapes


def faults(value, expected, path="$"):
    """Returns what is wrong with a value, one line for each fault."""
    origin = typing.get_origin(expected)
    if isinstance(expected, typing_extensions.TypeAliasType):
        return faults(value, expected.__value__, path)
    if origin in (typing.Annotated, typing_extensions.Required, typing_extensions.NotRequired):
        return faults(value, typing.get_args(expected)[0], path)
    if expected in (typing.Any, object) or isinstance(expected, typing.TypeVar):
        return []
    if origin in (typing.Union, types.UnionType):
        return _of_union(value, typing.get_args(expected), path)
    if origin is typing.Literal:
        known = typing.get_args(expected)
        return [] if value in known else [f"{path} is {_shown(value)}; want one of {', '.join(map(_shown, known))}"]
    if origin in (list, collections.abc.Sequence, collections.abc.Iterable):
        return _of_list(value, typing.get_args(expected)[0], path)
    if origin in (dict, collections.abc.Mapping) or expected is dict:
        return _of_dict(value, typing.get_args(expected) or (str, object), path)
    if isinstance(expected, type) and issubclass(expected, pydantic.RootModel):
        return faults(value, expected.model_fields["root"].annotation, path)
    if shapes.shape(expected):
        return _of_members(value, shapes.shape(expected), path)
    return _of_scalar(value, expected, path)


def _of_union(value, options, path):
    """Returns no fault if any option has none, and otherwise those of the option that is closest: one of the
    type that the value names, or else one that takes such a value, with the fewest faults within."""
    options = [one for one in options if value is None or one is not type(None)]
    found = [faults(value, option, path) for option in options]
    if not all(found):
        return []
    named = [one for option, one in zip(options, found) if _is_meant(value, option)]
    return min(named or found, key=lambda one: (one[0].startswith(f"{path} is "), len(one)))


def _is_meant(value, option):
    """Returns whether a union's option has the type that the value names."""
    while typing.get_origin(option) is typing.Annotated:
        option = typing.get_args(option)[0]
    known = shapes.shape(option) if isinstance(option, type) or typing_extensions.is_typeddict(option) else None
    if not known or not isinstance(value, dict):
        return False
    return "type" in value and "type" in known.members and not faults(value["type"], known.members["type"])


def _of_list(value, element, path):
    if not isinstance(value, list):
        return [f"{path} is {_shown(value)}; want a list"]
    return [fault for i, one in enumerate(value) for fault in faults(one, element, f"{path}[{i}]")]


def _of_dict(value, arguments, path):
    if not isinstance(value, dict):
        return [f"{path} is {_shown(value)}; want an object"]
    return [fault for name, one in value.items() for fault in faults(one, arguments[1], f"{path}.{name}")]


def _of_members(value, known, path):
    if not isinstance(value, dict):
        return [f"{path} is {_shown(value)}; want an object"]
    found = [f"{path}.{name} is missing" for name in sorted(known.required - value.keys())]
    for name, one in value.items():
        if name in known.members:
            found += faults(one, known.members[name], f"{path}.{name}")
        elif not known.is_open:
            found.append(f"{path}.{name} is not known")
    return found


def _of_scalar(value, expected, path):
    fits = False
    if expected is None or expected is type(None):
        fits = value is None
    elif expected is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif expected is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif expected in (str, bool):
        fits = isinstance(value, expected)
    elif expected is bytes:
        fits = isinstance(value, str) and _is_base64(value)
    elif expected is datetime.datetime:
        fits = isinstance(value, str) and bool(datetime.datetime.fromisoformat(value))
    elif isinstance(expected, type) and issubclass(expected, enum.Enum):
        fits = value in [one.value for one in expected]
    elif shapes.is_file(expected):
        fits = False
    else:
        raise TypeError(f"{path}: there is no check for {expected!r}")
    return [] if fits else [f"{path} is {_shown(value)}; want {getattr(expected, '__name__', expected)}"]


# From the alphabet of URLs to the other one.
URLS = str.maketrans("-_", "+/")


def _is_base64(text):
    try:
        base64.b64decode(text.translate(URLS), validate=True)
        return True
    except binascii.Error:
        return False


def _shown(value):
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
