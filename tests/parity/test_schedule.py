from __future__ import annotations

import re
from functools import cache

import pytest

from gpusim.actuators import PACKAGE_KINDS
from gpusim.backends.codegen.header import actuators_header, slab_fields
from gpusim.backends.codegen.kernel_sources import kernel_sources
from gpusim.solver.nodes import Run, walk
from gpusim.solver.phases import PHASES
from gpusim.solver.schedule import FORWARD, STEP

_FUNCTION = re.compile(r"GPUSIM_(?:PHASE|FN|SHARED)\s+[^;{}()]*?\b(\w+)\([^)]*\)\s*\{")
OUTSIDE = ("signals/observe.cuh", "signals/writes.cuh")
FIELDS = {field.name for field in slab_fields(PACKAGE_KINDS)}
OF_KINDS = {field.name for kind in PACKAGE_KINDS for field in kind.kernel_fields}


@cache
def functions() -> dict[str, list[str]]:
    texts = [text for name, text in kernel_sources().items() if name not in OUTSIDE and not name.startswith("collide/")]
    texts.append(actuators_header(PACKAGE_KINDS))
    bodies: dict[str, list[str]] = {}
    for text in (re.sub(r"//[^\n]*", "", text) for text in texts):
        for match in _FUNCTION.finditer(text):
            end, depth = match.end(), 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            bodies.setdefault(match[1], []).append(text[match.end() : end])
    return bodies


def _array(name: str) -> str | None:
    if name in OF_KINDS:
        return "actuator_scratch"
    if name in FIELDS:
        return name
    for kind in PACKAGE_KINDS:
        own = name.removeprefix(f"{kind.name}_")
        if own == name:
            continue
        if own in [v.name for v in kind.variables]:
            return "actuator_state"
        if own in kind.kernel_scratch:
            return "actuator_scratch"
        if own.removesuffix("_before") in kind.commands:
            return "command_before" if own.endswith("_before") else None
    return None


def touched(name: str, seen: set[str]) -> set[str]:
    if name in seen:
        return set()
    seen.add(name)
    found: set[str] = set()
    for body in functions().get(name, []):
        found |= {array for n in re.findall(r"\bw\.(?:a->kept_)?(\w+)\(", body) if (array := _array(n))}
        for called in set(re.findall(r"\b(\w+)\s*(?:<[^<>]*>)?\(", body)) & functions().keys():
            found |= touched(called, seen)
    return found


@pytest.mark.parametrize("name", PHASES)
def test_phases_touch_what_the_table_reports(name: str) -> None:
    phase = PHASES[name]
    reads, writes = set(phase.reads.split()), set(phase.writes.split())
    assert not reads & writes
    assert touched(name, set()) == reads | writes


def test_every_phase_has_its_place() -> None:
    placed = {part.phase.name for node in (*STEP, FORWARD) for part in walk(node) if isinstance(part, Run)}
    lists = {"warm_contact", "sweep_contact", "push_contact", "add_contact_parts", "add_push_parts"}
    assert PHASES.keys() - placed - lists == {"set_forward", "conclude", "publish_active"}
