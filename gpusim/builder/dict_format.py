"""Conversion of a builder to a dictionary of JSON types (``to_dict``) and back (``from_dict``)."""

from __future__ import annotations

import typing
from typing import Any, TypeVar

from gpusim import validate
from gpusim.builder.plain import Decoder, Encoder, fits
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import joint_type
from gpusim.errors import ModelError, unknown_name

FORMAT, VERSION = "gpusim.model", 1
_HEAD = ("format", "version", "arrays")
_LABELS = "_labels"
LISTS = {"body": "bodies"}
"""Name of the builder's list of elements by element type, if the name is not type + "s"."""
_FIX = "give the result of ModelBuilder.to_dict"
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
                raise validate.fail("ModelBuilder.from_dict", f"entry {key!r} has the wrong type", _FIX)
            setattr(made, key, found)
        made_any: Any = made
        _check(made_any)
        return made


def _check_head(data: Any) -> None:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise validate.fail("ModelBuilder.from_dict", "the data are not a model", _FIX)
    if data.get("version") != VERSION:
        rule = f"version = {data.get('version')!r} is unknown, and this gpusim reads version {VERSION}"
        raise validate.fail("ModelBuilder.from_dict", rule, "use the gpusim that wrote it, or a newer version")


def _check(made: Any) -> None:
    """Check numbers, labels, kinds and indices of a builder, and register its labels."""
    made.gravity = validate.numbers("ModelBuilder", "gravity", made.gravity, 3)
    if made.num_worlds < 1:
        raise validate.fail("ModelBuilder.from_dict", f"num_worlds = {made.num_worlds} is below 1", "give 1 or more")
    for space, labels in made._labels.items():
        for index, item in enumerate(getattr(made, LISTS.get(space, f"{space}s"))):
            labels[made._new_label(space, item.label, index)] = index
    for joint in made.joints:
        joint_type(joint.kind)
        made.check_body(joint.element, "parent", joint.parent)
        made.check_body(joint.element, "child", joint.child)
    for item in [*made.shapes, *made.visuals, *made.sites, *made.cameras, *made.lights]:
        made.check_body(item.element, "body", item.body)
    for actuator in made.actuators:
        actuator_type(actuator.kind)
