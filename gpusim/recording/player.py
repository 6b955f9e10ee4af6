"""Player of a recorded motion, with interpolation between frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusim.errors import ModelError
from gpusim.recording.motion import Motion
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.model.model import Model


def between(first: Array, second: Array, fraction: float) -> Array:
    """Interpolate linearly between ``first`` (fraction 0) and ``second`` (fraction 1)."""
    blend: Array = first + fraction * (second - first)
    return blend


def slerp(first: Array, second: Array, fraction: float) -> Array:
    """Interpolate unit quaternions (..., 4) at constant angular velocity along the shortest rotation.

    Source: K. Shoemake, Animating rotation with quaternion curves, SIGGRAPH 1985.
    """
    cosine = np.sum(first * second, axis=-1, keepdims=True)
    second = np.where(cosine < 0.0, -second, second)
    angle = np.arccos(np.clip(np.abs(cosine), 0.0, 1.0))
    sine = np.sin(angle)
    near = sine < 1e-6  # interpolate linearly between almost equal quaternions
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(near, 1.0 - fraction, np.sin((1.0 - fraction) * angle) / sine)
        b = np.where(near, fraction, np.sin(fraction * angle) / sine)
    mixed = a * first + b * second
    unit: Array = mixed / np.linalg.norm(mixed, axis=-1, keepdims=True)
    return unit


class MotionPlayer:
    """Player of a recorded motion. The viewer can draw a player instead of a simulation.

    Args:
        motion: the recorded motion.
        model: model of the scene or file that the motion belongs to.

    Attributes:
        time: current time (s) since the first frame. If you set a time, the player clips it to the duration of the
            motion.

    Raises:
        ModelError: the bodies of the model and of the motion differ.
    """

    def __init__(self, motion: Motion, model: Model) -> None:
        labels = [body.label for body in model.bodies]
        if labels != list(motion.header.bodies):
            raise ModelError(
                f"recording of {motion.header.target!r}: it has {len(motion.header.bodies)} bodies that are not the "
                f"{len(labels)} of the model; play it with the version of the model that it was made with"
            )
        self.motion, self.model = motion, model
        self.num_worlds = len(motion.header.worlds)
        self._time = 0.0

    @property
    def duration(self) -> float:
        """Duration of the motion (s)."""
        return self.motion.duration

    @property
    def time(self) -> float:
        """Current time (s) since the first frame."""
        return self._time

    @time.setter
    def time(self, value: float) -> None:
        self._time = min(max(value, 0.0), self.duration)

    def frame(self) -> int:
        """Return the index of the last frame at or before the current time."""
        at = self.motion.time[0] + self._time + 1e-9
        return max(0, int(np.searchsorted(self.motion.time, at, side="right")) - 1)

    def go_to_frame(self, number: int) -> None:
        """Set the current time to the time of a frame. Clip ``number`` to the existing frames."""
        number = min(max(number, 0), len(self.motion) - 1)
        self._time = float(self.motion.time[number] - self.motion.time[0])

    def read_state(self) -> dict[str, Array]:
        """Return the poses at the current time, in the format of a simulation's state.

        "position" contains the centers of mass (worlds, bodies + 1, 3), m. "orientation" contains the quaternions
        (worlds, bodies + 1, 4). The last body is the world.
        """
        number = self.frame()
        after = min(number + 1, len(self.motion) - 1)
        times = self.motion.time - self.motion.time[0]
        gap = times[after] - times[number]
        fraction = float((self._time - times[number]) / gap) if gap > 0.0 else 0.0
        count = len(self.model.bodies)
        position = np.zeros((self.num_worlds, count + 1, 3))
        orientation = np.zeros((self.num_worlds, count + 1, 4))
        orientation[:, count, 3] = 1.0
        centers, orientations = self.motion.center_of_mass, self.motion.orientation
        position[:, :count] = between(centers[number], centers[after], fraction)
        orientation[:, :count] = slerp(orientations[number], orientations[after], fraction)
        return {"position": position, "orientation": orientation}

    def read_signals(self) -> dict[str, Array]:
        """Return the values of the diagram wires in the current frame: name -> array (worlds, numbers)."""
        if self.motion.signals is None:
            return {}
        row = np.asarray(self.motion.signals[self.frame()])
        names, sizes = list(self.motion.header.signals), list(self.motion.header.signals.values())
        return dict(zip(names, np.split(row, np.cumsum(sizes)[:-1], axis=1), strict=True))
