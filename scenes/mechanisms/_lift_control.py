"""Control of the lift as a block diagram. The operator sets the height of the load."""

from __future__ import annotations

from gpusim.control import Diagram

#: Time constant that smooths the setpoint, s; rate at which errors decay, 1/s; reset time of the integral, s.
SMOOTHING_TIME, DECAY_RATE, RESET_TIME = 0.25, 8.0, 0.4
#: Dead zone of the error, m; damping ratio and time constant (s) of the pressure feedback.
DEAD_ZONE, DAMPING, WASHOUT_TIME = 2e-4, 0.1, 0.15
#: Command, as a fraction of the spool's travel, above which the control compensates the full overlap. For smaller
#: commands, the compensation is proportional, because a jump would cause hunting.
COMPENSATED = 0.2
#: Alarm limits: error (m), duration of the error (s), and pressure relative to the supply pressure. Pressure shocks
#: exceed the pressure limit.
MAX_ERROR, ERROR_TIME, MAX_PRESSURE_RATIO = 0.02, 0.3, 1.2


def lift_control(
    stroke: float, position: float, speed: float, overlap: float, supply: float, pressure: float, stiffness: float
) -> Diagram:
    """Return the control diagram with the inputs ``height`` (m), ``stop`` and ``confirm``.

    ``stop`` closes the valve and brakes the rod. ``confirm`` resets the alarms.

    Args:
        stroke: stroke of the piston (m).
        position: initial position of the piston (m).
        speed: speed of the load with the valve fully open (m/s). The maximum speed of the setpoint is half of
            ``speed``.
        overlap: overlap of the spool, as a fraction of the spool's travel.
        supply: supply pressure (Pa).
        pressure: initial pressure in chamber A (Pa).
        stiffness: pressure amplitude / speed amplitude of an oscillating load (Pa s/m): sqrt(mass of the load * bulk
            modulus / volume of chamber A).
    """
    d = Diagram("lift_control")
    d.add("input", "height", default=position, lower=0.0, upper=stroke, unit="m", keys=("S", "W"))
    for name, key in (("stop", "X"), ("confirm", "C")):
        d.add("input", name, lower=0.0, upper=1.0, switch=True, keys=(key,))
    d.connect("height", d.add("rate_limiter", "slope", rise=0.5 * speed))
    d.connect("slope", d.add("lowpass", "wish", time=SMOOTHING_TIME, initial=position))
    d.connect("wish", d.add("derivative", "wish_rate", time=0.02))
    d.add("sum", "error", signs="+-").wire("wish", "signal:joint.rail.position")
    d.connect("error", d.add("dead_zone", "enough", lower=-DEAD_ZONE, upper=DEAD_ZONE))
    gain = DECAY_RATE / speed
    d.connect("enough", d.add("pid", "pid", kp=gain, ki=gain / RESET_TIME, lower=-1.0, upper=1.0, unit="-"))
    d.connect("wish_rate", d.add("gain", "forward", gain=1.0 / speed, unit="s/m"))
    _add_damping(d, pressure, 2.0 * DAMPING / (speed * stiffness))
    d.add("sum", "opening").wire("pid", "forward")
    crossed = max(overlap, 0.0)
    d.connect("opening", d.add("lookup", "spool", x=(-1.0, -COMPENSATED, COMPENSATED, 1.0),
                               y=(-1.0, -COMPENSATED - crossed, COMPENSATED + crossed, 1.0), unit="-"))  # fmt: skip
    d.connect("stop", d.add("switch", "valve")["on"], "pid.reset", "command:lift.brake")
    d.connect(0.0, "valve.a")
    d.add("sum", "damped", signs="+-").wire("spool", "damping")
    d.connect("damped", d.add("limiter", "travel", lower=-1.0, upper=1.0))
    d.connect("travel", "valve.b")
    d.connect("valve", "command:lift")
    _add_alarms(d, supply)
    return d


def _add_damping(d: Diagram, pressure: float, gain: float) -> None:
    """Add dynamic pressure feedback, which damps oscillations of oil and load.

    Source: H. E. Merritt, "Hydraulic Control Systems", 1967, section 6-6.
    """
    d.connect("signal:cylinder.lift.pressure_a", d.add("lowpass", "mean_pressure", time=WASHOUT_TIME, initial=pressure))
    d.add("sum", "swing", signs="+-").wire("cylinder_lift_pressure_a", "mean_pressure")
    d.connect("swing", d.add("gain", "damping", gain=gain, unit="1/Pa"))


def _add_alarms(d: Diagram, supply: float) -> None:
    """Add the alarm lamps ``late`` (position error) and ``high`` (pressure). The input ``confirm`` resets the lamps."""
    d.connect("error", d.add("abs", "gap"))
    d.connect("gap", d.add("compare", "far", value=MAX_ERROR)["a"])
    d.connect("far", d.add("logic", "near", operation="not"))
    transitions = [["well", "waits", "far"], ["waits", "well", "near"], ["waits", "bad", ERROR_TIME],
                   ["bad", "well", "near"]]  # fmt: skip
    watch = d.add("state_machine", "watch", states=["well", "waits", "bad"], transitions=transitions)
    watch.wire("far", "near")
    d.connect("cylinder_lift_pressure_a", d.add("relay", "pressed", lower=supply, upper=MAX_PRESSURE_RATIO * supply))
    for lamp, source in (("late", "watch.bad"), ("high", "pressed")):
        d.add("sr_latch", lamp).wire(source, "confirm")
