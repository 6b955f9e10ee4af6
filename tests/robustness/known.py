"""Known failures of the robustness tests, with their causes.

A test fails if an entry passes, so that it gets removed.
"""

from __future__ import annotations

_ENTRIES = (
    (
        "turns by 2.5 rad a step (50 rad/s at 50 ms): it is through the cone of its limit of 0.4 rad before the "
        "limit is looked at; the joint is 0.6 m apart then",
        "ball_limit_fast",
        "direct_50ms",
    ),
    (
        "boxes of 0.24 m that fall by 0.3 m a step of 50 ms, and friction that stops all that touches: 0.10 m overlap",
        "friction_1e6",
        "direct_50ms",
    ),
    (
        "1 t falls on a wedge of 1 kg between blocks of 10 kg; in steps of 50 ms it drops by 0.1 m a step, and 8 "
        "sweeps do not carry the ratio of 1:1000: 0.36 m overlap",
        "wedge_hammer",
        "direct_50ms",
    ),
    (
        "eight sweeps, which pass an impulse on by one joint each, on a load of 1 t behind links of 1 kg (1:1000) "
        "at 10 ms: joints 0.3 m apart; the direct solver holds them",
        "heavy_load_light_arm",
        "colored_10ms",
    ),
    (
        "10 t on links of 1 kg (1:10000): links vibrate across the tension of 100 kN at 1000 to 1800 rad/s, over a "
        "radian a step even at 1 ms; joints part by 4 cm with sweeps at 1 ms; the direct solver holds",
        "mass_ratio_chain_heavy_end",
        "colored_1ms colored_10ms direct_50ms",
    ),
    (
        "10 t on links of 1 kg with moments of 0.01 kg m2: the same vibrations at 1000 rad/s; joints part by 0.04 "
        "to 9 m, but hold with the direct solver to 10 ms",
        "mass_ratio_compact_links",
        "colored_1ms colored_10ms direct_50ms",
    ),
    (
        "10 t in the middle of eleven links of 1 kg between two pins: the same vibrations, of both halves; 15 to "
        "100 m/s, joints part by 0.06 to 5 m",
        "mass_ratio_rope_bridge",
        "direct_1ms colored_1ms direct_10ms colored_10ms direct_50ms direct_1ms_float32",
    ),
    (
        "two servos of 1e6 N m/rad that want opposite angles through a gear: each sweep undoes the other's, and "
        "eight of them end at 13 to 31 m/s with joints 0.1 to 0.2 m apart; the direct solver holds them still",
        "gear_servos_fight",
        "colored_1ms colored_10ms",
    ),
    (
        "undamped servos of 1e9 N m/rad on links of 1 kg, half a radian off: 3e5 rad/s, so that a step is 300 rad "
        "of their swing and its angle is counted wrongly; they gain energy, to 65 km/s and more",
        "servo_kp_1e9",
        "direct_1ms colored_1ms colored_10ms direct_1ms_float32",
    ),
    (
        "undamped torsion springs of 1e12 N m/rad on links of 1 kg, 0.1 rad off: 1e7 rad/s, a step is 1e4 rad of "
        "their swing; they gain energy",
        "torsion_1e12",
        "colored_1ms colored_10ms",
    ),
    (
        "eight sweeps over joints with undamped servos of 1e9 N m/rad do not converge: what they leave parts "
        "joints, which turns servos, which pull with 1e9 N m/rad; the direct solver holds them",
        "servo_kp_1e9_switch",
        "colored_1ms colored_10ms",
    ),
    (
        "eight sweeps over three joints whose servos of 1e6 N m s/rad want 1000 rad/s (1 rad a step at 1 ms) do not "
        "converge: joints 0.9 m apart; the direct solver holds them",
        "servo_velocity_1e6",
        "colored_1ms colored_10ms",
    ),
    (
        "a spring of 1 MN/m without a length of its own: 1000 rad/s, so that a body of 1 kg swings through its end "
        "within a step of 10 ms and its direction turns by half a turn: rows along the old direction gain energy",
        "spring_zero_length",
        "direct_10ms colored_10ms direct_50ms",
    ),
    (
        "undamped springs of 1e12 N/m with 20 GJ in them on 1 kg: 1e6 rad/s; the body crosses them whole in a step, "
        "so their directions are wrong by a radian: they gain energy and stop the world",
        "springs_1e12_stretched",
        "direct_1ms colored_1ms direct_10ms colored_10ms direct_50ms direct_1ms_float32",
    ),
    (
        "rods of 4 mm that roll on each other at 1 m/s spin by 25 rad in a step of 50 ms: angular velocities grow "
        "from contact to contact until the world stops",
        "thin_rod_boxes",
        "direct_50ms",
    ),
    (
        "needles 2 m long and 0.1 mm thick: moments of 9e-15 and 7e-7 kg m2 (1:7e7), spun up to 1e4 to 6e6 rad/s by "
        "what touches them 0.1 mm from their axis, 10 to 6000 rad a step; 62 to 270 m/s, or the world stops",
        "hull_flat_needle",
        "direct_1ms colored_1ms direct_10ms colored_10ms direct_50ms",
    ),
    (
        "jaws of 5 kg that hit a box of 1 kg at 7 m/s and press with 1 kN (2 m/s a step at 10 ms): eight sweeps "
        "leave 0.7 m/s of the approach at 10 ms; overlaps of 0.1 m are taken back in 0.3 s",
        "motor_squeeze_box",
        "colored_10ms",
    ),
)
KNOWN = {(name, setting): reason for reason, name, settings in _ENTRIES for setting in settings.split()}
