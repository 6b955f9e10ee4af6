"""Control of krt100m as a block diagram: a joystick for speed, a steering wheel, automatic brakes."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim.control import Diagram

#: Speed at full stick, m/s; acceleration and deceleration limits, m/s2; gain and reset time (s) of the speed control.
MAX_SPEED, MAX_ACCELERATION, MAX_DECELERATION = 2.5, 1.0, 2.0
SPEED_GAIN, RESET_TIME = 1.2, 2.5
#: Rate limit of the bicycle model's wheel, rad/s, and maximum lateral acceleration, m/s2.
STEERING_RATE, MAX_LATERAL_ACCELERATION = 0.6, 1.5
#: Brake command while the robot stops; maximum speed of a standing robot, m/s; standing time before parking, s.
STOPPING_BRAKE, STANDING_SPEED, PARKING_DELAY = 0.3, 0.05, 0.4
DEAD_ZONE, CURVE = 0.08, 1.5


def asked_speed(stick: float) -> float:
    """Return the commanded speed (m/s) for a stick deflection from 0 to 1."""
    return MAX_SPEED * max((stick - DEAD_ZONE) / (1.0 - DEAD_ZONE), 0.0) ** CURVE


def krt_control(
    radius: float, full_speed: float, has_speed_control: bool, wheelbase: float, angles: Sequence[float],
    travels: Sequence[float], brakes: Sequence[str],
) -> Diagram:  # fmt: skip
    """Return the driver's control diagram, which is sampled 100 times per second.

    The inputs ``stick`` (forward positive) and ``wheel`` (right positive) range from -1 to 1.

    Args:
        radius: rolling radius of the wheels (m).
        full_speed: speed at drive command 1 (m/s).
        has_speed_control: True if the drive contains a speed controller.
        wheelbase: wheelbase of the robot (m).
        angles: table of steering angles of the bicycle model's front wheel (rad), in ascending order.
        travels: travel of the steering rack for each of the ``angles`` (m).
        brakes: names of the brake commands.
    """
    d = Diagram("driver", rate=100.0)
    shape = {"dead_zone": DEAD_ZONE, "curve": CURVE, "unit": "-"}
    d.add("input", "stick", keys=("S", "W"), axis="left_y", **shape)
    d.add("input", "wheel", keys=("A", "D"), axis="right_x", **shape)
    d.connect("signal:joint.mean.velocity", d.add("gain", "speed", gain=radius, unit="m"))
    _add_states(d, brakes)
    _add_drive(d, full_speed, has_speed_control)
    _add_steering(d, wheelbase, angles, travels)
    return d


def _add_states(d: Diagram, brakes: Sequence[str]) -> None:
    """Add the state machine (parked, driving, stopping, standing) and the brake commands."""
    d.connect("stick", d.add("compare", "out", sign="!=", value=0.0)["a"])
    d.connect("out", d.add("logic", "released", operation="not"))
    d.connect("speed", d.add("abs", "pace"))
    d.connect("pace", d.add("compare", "stands", sign="<", value=STANDING_SPEED)["a"])
    transitions = [
        ["parked", "driving", "out"], ["driving", "stopping", "released"], ["stopping", "driving", "out"],
        ["stopping", "standing", "stands"], ["standing", "driving", "out"], ["standing", "parked", PARKING_DELAY],
    ]  # fmt: skip
    states = ["parked", "driving", "stopping", "standing"]
    mode = d.add("state_machine", "mode", states=states, transitions=transitions).wire("out", "released", "stands")
    braking = "1 if parked or standing else share if stopping else 0".replace("share", str(STOPPING_BRAKE))
    brake = d.add("expression", "brake", text=braking, unit="-")
    brake.wire(**{state: mode[state] for state in ("parked", "standing", "stopping")})
    d.connect("brake", *(f"command:{name}" for name in brakes))


def _add_drive(d: Diagram, full_speed: float, has_speed_control: bool) -> None:
    """Add the rate-limited speed command and the drive command."""
    d.connect("stick", d.add("gain", "asked", gain=MAX_SPEED, unit="m/s"))
    d.connect("asked", d.add("rate_limiter", "wish", rise=MAX_ACCELERATION, fall=MAX_DECELERATION))
    d.connect("wish", d.add("gain", "forward", gain=1.0 / full_speed, unit="s/m"))
    d.add("sum", "missing", signs="+-").wire("wish", "speed")
    d.connect("mode.driving", d.add("logic", "rests", operation="not"))
    gain = 0.0 if has_speed_control else SPEED_GAIN
    cruise = d.add("pid", "cruise", kp=gain, ki=gain / RESET_TIME, lower=-1.0, upper=1.0, unit="-")
    cruise.wire("missing", reset="rests")
    d.add("sum", "voltage").wire("cruise", "forward")
    d.add("switch", "drive").wire("mode.driving", "voltage", 0.0)
    max_command = MAX_SPEED / full_speed if has_speed_control else 1.0
    d.connect("drive", d.add("limiter", "motor", lower=-max_command, upper=max_command))
    d.connect("motor", "command:drive")


def _add_steering(d: Diagram, wheelbase: float, angles: Sequence[float], travels: Sequence[float]) -> None:
    """Add the steering with a rate limit and a speed-dependent angle limit."""
    text = f"-wheel * min({max(angles)!r}, {MAX_LATERAL_ACCELERATION * wheelbase!r} / max(v * v, 0.1))"
    d.add("expression", "angle", text=text, unit="rad").wire(wheel="wheel", v="speed")
    d.connect("angle", d.add("rate_limiter", "turned", rise=STEERING_RATE))
    d.connect("turned", d.add("lookup", "rack", x=tuple(angles), y=tuple(travels), unit="m"))
    d.connect("rack", "command:steer")
