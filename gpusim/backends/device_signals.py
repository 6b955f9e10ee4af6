"""Which signals kernels read, and by which numbers (cuda_kernels/signals.cuh)."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.backends.header import READS, reading_numbers
from gpusim.backends.kinds import kinds_of
from gpusim.backends.tables import coordinate_numbers
from gpusim.model.model import Model

TIME, RESIDUAL, CENTER, POSITION, ORIENTATION, LINEAR, ANGULAR, MOMENTUM, COORDINATE, RATE, ACTUATOR = range(len(READS))
# Signals of the poses alone; the others need the stage sense.
_OF_POSES = (TIME, RESIDUAL, CENTER, POSITION, ORIENTATION, COORDINATE)


@dataclass(frozen=True)
class DeviceSignal:
    """Numbers with which a kernel reads a signal.

    ``shape`` is that of one world; ``sensed`` tells whether the stage sense must have run.
    """

    what: int
    index: int
    shape: tuple[int, ...]
    sensed: bool


def device_signals(model: Model) -> dict[str, DeviceSignal]:
    """Signals that kernels read, by name."""
    found: dict[str, DeviceSignal] = {}

    def add(name: str, what: int, index: int = 0, shape: tuple[int, ...] = ()) -> None:
        found[name] = DeviceSignal(what, index, shape, what not in _OF_POSES)

    add("sim.time", TIME)
    add("sim.residual", RESIDUAL)
    for index, body in enumerate(model.bodies):
        prefix = f"body.{body.label}."
        add(prefix + "center_of_mass", CENTER, index, (3,))
        add(prefix + "position", POSITION, index, (3,))
        add(prefix + "orientation", ORIENTATION, index, (4,))
        add(prefix + "linear_velocity", LINEAR, index, (3,))
        add(prefix + "angular_velocity", ANGULAR, index, (3,))
        add(prefix + "angular_momentum", MOMENTUM, index, (3,))
    numbers = coordinate_numbers(model)
    for joint, spec in enumerate(model.joints):
        # Several coordinates of a joint are one signal, which the host puts together.
        if len(model.coordinates[joint]) == 1 and (joint, 0) in numbers:
            add(f"joint.{spec.label}.position", COORDINATE, numbers[joint, 0])
            add(f"joint.{spec.label}.velocity", RATE, numbers[joint, 0])
    for (kind, reading), number in reading_numbers(kinds_of(model)).items():
        group = next((g for g in model.groups if g.type.name == kind), None)
        for k, label in enumerate(group.labels if group else ()):
            assert group is not None
            add(f"{group.type.prefix}.{label}.{reading}", ACTUATOR + number, k)
    return found
