"""Names that changed in versions 0.2 and 0.3. An error for an old name contains the new name.

docs/reference/renamed.md lists all names.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

RENAMED = {
    # arguments and fields
    "epsilon": "impulse_tolerance",
    "push_speed": "max_depenetration_speed",
    "most_delay": "max_delay",
    "most_latency": "max_latency",
    "most_rate": "max_rate",
    "most_way": "max_way",
    "most": "max_time",
    "mask": "worlds",
    "package_dirs": "asset_dirs",
    "world": "worlds",
    # launches
    "grouped": "simd",
    # kinds of blocks
    "along": "project",
    "component": "select_element",
    "edge": "edge_detector",
    "extreme": "minmax",
    "filter": "lowpass",
    "filter2": "lowpass2",
    "hold": "sample_hold",
    "inlet": "inport",
    "latch": "sr_latch",
    "move": "point_to_point",
    "outlet": "outport",
    "pack": "mux",
    "quantiser": "quantizer",
    "table": "lookup",
    "table2": "lookup2d",
    "turned": "rotate",
}
"""Old and new names of arguments, fields, launches and blocks."""

REPLACED = {"add_brake": {"safe": "set_command_map(label, safe=...)"}}
"""Removed arguments by function, and the call that replaces each."""

RUNTIME = (
    *("accuracy", "add_state", "capacity", "contact_sums", "current_angles", "drivers", "forward", "now", "parameter"),
    *("parameters", "quarantine", "signal_list", "signal_table", "states", "write_parameter"),
)
"""Members of ``Simulation`` in version 0.1 that moved to ``sim.runtime``."""

MOVED = {
    "gpusim.control.add_encoder": "gpusim.sensors.add_encoder",
    "gpusim.control.add_imu": "gpusim.sensors.add_imu",
    "gpusim.control.add_range_finder": "gpusim.sensors.add_range_finder",
    "gpusim.backends.cuda_backend": "gpusim.backends.cuda.backend",
    "gpusim.backends.native_backend": "gpusim.backends.native.backend",
    "gpusim.backends.numpy_backend": "gpusim.backends.numpy.backend",
    "gpusim.geometry": "gpusim.shapes",
    "gpusim.geometry.tessellation": "gpusim.meshes.tessellation",
    "gpusim.model.actuator_kinds": "gpusim.description.actuator_kinds",
    "gpusim.model.builder": "gpusim.builder.builder",
    "gpusim.model.config": "gpusim.description.config",
    "gpusim.model.contact_law": "gpusim.contact.law",
    "gpusim.model.field": "gpusim.description.field",
    "gpusim.model.finalize": "gpusim.builder.finalize",
    "gpusim.model.joint_kinds": "gpusim.description.joint_kinds",
    "gpusim.model.material": "gpusim.contact.material",
    "gpusim.model.rays": "gpusim.description.rays",
    "gpusim.model.shape_kinds": "gpusim.description.shape_kinds",
    "gpusim.model.specs": "gpusim.description.specs",
    "gpusim.model.validate": "gpusim.validate",
    "gpusim.reference.work": "gpusim.reference.step_buffers",
    "gpusim.schedule": "gpusim.command_schedule",
    "gpusim.viewer.scene": "gpusim.stage",
    "gpusim.sensors.energy_audit": "gpusim.energy_audit",
    "gpusim.sensors.signal": "gpusim.signals.signal",
    "gpusim.sensors.table": "gpusim.signals.table",
    "BoomArm.places": "BoomArm.poses",
    "Diagram.most_rate": "Diagram.max_rate",
    "Simulation.changed": "Simulation.invalidate",
    "Simulation.emergency_stop": "Simulation.override",
    "Simulation.health_word": "Simulation.status_flags",
    "Simulation.release_stop": "Simulation.release",
    "Simulation.sample_programs": "Simulation.sample_diagrams",
    "Simulation.stopped": "Simulation.overridden",
    "SolverConfig.epsilon": "SolverConfig.impulse_tolerance",
    "SolverConfig.push_speed": "SolverConfig.max_depenetration_speed",
    "Tree.place": "Tree.frame",
} | {f"Simulation.{name}": f"Simulation.runtime.{name}" for name in RUNTIME}
"""Old and new names of modules, functions and methods."""


OF_ACTUATORS = {
    "contribute": "evaluate",
    "couple": "evaluate_coupled",
    "curved": "nonlinear",
    "placed": "completed",
    "recouple": "relinearize_coupled",
    "refresh": "relinearize",
    "steering": "ui_hints",
    "turns": "rotational",
}
"""Old and new names of methods and attributes of actuator kinds."""

OF_CHAINS = {"place": "pose", "slide": "prismatic", "turn": "revolute"}
"""Old and new names in the description of a chain's joint (``gpusim.control.chain``): the pose key and the joint
kinds."""

OPTIONS = {
    "--most-step": "--max-dt of 'gpusim view'",
    "--peers": "'python ci/peers' in a checkout",
    "--estimate": "'python ci/ptx/count.py' in a checkout",
}
"""Old command line options, and the options or commands that replace them."""

SINCE_0_3 = frozenset(
    "BoomArm.places gpusim.viewer.scene mask package_dirs place placed slide turn turns world".split(),
)
"""Old names that changed in version 0.3. All other names changed in version 0.2."""


def since(name: str) -> str:
    """Return "since version ..." with the version in which the old ``name`` changed."""
    return f"since version {'0.3' if name in SINCE_0_3 else '0.2'}"


def new_name(name: str, known: Iterable[str]) -> str | None:
    """Return the new name of ``name``, or None if ``known`` does not contain it."""
    new = RENAMED.get(name)
    return new if new is not None and new in known else None


def no_attribute(owner: str, name: str) -> AttributeError:
    """Return the error for a missing attribute. ``owner``: name of the module or class, as in ``MOVED``."""
    moved = MOVED.get(f"{owner}.{name}")
    hint = f"; it is {moved} {since(f'{owner}.{name}')}" if moved else ""
    what = f"module {owner!r}" if owner.startswith("gpusim") else f"{owner!r} object"
    return AttributeError(f"{what} has no attribute {name!r}{hint}")


class OldModules:
    """Import finder that raises an error for old module names. The error message contains the new name."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        """Raise an error if the module has a new name. Python calls this method after all other finders."""
        if name in MOVED:
            # The error has no argument ``name=``: else "from gpusim import geometry" would hide the error.
            raise ModuleNotFoundError(f"No module named {name!r}; it is {MOVED[name]!r} {since(name)}")


class FixedNames:
    """Base class that allows no new attributes after ``__init__``. Setting a misspelled attribute raises an error."""

    _constant: ClassVar[Mapping[str, str]] = {}
    """Attributes that cannot be set after ``__init__``, and what to do instead."""

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            """Raise an AttributeError for an unknown name. Subclasses in other packages may add attributes."""
            if "_complete" in self.__dict__ and not name.startswith("_"):
                owner = f"{type(self).__name__!r} object"
                if name in self._constant:
                    raise AttributeError(f"{owner}: {name!r} cannot be set; {self._constant[name]}")
                known = self.__dict__.keys() | set(dir(type(self)))
                if name not in known and type(self).__module__.startswith("gpusim."):
                    near = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], n=1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    raise AttributeError(f"{owner} has no attribute {name!r}{hint}")
            super().__setattr__(name, value)


class NamesMoved:
    """Base class of classes with renamed methods."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise the error for an old attribute name."""
            if f"{type(self).__name__}.{name}" in MOVED:
                raise no_attribute(type(self).__name__, name)
            return object.__getattribute__(self, name)  # raises the usual error, or the error that a property raised


def checks_old_names(function: F) -> F:
    """Decorate a function to raise a TypeError for unknown arguments. The error contains the new or nearest name."""
    parameters = inspect.signature(function).parameters
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs.keys() - parameters.keys():
            owner, known = function.__qualname__.removesuffix(".__init__"), [p for p in parameters if p != "self"]
            if new := new_name(name, parameters):
                raise TypeError(f"{owner}: the argument {name!r} is {new!r} {since(name)}")
            if call := REPLACED.get(function.__name__, {}).get(name):
                raise TypeError(f"{owner}: the argument {name!r} is removed; use {call}")
            if not takes_any:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
                raise TypeError(f"{owner}: unknown argument {name!r}; {hint}")
        return function(*args, **kwargs)

    return cast(F, checked)
