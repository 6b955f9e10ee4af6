"""One simulation of several models that differ only in numbers which every world has for itself.

These are the parameters of bodies, joints, shapes and actuators, and the initial state. Everything else must be equal:
topology, sizes of shapes, centers of mass, commands, diagrams, sensors. World i then has the same bits as a simulation
of model i.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim.description.config import SolverConfig
from gpusim.model.digest import digest_of
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.simulation import DTYPES, Simulation

_EQUAL = (
    *("topology", "contact", "coordinates", "angle_of", "controls", "default_controls", "control_map"),
    *("operator_commands", "couplings", "pairs", "sites", "sensors", "diagrams", "num_worlds"),
)
"""Parts of a model that all worlds of a simulation share."""
_BODY = ("mass", "inertia", "xform", "linear_velocity", "angular_velocity", "gravity_scale")
_JOINT = ("limit_lower", "limit_upper", "damping", "friction", "armature", "limit_restitution")
_GROUP = ("specs", "params", "state", "derived")
"""Numbers of elements that every world has for itself."""


def structure(model: Model, config: SolverConfig) -> str:
    """Return a digest of everything that the worlds of one simulation share."""
    parts: list[Any] = [config, *(getattr(model, name) for name in _EQUAL)]
    parts += [_without(body, _BODY) for body in model.bodies]
    parts += [_without(axis, ("params",)) for axis in model.axes]
    for joint in model.joints:
        kept = {name: value for name, value in joint.params.items() if name not in _JOINT}
        parts += [_without(joint, ("params",)), kept]
    parts += [_without(shape, ("material", "color")) for shape in model.shapes]
    for actuator in model.actuators:  # their numbers are arrays of their group, except the delay of the command
        kept = {name: value for name, value in actuator.params.items() if _shared(name, value)}
        parts += [_without(actuator, ("params",)), kept]
    for group in model.groups:
        whole = {name: array for name, array in group.params.items() if array.dtype.kind != "f"}
        parts += [_without(group, _GROUP), whole, {name: array.shape for name, array in group.params.items()}]
    return digest_of(parts)


def _shared(name: str, value: Any) -> bool:
    """Return whether all worlds share a parameter of an actuator."""
    return name == "delay" or not isinstance(value, float | np.ndarray)


def _without(element: Any, names: Sequence[str]) -> dict[str, Any]:
    return {f.name: getattr(element, f.name) for f in dataclasses.fields(element) if f.name not in names}


def merged(models: Sequence[Model], config: SolverConfig, **options: Any) -> Simulation:
    """Return a simulation whose world i is model i. All models have the same :func:`structure`.

    Args:
        models: one for each world.
        config: settings of the step.
        options: of :class:`Simulation`.
    """
    sim = Simulation(models[0], num_worlds=len(models), config=config, **options)
    runtime, worlds = sim.runtime, np.arange(len(models))
    for name in runtime.parameters:
        stacked = np.concatenate([model.parameters[name] for model in models])
        if np.any(stacked != stacked[:1]):
            runtime.parameters[name] = stacked
            runtime.backend.parameter_written(name, worlds)
    first = [State.initial(model, 1, DTYPES[sim.dtype], config) for model in models]
    for k, group in enumerate(runtime.state.groups):
        for name in group.params:
            stacked = np.concatenate([state.groups[k].params[name] for state in first])
            if np.any(stacked != stacked[:1]):
                group.params[name] = stacked
                group.derived.clear()
                runtime.backend.actuator_written(group.type.name, name, worlds)
    variables = [state.variables() for state in first]
    for target in runtime.states():
        own = target.variables()
        for name in variables[0]:
            own[name][...] = np.concatenate([one[name] for one in variables])
    sim.invalidate()
    return sim
