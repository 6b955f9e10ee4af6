"""Checks of suspension_rig: its motions against the linear model of ``susp.static``, as far as that goes.

The chassis over a wheel that is led: z'' + 2 ratio w z' + w2 z = -y'' + F/m, z its height over its rest, y that of the
shaker's plate. Its poles give all of it, also where it creeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpusim import machines as m
from gpusim.errors import ModelError
from gpusim.scene import Check, Unchecked
from gpusim.scenes._checks import Recording

GRAVITY = 9.81
THROW = 9000.0
"""Force on the chassis that throws it onto its stops, N."""
PRESSED, LIFTED = (3.0, 3.5), (3.5, 4.0)
"""From, to, s: onto the upper stop, then the lower one."""
SHAKES = ((6.0, 0.0), (6.2, 0.04), (6.6, 0.04), (6.8, 0.0))
"""Of the shaker, s and m."""
SHAKER_STIFFNESS, SHAKER_DAMPING = 1e9, 1e7
LAG = SHAKER_DAMPING / SHAKER_STIFFNESS
"""Time constant with which the plate follows its command, s."""
SETTLED = 2.95
FREE, END = 5.0, 8.0
"""From when on the free swing is fitted that the shaker meets; end of the run, s."""
SPAN = 0.02
"""Between the samples that the heave is fitted to, s."""
LEAST = 5e-4
"""Way to the rest, m, of a heave that can be seen."""
SAME_RATE = 0.08
"""By how much the wheel rate may change over a swing that the linear model describes, share."""
SETTLES = "it settles where the hand calculation has it, within 0.1 mm and what its decay leaves"
HEAVES = "it heaves with the frequency and the damping of the linear model, within 1 and 3 %"
STOPS = "its stops end the travel within 0.5 mm"
SHAKEN = "the wheel follows the shaker, and the chassis swings over it as the linear model does"


@dataclass(frozen=True)
class Heave:
    """The linear model, by its two poles, 1/s."""

    poles: tuple[complex, complex]

    @classmethod
    def of(cls, rest: m.Static) -> Heave:
        """Of small motions about a rest."""
        frequency, ratio = 2.0 * math.pi * rest.frequency, rest.damping_ratio
        apart = complex(ratio * ratio - 1.0) ** 0.5 or 1e-6  # two poles in one place have no difference to divide by
        return cls((frequency * (-ratio + apart), frequency * (-ratio - apart)))

    @property
    def decay(self) -> float:
        """Of the slower one, 1/s."""
        return float(-max(pole.real for pole in self.poles))

    def free(self, time: np.ndarray) -> np.ndarray:
        """Heights after 1 m at rest and after 1 m/s at no height, (n, 2); none before the time 0."""
        (p, q), t = self.poles, np.maximum(time, 0.0)
        rise, fall = np.exp(p * t), np.exp(q * t)
        both = np.stack([(p * fall - q * rise) / (p - q), (rise - fall) / (p - q)], axis=1)
        return np.asarray(np.where(time[:, None] >= 0.0, both.real, 0.0))

    def shaken(self, time: np.ndarray) -> np.ndarray:
        """Height that the shaker gives it, m: each bend of its way is a jump of the speed, which its servo rounds."""
        times, ways = np.array(SHAKES).T
        bends = np.diff(np.diff(ways) / np.diff(times), prepend=0.0, append=0.0)
        return np.asarray(-sum(bend * self._bent(time - t) for t, bend in zip(times, bends, strict=True)))

    def _bent(self, time: np.ndarray) -> np.ndarray:
        """Height after a speed that has come in by 1 - exp(-t/LAG): free motions after all parts of the jump."""
        (p, q), rate, t = self.poles, 1.0 / LAG, np.maximum(time, 0.0)
        parts = [(np.exp(pole * t) - np.exp(-rate * t)) / (pole + rate) for pole in (p, q)]
        return np.asarray((rate * (parts[0] - parts[1]) / (p - q)).real)

    def thrown(self, time: np.ndarray, deep: float) -> np.ndarray:
        """Height while it is pressed and lifted, m, by a force that makes it ``deep`` at rest; without stops."""
        (start, turn), end = PRESSED, LIFTED[1]
        jumps = ((start, -deep), (turn, 2.0 * deep), (end, -deep))
        return np.asarray(sum(jump * ((time >= t) - self.free(time - t)[:, 0]) for t, jump in jumps))


def checks(susp: m.Suspension, load: float, payload: float, low: float, high: float) -> list[Check | Unchecked]:
    """Those that apply, and the others.

    Args:
        susp: with its hand calculation.
        load: under which it stands as built, N. payload: the load on it over that.
        low: travel at which the stops end it, m. high: likewise.
    """
    rest = susp.static(payload * load)
    heave = Heave.of(rest)
    return [
        Check(SETTLES, _settles(rest, heave)),
        _heaving(susp, load, payload, rest),
        _stopping(rest, heave, low, high),
        _shaking(rest, heave, low, high),
    ]


def travel_of(run: Recording) -> np.ndarray:
    """Of the wheel's center against the chassis, m up from where it was built."""
    travel: np.ndarray = (run["joint.plate.position"] - run["joint.guide.position"])[:, 0]
    return travel


