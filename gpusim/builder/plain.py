"""Lossless conversion of builder values to JSON types and back.

JSON has numbers, strings, lists and mappings with string keys. All other values become mappings. The first key of such
a mapping starts with ``$``:

| value | JSON |
| --- | --- |
| number that is not finite | ``{"$float": "inf"}`` |
| tuple | ``{"$tuple": [...]}`` |
| array | ``{"$array": nested lists, "dtype": "float64", "shape": [3, 3]}`` with "inf", "-inf" and "nan" as strings |
| array with more than 1000 numbers | ``{"$array": ...}`` with compressed bytes (little-endian, zlib, base64) |
| read-only array of more than 32 numbers | ``{"$shared": number of the array in the table}`` |
| bytes | ``{"$bytes": base64}`` |
| mapping with keys that are not plain strings | ``{"$pairs": [[key, value], ...]}`` |
| record (a dataclass of ``_PACKAGES``) | ``{"$type": "contact.material.Material", field: value, ...}`` |
| diagram | ``{"$diagram": "Diagram", "label": ..., "blocks": ..., "wires": ...}`` |
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import importlib
import math
import types
import typing
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.errors import ModelError, unknown_name
from gpusim.transform import Transform
from gpusim.typing import Array

_PACKAGES = ("actuators", "builder", "contact", "description", "joints", "meshes", "sensors", "shapes")
"""Packages whose dataclasses :class:`Encoder` can convert to JSON types."""
_DIAGRAMS = {"Diagram": "gpusim.control.diagram", "SensorDiagram": "gpusim.sensors.measured"}
_ROOT = "gpusim."
_MAX_LISTED = 1000
"""Arrays with at most this number of entries are stored as lists."""
_SMALL = 32
"""Arrays with at most this number of entries are not in the table of shared arrays."""
_DTYPES = {np.dtype(name): name for name in ("float64", "float32", "int64", "int32", "uint8", "uint32", "bool")}
_MAX_DEPTH = 100


class Encoder:
    """Converter of the values of one builder to JSON types."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self._known: dict[int, int] = {}

    def encode(self, element: str, value: Any) -> Any:
        """Convert a value of an element to JSON types. Error messages contain ``element``.

        Raises:
            ModelError: the type of the value is unknown.
        """
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int | float):
            return int(value) if isinstance(value, int) else value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, np.ndarray):
            return self._array(element, value)
        if isinstance(value, list):
            return [self.encode(element, item) for item in value]
        if isinstance(value, tuple):
            return {"$tuple": [self.encode(element, item) for item in value]}
        if isinstance(value, bytes):
            return {"$bytes": base64.b64encode(value).decode()}
        if isinstance(value, dict):
            return self._mapping(element, value)
        return self._record(element, value)

    def _mapping(self, element: str, value: dict[Any, Any]) -> Any:
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: self.encode(element, item) for key, item in value.items()}
        return {"$pairs": [[self.encode(element, key), self.encode(element, item)] for key, item in value.items()]}

    def _record(self, element: str, value: Any) -> Any:
        name = type(value).__name__
        if isinstance(value, Transform):
            return {"$type": name, "position": value.position.tolist(), "rotation": value.rotation.tolist()}
        if _DIAGRAMS.get(name) == type(value).__module__:
            layout = importlib.import_module("gpusim.control.files").layout(value)
            return {"$diagram": name, **self.encode(element, layout)}
        type_name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix(_ROOT)
        if _record_type(type_name) is not type(value):
            fix = "leave it out, or add it after ModelBuilder.from_dict"
            raise validate.fail(element, f"a {name} cannot be saved", fix)
        owner = str(getattr(value, "element", "") or f"{element} {name}")
        return {"$type": type_name} | {key: self.encode(owner, item) for key, item in vars(value).items()}

    def _array(self, element: str, value: Array) -> Any:
        if value.dtype not in _DTYPES:
            raise validate.fail(element, f"an array of {value.dtype} cannot be saved", "give float64 or int64")
        if value.flags.writeable or value.size <= _SMALL:
            return _plain_array(value)
        if id(value) not in self._known:
            self._known[id(value)] = len(self.arrays)
            self.arrays.append(_plain_array(value))
        return {"$shared": self._known[id(value)]}


def _plain_array(value: Array) -> dict[str, Any]:
    kind = {"dtype": _DTYPES[value.dtype], "shape": list(value.shape)}
    if value.size > _MAX_LISTED:
        little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        return {"$array": base64.b64encode(zlib.compress(little.tobytes(), 1)).decode(), **kind}
    listed = value.tolist()
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        listed = _with_texts(listed)
    return {"$array": listed, **kind}


def _with_texts(listed: Any) -> Any:
    if isinstance(listed, list):
        return [_with_texts(item) for item in listed]
    return listed if math.isfinite(listed) else str(listed)


