"""Named collision groups: conversion of rules between groups to the bits of the collision filter."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence

from gpusim import validate
from gpusim.description.specs import ShapeSpec

ALL_GROUPS = 0xFFFFFFFF
UNNAMED = 1
"""Bit of shapes without a group, and of groups without rules."""

GroupRules = dict[tuple[str, str | None], bool]
"""Pair of sorted group names -> True if the groups collide. (name, None) is the default rule of a group."""


def prefixed_rules(rules: GroupRules, prefix: str) -> GroupRules:
    """Return the rules with ``prefix`` added to all group names."""
    return {(prefix + a, None if b is None else prefix + b): collide for (a, b), collide in rules.items()}


def shapes_with_bits(shapes: Sequence[ShapeSpec], rules: GroupRules) -> list[ShapeSpec]:
    """Return copies of the shapes with bits instead of the names of collision groups.

    Each group with a rule gets the highest free bit. A bit is free if no shape uses it in a numeric ``group``.

    Raises:
        ModelError: a group with a rule has no shapes, or there are more groups with rules than free bits.
    """
    members = {s.group for s in shapes if isinstance(s.group, str)}
    names = sorted({name for pair in rules for name in pair if name is not None})
    for name in names:
        if name not in members:
            raise _unknown(name, members)
    used = UNNAMED
    for s in shapes:
        used |= 0 if isinstance(s.group, str) else s.group
    free = [1 << k for k in range(31, -1, -1) if not used >> k & 1]
    if len(names) > len(free):
        raise validate.fail(
            "ModelBuilder.set_group_collision",
            f"{len(names)} groups have rules, and {len(free)} of 32 bits are free",
            "give shapes with the same rules one group name, or use exclude_collision_pair",
        )
    bits = dict(zip(names, free, strict=False))
    masks = {name: _mask(name, bits, rules) for name in names}

    def with_bits(s: ShapeSpec) -> ShapeSpec:
        if not isinstance(s.group, str):
            return s
        return dataclasses.replace(s, group=bits.get(s.group, UNNAMED), mask=s.mask & masks.get(s.group, ALL_GROUPS))

    return [with_bits(s) for s in shapes]


def _mask(name: str, bits: Mapping[str, int], rules: GroupRules) -> int:
    """Return the bits of all collision groups that collide with the group ``name``."""
    opened = rules.get((name, None), True)
    mask = ALL_GROUPS & ~sum(bits.values()) if opened else 0
    for other, bit in bits.items():
        pair = (min(name, other), max(name, other))
        if rules.get(pair, opened and rules.get((other, None), True)):
            mask |= bit
    return mask


def _unknown(name: str, members: set[str]) -> Exception:
    near = difflib.get_close_matches(name, members, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f'give a shape group="{name}"'
    known = ", ".join(sorted(members)) or "none"
    return validate.fail(
        "ModelBuilder.set_group_collision", f"no shape is in group '{name}' (groups of shapes: {known})", hint
    )
