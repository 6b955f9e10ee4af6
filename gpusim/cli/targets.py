"""The scene that a command line names: one of the package, or one around a robot file (``gpusim run robot.urdf``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions
from gpusim.errors import unknown_name
from gpusim.scene import Plot, Scene, load_scene, scene_parameters

DURATION = 2.0
"""Duration of a run of a robot file, s."""

_LINES_IN_A_PANEL = 8
_SLIDING = "prismatic"
_TURNING = ("revolute", "continuous")


def load_target(options: RunOptions, visuals: bool = True) -> Scene:
    """Load the scene that a command line names, or build one around its robot file.

    ``visuals``: also read a robot's visual shapes, for pictures.
    """
    if options.is_file():
        if options.seed is not None:
            note(f"robot {options.target!r} draws no random numbers; --seed changes nothing")
        return robot_scene(options.target, hold=not options.fixed_base, visuals=visuals)
    parameters: dict[str, Any] = options.parameters()
    known = [parameter.name for parameter in scene_parameters(options.target)]
    for name in parameters:
        if name not in known:
            error = unknown_name("parameter", name, known)
            raise OptionError(f"--set: {error}; see 'gpusim list {options.target}'")
    if options.seed is not None:
        if "seed" not in known:
            note(f"scene {options.target!r} draws no random numbers; --seed changes nothing")
        elif "seed" in parameters:
            raise OptionError("--seed and --set seed=... both give the seed; keep one of them")
        else:
            parameters["seed"] = options.seed
    return load_scene(options.target, **parameters)


def robot_scene(path: str, *, hold: bool, visuals: bool = True) -> Scene:
    """Read a URDF file and build a scene around it. Its base is fixed to the world.

    Warnings of the importer go to stderr.

    Args:
        path: path of the file.
        hold: hold all joints at zero with position servos; otherwise the robot swings freely from its base.
        visuals: also read the visual shapes, for pictures.

    Raises:
        ModelError: the file, or a package that reads it, is missing or broken.
    """
    from gpusim.description.config import SolverConfig
    from gpusim.importers import add_holding_servos, load_urdf

    builder, report = load_urdf(Path(path), fixed_base=True, visuals=visuals)
    for warning in report.warnings:
        note(f"warning: {warning}")
    if hold:
        add_holding_servos(builder, report)
    turning = [joint.label for joint in report.joints.values() if joint.kind in _TURNING]
    sliding = [joint.label for joint in report.joints.values() if joint.kind == _SLIDING]
    plots = _panels("joint angles", "rad", turning) + _panels("joint positions", "m", sliding)
    return Scene(
        name=report.robot_name or Path(path).stem,
        description="held at its zero pose" if hold else "swinging from its base",
        builder=builder,
        config=SolverConfig(dt=1e-3),
        duration=DURATION,
        plots=plots or [_energy_panel()],
    )


def _panels(title: str, unit: str, joints: Sequence[str]) -> list[Plot]:
    """Return panels of a few joints each. More line colors cannot be distinguished."""
    groups = [joints[i : i + _LINES_IN_A_PANEL] for i in range(0, len(joints), _LINES_IN_A_PANEL)]
    return [
        Plot(
            title=title if len(groups) == 1 else f"{title} ({number} of {len(groups)})",
            unit=unit,
            signals=[f"joint.{label}.position" for label in group],
            labels=list(group),
        )
        for number, group in enumerate(groups, start=1)
    ]


def _energy_panel() -> Plot:
    signals = ("sim.kinetic_energy", "sim.potential_energy")
    return Plot(title="energy", unit="J", signals=signals, labels=("kinetic", "potential"))
