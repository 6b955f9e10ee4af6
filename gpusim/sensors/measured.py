"""Measured sensors: ideal measurements with noise, bias, a sample rate and latency.

Each sensor is a small block diagram. The signals are ``sensor.<label>.<quantity>``. The parameters are
``sensor.<label>.<block>.<parameter>``, and may differ between worlds.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.control.diagram import Diagram
from gpusim.description.joint_kinds import joint_type
from gpusim.renamed import checks_old_names


@dataclass(frozen=True)
class Latency:
    """Latency of a sensor (s)."""

    time: float
    max_time: float | None

    def __bool__(self) -> bool:
        return self.time > 0.0 or self.max_time is not None


class SensorDiagram(Diagram):
    """Block diagram of a sensor. The wires of the diagram are the signals of the sensor."""

    prefix = "sensor"
    senses = True

    def channel(
        self, name: str, signal: str, size: int, unit: str, noise: float, bias: float, latency: Latency, seed: int
    ) -> str:
        """Add blocks that add bias, noise and latency to a signal. Return ``name``, the name of the output block."""
        seed = validate.count(self.element, "seed", seed, 0, 2**52)
        self.add("signal", f"{name}_true", signal=signal)
        value: float | list[float] = bias if size == 1 else [bias] * size
        self.add("constant", f"{name}_bias", value=value, unit=unit)
        sensor_seed = seed + zlib.crc32(self.label.encode())  # sensors with equal seeds must have different noise
        self.add("noise", f"{name}_noise", sigma=noise, seed=sensor_seed, size=size, unit=unit)
        measured = f"{name}_sum" if latency else name
        self.add("sum", measured, signs="+++")
        for port, part in zip("abc", ("true", "bias", "noise"), strict=True):
            self.connect(f"{name}_{part}", f"{measured}.{port}")
        if latency:
            self.add_delay(measured, name, latency)
        return name

    def add_delay(self, source: str, name: str, latency: Latency) -> None:
        """Add a block ``name`` that delays the output of the block ``source`` by the latency."""
        self.connect(source, self.add("delay", name, time=latency.time, max_time=latency.max_time, initial=None))


def _latency(element: str, latency: float, max_latency: float | None, max_rate: float | None) -> Latency:
    time = validate.not_negative(element, "latency", latency)
    if max_latency is None and max_rate is not None and time > 0.0:
        max_latency = time  # the latency in samples depends on the rate
    max_time = None if max_latency is None else validate.positive(element, "max_latency", max_latency)
    if max_time is not None:
        validate.up_to(element, "latency", time, "max_latency", max_time, "s")
    return Latency(time, max_time)


def _checked(element: str, **numbers: float) -> None:
    for name, value in numbers.items():
        if name.endswith("bias"):
            validate.number(element, name, value)
        else:
            validate.not_negative(element, name, value)


@checks_old_names
def add_imu(
    b: ModelBuilder,
    site: str,
    label: str,
    rate: float | None = None,
    acceleration_noise: float = 0.0,
    acceleration_bias: float = 0.0,
    rate_noise: float = 0.0,
    rate_bias: float = 0.0,
    latency: float = 0.0,
    seed: int = 0,
    max_rate: float | None = None,
    max_latency: float | None = None,
) -> SensorDiagram:
    """Add an IMU at a site: an accelerometer and a gyro along the axes of the site.

    The signals are ``sensor.<label>.acceleration`` (3,), m/s2, and ``sensor.<label>.angular_rate`` (3,), rad/s. A
    sensor at rest measures an upward acceleration of magnitude g. The signals are constant between samples.

    Args:
        b: the builder.
        site: label of the site (:meth:`gpusim.ModelBuilder.add_site`).
        label: label of the sensor.
        rate: samples per second, by default one sample per ``SolverConfig.dt``.
        acceleration_noise: standard deviation of the noise of each component (m/s2).
        acceleration_bias: bias of each component (m/s2). Worlds may have different values: write the signals
            ``sensor.<label>.acceleration_bias.value_0``, _1 and _2.
        rate_noise: standard deviation of the noise of each component (rad/s).
        rate_bias: bias of each component (rad/s).
        latency: time from a measurement to the output of this measurement (s), rounded to whole samples. Until the
            latency has passed, the sensor returns the first sample.
        seed: seed of the noise. The noise also depends on the label and the world.
        max_rate: upper limit of the rate (samples per second). With ``max_rate``, each world can have a different rate.
            Write the rate to the signal ``sensor.<label>.clock.rate``.
        max_latency: maximum latency (s). With ``max_latency``, each world can have different latencies: write the
            signals ``sensor.<label>.acceleration.time`` and ``sensor.<label>.angular_rate.time``.

    Raises:
        ModelError: the site does not exist, the label exists already, a noise or latency is negative, or a rate or
            latency is above the maximum.
    """
    element = f"imu '{label}'"
    if not isinstance(site, str) or site not in [s.label for s in b.sites]:
        known = ", ".join(s.label for s in b.sites) or "none"
        raise validate.fail(element, f"there is no site '{site}'", f"add it with add_site; there are: {known}")
    given = {"acceleration_noise": acceleration_noise, "acceleration_bias": acceleration_bias}
    _checked(element, **given, rate_noise=rate_noise, rate_bias=rate_bias)
    latency_spec = _latency(element, latency, max_latency, max_rate)
    d = SensorDiagram(label, rate, max_rate)
    channels = (("acceleration", "m/s2", acceleration_noise, acceleration_bias),
                ("angular_rate", "rad/s", rate_noise, rate_bias))  # fmt: skip
    for name, unit, noise, bias in channels:
        d.channel(name, f"site.{site}.{name}", 3, unit, noise, bias, latency_spec, seed)
    b.add_diagram(d)
    return d


@checks_old_names
def add_range_finder(
    b: ModelBuilder,
    sensor: str,
    label: str,
    rate: float | None = None,
    noise: float = 0.0,
    bias: float = 0.0,
    latency: float = 0.0,
    seed: int = 0,
    max_rate: float | None = None,
    max_latency: float | None = None,
) -> SensorDiagram:
    """Add a range finder or lidar with noise, bias and latency. The range finder uses the rays of an ideal ray sensor.

    The signal is ``sensor.<label>.distance`` (n,), m, from 0 to the maximum range of the ray sensor. For a ray without
    a hit, the sensor adds bias and noise to the maximum range. The signal is constant between samples.

    Args:
        b: the builder.
        sensor: label of the ray sensor (:meth:`gpusim.ModelBuilder.add_ray_sensor`).
        label: label of the range finder.
        rate: samples per second, by default one sample per ``SolverConfig.dt``.
        noise: standard deviation of the noise of each distance (m).
        bias: bias of each distance (m). Worlds may have different values: write the signals
            ``sensor.<label>.measured_bias.value_0`` and so on.
        latency: time from a measurement to the output of this measurement (s), rounded to whole samples. Until the
            latency has passed, the sensor returns the first sample.
        seed: seed of the noise. The noise also depends on the label and the world.
        max_rate: upper limit of the rate (samples per second). With ``max_rate``, each world can have a different rate.
            Write the rate to the signal ``sensor.<label>.clock.rate``.
        max_latency: maximum latency (s). With ``max_latency``, each world can have a different latency. Write
            the latency in seconds to the signal ``sensor.<label>.measured.time``.

    Raises:
        ModelError: the ray sensor does not exist, the label exists already, a noise or latency is negative, or a rate
            or latency is above the maximum.
    """
    element = f"range finder '{label}'"
    found = next((s.rays for s in b.sensors if s.label == sensor), None)
    if found is None:
        known = ", ".join(s.label for s in b.sensors if s.rays is not None) or "none"
        raise validate.fail(element, f"there is no ray sensor '{sensor}'", f"use add_ray_sensor; there are: {known}")
    _checked(element, noise=noise, bias=bias)
    latency_spec = _latency(element, latency, max_latency, max_rate)
    d = SensorDiagram(label, rate, max_rate)
    measured = d.channel("measured", f"sensor.{sensor}", len(found.rays), "m", noise, bias, latency_spec, seed)
    d.connect(measured, d.add("limiter", "distance", lower=0.0, upper=found.max_range))
    b.add_diagram(d)
    return d


@checks_old_names
def add_encoder(
    b: ModelBuilder,
    joint: str,
    label: str,
    counts: int,
    rate: float | None = None,
    latency: float = 0.0,
    velocity_time: float = 0.01,
    max_rate: float | None = None,
    max_latency: float | None = None,
) -> SensorDiagram:
    """Add an encoder on a joint with one coordinate.

    The signals are ``sensor.<label>.position`` (rad or m) and ``sensor.<label>.velocity`` (rad/s or m/s). The encoder
    rounds the position to counts. The velocity is the filtered derivative of the rounded position.

    Args:
        b: the builder.
        joint: label of the joint.
        label: label of the sensor.
        counts: counts per revolution, or per meter.
        rate: samples per second, by default one sample per ``SolverConfig.dt``.
        latency: time from a measurement to the output of this measurement (s), rounded to whole samples. Until the
            latency has passed, the sensor returns the first sample.
        velocity_time: time constant of the velocity filter (s).
        max_rate: upper limit of the rate (samples per second). With ``max_rate``, each world can have a different rate.
            Write the rate to the signal ``sensor.<label>.clock.rate``.
        max_latency: maximum latency (s). With ``max_latency``, each world can have a different latency. Write
            the latency in seconds to the signal ``sensor.<label>.position.time``.

    Raises:
        ModelError: the joint does not exist or has several coordinates, ``counts`` is below 1, the latency is negative,
            or a rate or latency is above the maximum.
    """
    element = f"encoder '{label}'"
    found = next((j for j in b.joints if j.label == joint), None)
    if found is None:
        known = ", ".join(j.label for j in b.joints[:20]) or "none"
        raise validate.fail(element, f"there is no joint '{joint}'", f"name one; there are: {known}")
    coordinates = len(joint_type(found.kind).kinds(found))
    if coordinates != 1:
        raise validate.fail(element, f"joint '{joint}' has {coordinates} coordinates", "name a joint with one")
    counts = validate.count(element, "counts", counts)
    latency_spec = _latency(element, latency, max_latency, max_rate)
    d = SensorDiagram(label, rate, max_rate)
    is_rotation = joint_type(found.kind).unit_of(found, 0) == "rad"
    d.add("signal", "true", signal=f"joint.{joint}.position")
    d.add("quantizer", "steps" if latency_spec else "position", step=(2.0 * math.pi if is_rotation else 1.0) / counts)
    d.connect("true", "steps" if latency_spec else "position")
    if latency_spec:
        d.add_delay("steps", "position", latency_spec)
    d.connect("position", d.add("derivative", "velocity", time=velocity_time))
    b.add_diagram(d)
    return d
