"""Known failures of the robustness tests, with their causes.

If a known failure passes, a test fails, so that the entry gets removed.
"""

from __future__ import annotations

_ENTRIES = (
    (
        "The body rotates by 2.5 rad per step (50 rad/s, 50 ms). It passes the limit of 0.4 rad within one step, and "
        "the joint opens by 0.6 m. Smaller steps pass.",
        "ball_limit_fast",
        "direct_50ms",
    ),
    (
        "Boxes of 0.24 m fall by 0.3 m per step of 50 ms, so they overlap by 0.10 m. Smaller steps pass.",
        "friction_1e6",
        "direct_50ms",
    ),
    (
        "1 t falls on a wedge of 1 kg by 0.1 m per step of 50 ms. Eight sweeps do not converge with a mass ratio of "
        "1000, so the bodies overlap by 0.36 m. Smaller steps pass.",
        "wedge_hammer",
        "direct_50ms",
    ),
    (
        "The colored solver does not converge in eight sweeps for a load of 1 t on links of 1 kg. Joints open by "
        "0.3 m. The direct solver passes.",
        "heavy_load_light_arm",
        "colored_10ms",
    ),
    (
        "Links of 1 kg carry 10 t. The links vibrate at 1000 to 1800 rad/s, which is more than one radian per step of "
        "1 ms. Joints open by 4 cm. The direct solver passes at 1 and 10 ms.",
        "mass_ratio_chain_heavy_end",
        "colored_1ms colored_10ms direct_50ms",
    ),
    (
        "Compact links of 1 kg (0.01 kg m2) carry 10 t. The links vibrate at 1000 rad/s, and joints open by 0.04 to "
        "9 m. The direct solver passes at 1 and 10 ms.",
        "mass_ratio_compact_links",
        "colored_1ms colored_10ms direct_50ms",
    ),
    (
        "A bridge of eleven links of 1 kg carries 10 t in its middle. The links vibrate faster than one radian per "
        "step, reach 15 to 100 m/s, and joints open by 0.06 to 5 m. No solver resolves this motion.",
        "mass_ratio_rope_bridge",
        "direct_1ms colored_1ms direct_10ms colored_10ms direct_50ms direct_1ms_float32",
    ),
    (
        "Two servos of 1e6 N m/rad pull a gear to opposite angles. The colored solver does not converge in eight "
        "sweeps: 13 to 31 m/s, and joints open by 0.1 to 0.2 m. The direct solver passes.",
        "gear_servos_fight",
        "colored_1ms colored_10ms",
    ),
    (
        "Undamped servos of 1e9 N m/rad start 0.5 rad from their targets. They vibrate at 3e5 rad/s, which is 300 rad "
        "per step, and gain energy up to 65 km/s. Steps of 1 ms cannot resolve this motion.",
        "servo_kp_1e9",
        "direct_1ms colored_1ms colored_10ms direct_1ms_float32",
    ),
    (
        "Undamped torsion springs of 1e12 N m/rad start 0.1 rad from rest. They vibrate at 1e7 rad/s, which is 1e4 "
        "rad per step, and gain energy. The direct solver passes.",
        "torsion_1e12",
        "colored_1ms colored_10ms",
    ),
    (
        "The colored solver does not converge in eight sweeps with undamped servos of 1e9 N m/rad, so joints open. "
        "The direct solver passes.",
        "servo_kp_1e9_switch",
        "colored_1ms colored_10ms",
    ),
    (
        "The colored solver does not converge in eight sweeps with servos of 1e6 N m s/rad that drive joints at 1000 "
        "rad/s. Joints open by 0.9 m. The direct solver passes.",
        "servo_velocity_1e6",
        "colored_1ms colored_10ms",
    ),
    (
        "A spring of 1 MN/m with the rest length 0 vibrates at 1000 rad/s. Within a step of 10 ms, the body of 1 kg "
        "passes the end of the spring, so the direction of the spring reverses and energy grows. 1 ms passes.",
        "spring_zero_length",
        "direct_10ms colored_10ms direct_50ms",
    ),
    (
        "Undamped springs of 1e12 N/m store 20 GJ and act on 1 kg. They vibrate at 1e6 rad/s, gain energy, and the "
        "world is quarantined. No solver resolves this motion.",
        "springs_1e12_stretched",
        "direct_1ms colored_1ms direct_10ms colored_10ms direct_50ms direct_1ms_float32",
    ),
    (
        "Rods with a diameter of 4 mm roll on each other at 1 m/s and rotate by 25 rad per step of 50 ms. Angular "
        "velocities grow until the world is quarantined. Smaller steps pass.",
        "thin_rod_boxes",
        "direct_50ms",
    ),
    (
        "Needles are 2 m long and 0.1 mm thick, and their moments of inertia differ by 7e7. Contacts spin them up to "
        "1e4 to 6e6 rad/s, which is 10 to 6000 rad per step. They reach 62 to 270 m/s, or the world is quarantined.",
        "hull_flat_needle",
        "direct_1ms colored_1ms direct_10ms colored_10ms direct_50ms",
    ),
    (
        "Jaws of 5 kg hit a box of 1 kg at 7 m/s and press with 1 kN. The colored solver leaves an approach speed of "
        "0.7 m/s after eight sweeps of 10 ms. An overlap of 0.1 m remains for 0.3 s. The direct solver passes.",
        "motor_squeeze_box",
        "colored_10ms",
    ),
)
KNOWN = {(name, setting): reason for reason, name, settings in _ENTRIES for setting in settings.split()}
