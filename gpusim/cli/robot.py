"""A scene around a robot file, for ``gpusim run robot.urdf``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpusim.cli.console import note
from gpusim.scene import Plot, Scene

DURATION = 2.0
"""Duration of a run of a robot file, s."""

_LINES_IN_A_PANEL = 8
_SLIDING = "prismatic"
_TURNING = ("revolute", "continuous")


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
    from gpusim.importers import add_holding_servos, load_urdf
    from gpusim.model.config import SolverConfig

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
