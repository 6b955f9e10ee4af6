from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpusim import machines as m
from gpusim.scenes._checks import Recording
from gpusim.scenes.mechanisms.suspension_rig import SHAKER_DAMPING, SHAKER_SCHEDULE, SHAKER_STIFFNESS, travel_of

LAG = SHAKER_DAMPING / SHAKER_STIFFNESS
"""Time constant with which the plate follows its command, s."""
FREE, END = 5.0, 8.0
SPAN = 0.02


@dataclass(frozen=True)
class Heave:
    poles: tuple[complex, complex]

    @classmethod
    def of(cls, rest: m.Static) -> Heave:
        frequency, ratio = 2.0 * math.pi * rest.frequency, rest.damping_ratio
        apart = complex(ratio * ratio - 1.0) ** 0.5 or 1e-6
        return cls((frequency * (-ratio + apart), frequency * (-ratio - apart)))

    def free(self, time: np.ndarray) -> np.ndarray:
        (p, q), t = self.poles, np.maximum(time, 0.0)
        rise, fall = np.exp(p * t), np.exp(q * t)
        both = np.stack([(p * fall - q * rise) / (p - q), (rise - fall) / (p - q)], axis=1)
        return np.asarray(np.where(time[:, None] >= 0.0, both.real, 0.0))

    def shaken(self, time: np.ndarray) -> np.ndarray:
        times, ways = np.array(SHAKER_SCHEDULE).T
        bends = np.diff(np.diff(ways) / np.diff(times), prepend=0.0, append=0.0)
        return np.asarray(-sum(bend * self._bent(time - t) for t, bend in zip(times, bends, strict=True)))

    def _bent(self, time: np.ndarray) -> np.ndarray:
        (p, q), rate, t = self.poles, 1.0 / LAG, np.maximum(time, 0.0)
        parts = [(np.exp(pole * t) - np.exp(-rate * t)) / (pole + rate) for pole in (p, q)]
        return np.asarray((rate * (parts[0] - parts[1]) / (p - q)).real)


def heaves(run: Recording, rest: m.Static) -> bool:
    reported = Heave.of(rest).poles[0]
    every = max(1, round(SPAN / (run["time"][1] - run["time"][0])))
    times = run["time"][run["time"] < 1.2][::every]
    x = travel_of(run)[: every * len(times) : every] - rest.travel
    a, b = np.linalg.lstsq(np.stack([x[1:-1], x[:-2]], axis=1), x[2:], rcond=None)[0]
    step = times[1] - times[0]
    seen = complex(np.log(complex(np.roots([1.0, -a, -b])[0]))) / step
    # samples give a frequency except for whole turns between them
    turns = [complex(seen.real, sign * seen.imag + 2.0 * math.pi * k / step) for k in range(-3, 4) for sign in (1, -1)]
    pole = min(turns, key=lambda one: abs(one - reported))
    frequency, ratio = abs(pole) / (2.0 * math.pi), -pole.real / max(abs(pole), 1e-9)
    near = abs(ratio - rest.damping_ratio) < max(0.03 * rest.damping_ratio, 5e-4)
    return bool(abs(frequency / rest.frequency - 1.0) < 0.01 and near)


def shakes(run: Recording, rest: m.Static) -> bool:
    heave, time, height = Heave.of(rest), run["time"], rest.travel - travel_of(run)
    before, after = (time >= FREE) & (time < SHAKER_SCHEDULE[0][0]), time >= SHAKER_SCHEDULE[0][0]
    state = np.linalg.lstsq(heave.free(time[before] - FREE), height[before], rcond=None)[0]
    reported = heave.free(time[after] - FREE) @ state + heave.shaken(time[after])
    return bool(np.abs(height[after] - reported).max() < 1e-3 + 0.05 * np.abs(reported).max())