def _settles(rest: m.Static, heave: Heave) -> Callable[[Recording], bool]:
    def passes(run: Recording) -> bool:
        late = (run["time"] > 2.0) & (run["time"] < SETTLED)
        left = abs(rest.travel) * np.exp(-heave.decay * run["time"][late])
        return bool(np.all(np.abs(travel_of(run)[late] - rest.travel) < 1e-4 + 1.1 * left))

    return passes


def _heaving(susp: m.Suspension, load: float, payload: float, rest: m.Static) -> Check | Unchecked:
    """Of a swing that can be seen, about whose rest the suspension is as the linear model has it, and that swings."""
    if abs(rest.travel) < LEAST:
        return Unchecked(HEAVES, f"it rests {1e3 * abs(rest.travel):.2g} mm from where it was built")
    if rest.damping_ratio >= 1.0:
        return Unchecked(HEAVES, f"it creeps to its rest (damping ratio {rest.damping_ratio:.3g})")
    try:
        rates = [susp.static(share * load).wheel_rate for share in (1.0, 2.0 * payload - 1.0)]
    except ModelError:
        return Unchecked(HEAVES, "its first swing goes onto a stop")
    change = abs(rates[1] - rates[0]) / rest.wheel_rate
    if change > SAME_RATE:
        return Unchecked(HEAVES, f"its wheel rate changes by {100.0 * change:.2g} % over the first swing")
    return Check(HEAVES, _heaves(rest))


def _heaves(rest: m.Static) -> Callable[[Recording], bool]:
    """Poles of x(t + T) = a x(t) + b x(t - T), fitted to the free decay at the start."""
    told = Heave.of(rest).poles[0]

    def passes(run: Recording) -> bool:
        every = max(1, round(SPAN / (run["time"][1] - run["time"][0])))
        times = run["time"][run["time"] < 1.2][::every]
        x = travel_of(run)[: every * len(times) : every] - rest.travel
        a, b = np.linalg.lstsq(np.stack([x[1:-1], x[:-2]], axis=1), x[2:], rcond=None)[0]
        step = times[1] - times[0]
        seen = complex(np.log(complex(np.roots([1.0, -a, -b])[0]))) / step
        # samples tell a frequency but for whole turns between them
        turns = [
            complex(seen.real, sign * seen.imag + 2.0 * math.pi * k / step) for k in range(-3, 4) for sign in (1, -1)
        ]
        pole = min(turns, key=lambda one: abs(one - told))
        frequency, ratio = abs(pole) / (2.0 * math.pi), -pole.real / max(abs(pole), 1e-9)
        near = abs(ratio - rest.damping_ratio) < max(0.03 * rest.damping_ratio, 5e-4)
        return bool(abs(frequency / rest.frequency - 1.0) < 0.01 and near)

    return passes


def _stopping(rest: m.Static, heave: Heave, low: float, high: float) -> Check | Unchecked:
    """Where the linear model, which has no stops, goes well past both of them."""
    time = np.linspace(PRESSED[0], LIFTED[1], 1001)
    ways = rest.travel - heave.thrown(time, THROW / (rest.load / GRAVITY * _square(heave)))
    if ways.max() < 1.15 * high or ways.min() > 1.15 * low:
        return Unchecked(STOPS, f"{THROW / 1e3:g} kN do not throw it onto both")
    return Check(STOPS, _stops(low, high))


def _square(heave: Heave) -> float:
    """Of the frequency, 1/s2: the product of the poles."""
    return float((heave.poles[0] * heave.poles[1]).real)


def _stops(low: float, high: float) -> Callable[[Recording], bool]:
    def passes(run: Recording) -> bool:
        thrown = travel_of(run)[(run["time"] > PRESSED[0]) & (run["time"] < 4.5)]
        return abs(thrown.max() - high) < 5e-4 and abs(thrown.min() - low) < 5e-4

    return passes


def _shaking(rest: m.Static, heave: Heave, low: float, high: float) -> Check | Unchecked:
    """Where what is left of the throw and what the shaker adds stay between the stops."""
    forced = np.abs(heave.shaken(np.linspace(SHAKES[0][0], END, 2001))).max()
    left = max(high - rest.travel, rest.travel - low) * math.exp(-heave.decay * (SHAKES[0][0] - LIFTED[1]))
    if rest.travel + forced + left > high or rest.travel - forced - left < low:
        why = (
            "its swing reaches its stops" if forced > left else "it still swings from its throw, and reaches its stops"
        )
        return Unchecked(SHAKEN, why)
    return Check(SHAKEN, _shakes(rest, heave))


def _shakes(rest: m.Static, heave: Heave) -> Callable[[Recording], bool]:
    """The plate goes where it is told, within 0.1 mm; the chassis as the model that swings as it did a second before.

    Within 1 mm and 5 % of the swing, of which the suspension's geometry makes no straight line.
    """

    def passes(run: Recording) -> bool:
        time, plate, height = run["time"], run["joint.plate.position"][:, 0], rest.travel - travel_of(run)
        lifted = (time > SHAKES[1][0] + 0.1) & (time < SHAKES[2][0])
        before, after = (time >= FREE) & (time < SHAKES[0][0]), time >= SHAKES[0][0]
        state = np.linalg.lstsq(heave.free(time[before] - FREE), height[before], rcond=None)[0]
        told = heave.free(time[after] - FREE) @ state + heave.shaken(time[after])
        off = np.abs(height[after] - told).max()
        stands = np.abs(plate[lifted] - SHAKES[1][1]).max() < 1e-4
        return bool(stands and off < 1e-3 + 0.05 * np.abs(told).max())

    return passes
