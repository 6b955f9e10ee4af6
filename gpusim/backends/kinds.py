"""Actuator kinds in a build of the kernels, and the source texts of custom kinds.

Every build contains COMMON_KINDS. It also contains all other kinds that the model uses.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

from gpusim import validate
from gpusim.actuators import PACKAGE_KINDS
from gpusim.backends.health import MAX_VARIABLES
from gpusim.compile_cache import OWN_FOLDER
from gpusim.description.actuator_kinds import ActuatorType
from gpusim.model.model import Model

Kinds = tuple[ActuatorType, ...]
"""Actuator kinds, sorted by name. The number of a kind is its index in ``Kinds``."""

COMMON_KINDS: Kinds = tuple(kind for kind in PACKAGE_KINDS if not kind.extra)
"""Actuator kinds that every build contains."""


def kinds_of(model: Model) -> Kinds:
    """Return the actuator kinds in the build of a model: COMMON_KINDS and all other kinds that the model uses."""
    known = {kind.name: kind for kind in COMMON_KINDS} | {group.type.name: group.type for group in model.groups}
    return tuple(known[name] for name in sorted(known))


def own_kinds(kinds: Kinds) -> Kinds:
    """Return the custom actuator kinds among ``kinds``. Users define custom kinds outside the package."""
    classes = {type(kind) for kind in PACKAGE_KINDS}
    return tuple(kind for kind in kinds if type(kind) not in classes)


def own_file(kind: ActuatorType) -> str:
    """Return the file name of the kernel source of a custom actuator kind."""
    return f"{OWN_FOLDER}/{kind.name}.cuh"


def own_sources(kinds: Kinds) -> dict[str, str]:
    """Return the kernel sources of custom actuator kinds: texts by file name.

    Raises:
        ModelError: a file in ``kernel_source`` cannot be read.
    """
    sources: dict[str, str] = {}
    for kind in own_kinds(kinds):
        text = kernel_text(kind)
        sources[own_file(kind)] = "" if text in sources.values() else text
    return sources


def kernel_text(kind: ActuatorType) -> str:
    """Return the kernel source of an actuator kind. ``kernel_source`` is the text itself or the path of a file.

    Raises:
        ModelError: the file cannot be read.
    """
    source = kind.kernel_source
    if not source.endswith(".cuh"):
        return source
    owner = next(c for c in type(kind).__mro__ if "kernel_source" in vars(c))
    try:
        return Path(inspect.getfile(owner)).with_name(source).read_text(encoding="utf-8")
    except (OSError, TypeError) as error:
        rule = f"kernel_source = {source!r} can't be read next to the file of class {owner.__name__} ({error})"
        raise validate.fail(_element(kind), rule, "move the file there, or give the text of the kernels") from error


def check_kernels(kinds: Kinds) -> None:
    """Check the kernel sources of custom actuator kinds before compilation.

    Raises:
        ModelError: a method of an actuator kind has no kernel function, or the kernel source has an error.
    """
    for kind in own_kinds(kinds):
        _check_functions(kind)
        parts = [part.name for parts in (kind.parameters, kind.variables, kind.readings) for part in parts]
        for name in (kind.name, *kind.commands, *kind.kernel_scratch, *parts):
            if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
                rule = f"the name {name!r} must consist of letters, digits and _, and begin with a letter"
                raise validate.fail(_element(kind), rule, "rename it")
        if len(kind.variables) > MAX_VARIABLES:
            rule = f"has {len(kind.variables)} state variables, the maximum is {MAX_VARIABLES}"
            raise validate.fail(_element(kind), rule, "declare the others in state_fields")


def _check_functions(kind: ActuatorType) -> None:
    """Check that an actuator kind has a kernel function for each Python method."""
    done = [f for f in ("push", "evaluate", "advance") if getattr(type(kind), f) is not getattr(ActuatorType, f)]
    done += ["relinearize"] if kind.nonlinear else []
    if kind.coupled:
        done = [{"evaluate": "evaluate_coupled", "relinearize": "relinearize_coupled"}.get(f, f) for f in done]
    missing = [f for f in done if f not in kind.kernel]
    if missing:
        rule = f"needs {' and '.join(missing)}, but does not list it in 'kernel'"
        hint = 'list it and give its text in kernel_source, or use backend="numpy"'
        raise validate.fail(_element(kind), rule, hint)
    functions = [f"{kind.name}_{f}" for f in kind.kernel]
    text = kernel_text(kind)
    absent = [name for name in functions if not re.search(rf"\b{re.escape(name)}\s*\(", text)]
    if absent:
        rule = f"kernel_source has no function {' and no '.join(absent)}"
        raise validate.fail(_element(kind), rule, 'add it to kernel_source, or use backend="numpy"')


def check_names(kinds: Kinds, names: list[str]) -> None:
    """Check that custom actuator kinds use no existing kernel name.

    Raises:
        ModelError: a custom kind uses an existing name.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        element = "actuator kinds " + ", ".join(f"'{kind.name}'" for kind in own_kinds(kinds))
        raise validate.fail(
            element, f"two parts have the name {twice[0]!r} in the kernels", "rename a kind or its part"
        )


def _element(kind: ActuatorType) -> str:
    return f"actuator kind '{kind.name}'"
