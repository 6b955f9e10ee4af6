from __future__ import annotations

import importlib
import re
import typing

import pytest

import gpusim
from gpusim.scene import Range, list_scenes, load_scene, scene_modules, scene_parameters

pytestmark = pytest.mark.nightly

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?")


class _Begins(Exception):
    """The scene is about to build its model; what it asks of its parameters comes before."""


def _numbers(text: str) -> set[float]:
    return {float(number) for number in NUMBER.findall(text)}


def _limits(name: str) -> list[tuple[str, Range]]:
    """Return the annotated ranges of a scene's parameters. Those that may be None have theirs one level deeper."""
    build = importlib.import_module(scene_modules()[name]).build
    hints = typing.get_type_hints(build, include_extras=True)
    levels = [(key, part) for key, hint in hints.items() for part in (hint, *typing.get_args(hint))]
    return [(key, x) for key, part in levels for x in getattr(part, "__metadata__", ()) if isinstance(x, Range)]


def _rules(name: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []

    def asked(condition: bool, scene: str, parameter: str, value: object, rule: str) -> None:
        found.append((parameter, rule))

    def begin(*args: object, **kwargs: object) -> None:
        raise _Begins

    module = importlib.import_module(scene_modules()[name])
    if hasattr(module, "require"):
        monkeypatch.setattr(module, "require", asked)
    monkeypatch.setattr(gpusim, "ModelBuilder", begin)
    with pytest.raises(_Begins):
        load_scene(name)
    return found


@pytest.mark.parametrize("name", list_scenes())
def test_ranges_are_reported_with_the_parameters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = {parameter.name: parameter.doc for parameter in scene_parameters(name)}
    rules, ranges = _rules(name, monkeypatch), _limits(name)
    assert rules or ranges
    for parameter, allowed in ranges:
        limits = {x for x in (allowed.minimum, allowed.maximum, allowed.above, allowed.below) if x is not None}
        assert limits <= _numbers(docs[parameter]), (
            f"{name}: {parameter} {allowed}, but its description is {docs[parameter]!r}"
        )
    for parameter, rule in rules:
        doc = docs[parameter]
        assert _numbers(rule) <= _numbers(doc), f"{name}: {parameter} {rule}, but its description is {doc!r}"
