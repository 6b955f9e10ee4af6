"""Conversion of a builder to a dictionary of JSON types (``to_dict``) and back (``from_dict``)."""

from __future__ import annotations

import typing
from typing import Any, TypeVar

from gpusim import validate
from gpusim.builder.dict_checks import FIX, check_elements
from gpusim.builder.plain import Decoder, Encoder, fits
from gpusim.description.elements import Elements
from gpusim.errors import ModelError, unknown_name

FORMAT, VERSION = "gpusim.model", 1
_HEAD = ("format", "version", "arrays")
_LABELS = "_labels"
Self = TypeVar("Self", bound="DictFormat")


class DictFormat:
    """Base class of ModelBuilder that converts the builder to a dictionary and back."""

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the builder as JSON types: strings, numbers, lists and dictionaries.

        ``json.dumps(builder.to_dict(), allow_nan=False)`` accepts the dictionary. :meth:`from_dict` converts the
        dictionary to a builder with a bit-identical model. The dictionary includes all meshes. A mesh shared by several
        elements is stored once.

        Raises:
            ModelError: a diagram has a block that runs Python, or an element has a value of an unknown type.
        """
        encoder = Encoder()
        found = {key: encoder.encode(key, value) for key, value in vars(self).items() if key != _LABELS}
        return {"format": FORMAT, "version": VERSION, **found, "arrays": encoder.arrays}

    @classmethod
    def from_dict(cls: type[Self], data: dict[str, Any]) -> Self:
        """Return a builder from the result of :meth:`to_dict`.

        Args:
            data: result of :meth:`to_dict`, directly or from a JSON file.

        Raises:
            ModelError: ``data`` has a wrong type, another format version or an invalid entry. The message names the
                entry.
        """
        made = cls()
        _check_head(data)
        decoder, known = Decoder(data.get("arrays", [])), [key for key in vars(made) if key != _LABELS]
        hints = typing.get_type_hints(Elements)
        for key, value in data.items():
            if key in _HEAD:
                continue
            if key not in known:
                raise ModelError(f"ModelBuilder.from_dict: {unknown_name('entry', key, known)}")
            found, usual = decoder.decode(key, value), getattr(made, key)
            if not fits(found, hints.get(key, type(usual))):
                raise validate.fail("ModelBuilder.from_dict", f"entry {key!r} has the wrong type", FIX)
            setattr(made, key, found)
        made_any: Any = made
        check_elements(made_any)
        return made


def _check_head(data: Any) -> None:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise validate.fail("ModelBuilder.from_dict", "the data are not a model", FIX)
    if data.get("version") != VERSION:
        rule = f"version = {data.get('version')!r} is unknown, and this gpusim reads version {VERSION}"
        raise validate.fail("ModelBuilder.from_dict", rule, "use the gpusim that wrote it, or a newer version")
