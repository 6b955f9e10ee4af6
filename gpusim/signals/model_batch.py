"""Simulation with a different model in each world.

The models can differ in the parameters of bodies, joints, shapes and actuators, and in the initial state. All other
data must be equal: topology, sizes of shapes, centers of mass, commands, diagrams and sensors. The results of world i
are bit-identical to those of a separate simulation of model i.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.description.config import SolverConfig
from gpusim.errors import ModelError
from gpusim.model.digest import digest_of
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.signals.runtime import Runtime

_EQUAL = (
    *("topology", "contact", "coordinates", "angle_of", "controls", "default_controls", "control_map"),
    *("operator_commands", "couplings", "pairs", "sites", "sensors", "diagrams", "num_worlds"),
)
"""Parts of a model that all worlds of a simulation share."""
_BODY = ("mass", "inertia", "xform", "linear_velocity", "angular_velocity", "gravity_scale")
_JOINT = ("limit_lower", "limit_upper", "damping", "friction", "armature", "limit_restitution")
_GROUP = ("specs", "params", "state", "derived")
"""Fields of actuator groups that may differ between worlds."""


def structure(model: Model, config: SolverConfig) -> str:
    """Return a hash of the model data that must be equal in all worlds of a simulation."""
    parts: list[Any] = [config, *(getattr(model, name) for name in _EQUAL)]
    parts += [_without(body, _BODY) for body in model.bodies]
    parts += [_without(axis, ("params",)) for axis in model.axes]
    for joint in model.joints:
        kept = {name: value for name, value in joint.params.items() if name not in _JOINT}
        parts += [_without(joint, ("params",)), kept]
    parts += [_without(shape, ("material", "color")) for shape in model.shapes]
    for actuator in model.actuators:  # the groups' arrays contain all numbers of the actuators except delays
        kept = {name: value for name, value in actuator.params.items() if _shared(name, value)}
        parts += [_without(actuator, ("params",)), kept]
    for group in model.groups:
        whole = {name: array for name, array in group.params.items() if array.dtype.kind != "f"}
        parts += [_without(group, _GROUP), whole, {name: array.shape for name, array in group.params.items()}]
    return digest_of(parts)


def _shared(name: str, value: Any) -> bool:
    """Return whether an actuator parameter must be equal in all worlds."""
    return name == "delay" or not isinstance(value, float | np.ndarray)


def _without(element: Any, names: Sequence[str]) -> dict[str, Any]:
    return {f.name: getattr(element, f.name) for f in dataclasses.fields(element) if f.name not in names}


def checked_models(model: Any, num_worlds: Any, config: Any) -> list[Model]:
    """Check and return the models of a simulation: one model for all worlds, or one model for each world.

    Raises:
        ModelError: a value is not a model, the numbers of models and worlds differ, or data that must be equal differs.
    """
    models = list(model) if isinstance(model, list | tuple) else [model]
    for one in models:
        if not isinstance(one, Model):
            raise ModelError(f"Simulation: model is a {type(one).__name__}; give the result of builder.finalize()")
    if not models or (len(models) > 1 and num_worlds not in (None, len(models))):
        rule = f"{len(models)} models do not fit num_worlds = {num_worlds}"
        raise validate.fail("Simulation", rule, "give one model, or one for each world")
    settings = config if isinstance(config, SolverConfig) else SolverConfig()
    first = structure(models[0], settings) if len(models) > 1 else ""
    for number, one in enumerate(models[1:], 1):
        if structure(one, settings) != first:
            rule = f"model {number} differs from model 0 in parts that all worlds must share"
            raise validate.fail("Simulation", rule, "simulate it separately, or let gpusim.sweep group the models")
    return models


def merge_models(runtime: Runtime, models: Sequence[Model], dtype: Any) -> None:
    """Set the parameters of world i to those of model i. All models must have the same :func:`structure`."""
    worlds = np.arange(len(models))
    for name in runtime.parameters:
        stacked = np.concatenate([model.parameters[name] for model in models])
        if np.any(stacked != stacked[:1]):
            runtime.parameters[name] = stacked
            runtime.backend.written([name], worlds)
    first = [State.initial(model, 1, dtype, runtime.config) for model in models]
    for k, group in enumerate(runtime.state.groups):
        for name in group.params:
            stacked = np.concatenate([state.groups[k].params[name] for state in first])
            if np.any(stacked != stacked[:1]):
                group.params[name] = stacked
                group.derived.clear()
                runtime.backend.written([name], worlds, group.type.name)
    variables = [state.variables() for state in first]
    for target in runtime.states():
        target_variables = target.variables()
        for name in variables[0]:
            target_variables[name][...] = np.concatenate([one[name] for one in variables])
    runtime.invalidate()