class Decoder:
    """Converter of the JSON types of one file to values."""

    def __init__(self, arrays: Any) -> None:
        if not isinstance(arrays, list):
            raise validate.fail("arrays", f"{arrays!r} is not a list", "give the result of ModelBuilder.to_dict")
        self._depth = 0
        self._arrays = [self.decode(f"arrays, number {k}", item) for k, item in enumerate(arrays)]
        for item in self._arrays:
            if not isinstance(item, np.ndarray):
                raise validate.fail("arrays", f"{item!r} is not an array", "give the result of ModelBuilder.to_dict")
            item.setflags(write=False)

    def decode(self, element: str, value: Any) -> Any:
        """Convert JSON types back to a value of an element. Error messages contain ``element``.

        Raises:
            ModelError: the file is damaged.
        """
        if not isinstance(value, dict | list):
            if value is None or isinstance(value, bool | int | float | str):
                return value
            raise _broken(element, f"{value!r} is not a value of a file")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _broken(element, "values are nested too deeply")
        if isinstance(value, list):
            found: Any = [self.decode(element, item) for item in value]
        else:
            found = self._made(element, value)
        self._depth -= 1
        return found

    def _made(self, element: str, value: dict[str, Any]) -> Any:
        tag = next((key for key in value if isinstance(key, str) and key.startswith("$")), None)
        if tag is None:
            return {key: self.decode(element, item) for key, item in value.items()}
        make: dict[str, Callable[[str, dict[str, Any]], Any]] = {
            "$float": lambda element, value: float(value["$float"]),
            "$tuple": lambda element, value: tuple(self.decode(element, value["$tuple"])),
            "$array": lambda element, value: _array(value),
            "$shared": lambda element, value: self._arrays[range(len(self._arrays))[value["$shared"]]],
            "$bytes": lambda element, value: base64.b64decode(value["$bytes"], validate=True),
            "$pairs": lambda element, value: {
                self.decode(element, key): self.decode(element, item) for key, item in value["$pairs"]
            },
            "$type": self._record,
            "$diagram": self._diagram,
        }
        if tag not in make:
            raise ModelError(f"{element}: {unknown_name('kind of value', tag, make)}")
        try:
            return make[tag](element, value)
        except ModelError:
            raise
        except (TypeError, ValueError, LookupError, OverflowError, binascii.Error, zlib.error):
            raise _broken(element, f"{tag} cannot be read") from None

    def _record(self, element: str, value: dict[str, Any]) -> Any:
        name = value["$type"]
        given = {key: self.decode(element, item) for key, item in value.items() if key != "$type"}
        if name == "Transform":
            return Transform(given["position"], given["rotation"])
        cls = _record_type(str(name))
        if cls is None:
            raise _broken(element, f"the type {name!r} is unknown")
        return restored(element, cls, given)

    def _diagram(self, element: str, value: dict[str, Any]) -> Any:
        name = value["$diagram"]
        if name not in _DIAGRAMS:
            raise ModelError(f"{element}: {unknown_name('type of diagram', str(name), _DIAGRAMS)}")
        make = getattr(importlib.import_module(_DIAGRAMS[name]), name)
        given = {key: self.decode(element, item) for key, item in value.items() if key != "$diagram"}
        return importlib.import_module("gpusim.control.files").from_layout(make, given, element)


def _array(value: dict[str, Any]) -> Array:
    dtype = next((d for d, name in _DTYPES.items() if name == value["dtype"]), None)
    if dtype is None:
        raise ValueError(f"dtype {value['dtype']!r} is unknown")
    if not isinstance(value["$array"], str):
        return np.array(value["$array"], dtype).reshape(value["shape"])
    size = math.prod(value["shape"]) * dtype.itemsize
    packed = zlib.decompressobj().decompress(base64.b64decode(value["$array"], validate=True), size + 1)
    return np.frombuffer(packed, dtype.newbyteorder("<")).astype(dtype).reshape(value["shape"])


def restored(element: str, cls: type, given: dict[str, Any]) -> Any:
    """Return an instance of the dataclass ``cls`` with the fields ``given``.

    Raises:
        ModelError: a field is unknown or missing, or its value has a wrong type.
    """
    fields, hints = {f.name: f for f in dataclasses.fields(cls)}, _hints(cls)
    for key, value in given.items():
        if key not in fields:
            raise ModelError(f"{element}: {unknown_name(f'field of {cls.__name__}', key, fields)}")
        if not fits(value, hints[key]):
            raise _broken(element, f"{key} = {value!r} of {cls.__name__} has the wrong type")
    made: Any = object.__new__(cls)
    for key, field in fields.items():
        if key in given:
            value = given[key]
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        else:
            raise _broken(element, f"a {cls.__name__} has no {key}")
        object.__setattr__(made, key, value)
    return made


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value has the type of the annotation ``hint``."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, choice) for choice in inner)
    if origin is typing.Literal:
        return value in inner
    if origin is list:
        return isinstance(value, list) and all(fits(item, inner[0]) for item in value)
    if origin is tuple:
        kinds = inner[:1] * len(value) if inner[1:] == (...,) and isinstance(value, tuple) else inner
        same = isinstance(value, tuple) and len(value) == len(kinds)
        return same and all(fits(item, kind) for item, kind in zip(value, kinds, strict=True))
    if origin is not None:
        return isinstance(value, origin)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if getattr(hint, "_is_protocol", False):
        return hasattr(value, "compile")
    return not isinstance(hint, type) or isinstance(value, hint)


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@functools.cache
def _record_type(type_name: str) -> type | None:
    """Return the dataclass with a path such as "contact.material.Material", or None for an unknown path."""
    module, _, name = type_name.rpartition(".")
    if module.partition(".")[0] not in _PACKAGES:
        return None
    try:
        found = getattr(importlib.import_module(_ROOT + module), name, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and dataclasses.is_dataclass(found) else None


def _broken(element: str, rule: str) -> ModelError:
    return validate.fail(element, rule, "give the result of ModelBuilder.to_dict")
