"""The table of phases: what each runs over, what it reads and what it writes.

A phase is one function of the kernels over items that do not depend on each other (solver/nodes.py). The arrays are
those of model/fields.py; ``actuator_state`` and ``actuator_scratch`` stand for those of every kind of actuator. Order
and conditions are in solver/schedule.py. tests/parity/test_schedule.py holds the table against the kernels.
"""

from __future__ import annotations

from gpusim.solver.contact_phases import CONTACT_PHASES
from gpusim.solver.nodes import Phase

_TABLE = (
    Phase("set_trial", writes="trial"),
    Phase("set_times", reads="step_before", writes="step_last"),
    Phase(
        "rotate_body", "bodies",
        reads="angular_momentum linear_velocity orientation",
        writes="inertia_inverse mobility rotation twist_before",
    ),
    Phase("track_angle", "angles", reads="rotation", writes="angle"),
    Phase(
        "evaluate_element", "elements",
        reads="angle orientation position rotation",
        writes="element_value element_vectors jacobian",
    ),
    Phase(
        "couple", "couplings",
        reads="angle element_value orientation position rotation",
        writes="coupling_offset coupling_value jacobian",
    ),
    Phase("stiffen_body", "bodies", reads="impulse jacobian kick_before rotation", writes="mobility"),
    Phase("mass_row", "sides * block", reads="jacobian mobility", writes="mass_jacobian"),
    Phase(
        "axis_rates", "axes",
        reads="axis_velocity axis_velocity_before element_value jacobian step_last twist_before",
        writes="axis_position rate rate_old",
    ),
    Phase("push_body", "bodies", reads="command_before rotation step_last", writes="force torque"),
    Phase(
        "contribute", "shares",
        reads="actuator_state axis_position command_before rate rate_old step_last",
        writes="actuator_scratch share",
    ),
    Phase(
        "sum_law", "axes",
        reads="rate rate_old share step_last",
        writes="law_impulse law_slope servo_impulse servo_most servo_slope",
    ),
    Phase(
        "bound_law", "axes",
        reads="axis_position share step_last",
        writes="law_friction velocity_lower velocity_upper",
    ),
    Phase(
        "kick_body", "bodies",
        reads="angular_momentum force inertia_inverse linear_velocity step_last torque",
        writes="momentum_kicked twist twist_kicked",
    ),
    Phase("bend_body", "bodies", reads="rotation twist", writes="midpoint turn"),
    Phase(
        "bend_element", "elements",
        reads="element_value element_vectors midpoint orientation turn twist",
        writes="bias element_bias",
    ),
    Phase("bend_coupling", "couplings", reads="element_bias", writes="bias"),
    Phase("next_rate", "axes", reads="bias jacobian twist", writes="rate_next"),
    Phase("refresh", "shares", reads="actuator_state rate rate_next step_last", writes="actuator_scratch share"),
    Phase(
        "product_entry", "block_items(w, w.blocks())",
        reads="jacobian mass_jacobian",
        writes="mass_blocks",
    ),
    Phase("start_row", "rows", reads="mass_blocks", writes="gamma own solved target"),
    Phase(
        "start_axis", "axes",
        reads="axis_mode law_friction law_impulse law_slope own rate servo_impulse servo_most servo_slope step_last "
        "velocity_lower velocity_upper",
        writes="gamma mode response target",
    ),
    Phase(
        "start_passes",
        writes="again changed first_axis first_error guard_action hold left refreshes since stale stuck switches "
        "unconverged worst",
    ),
    Phase("scale_row", "rows", reads="gamma own", writes="factored scale shown"),
    Phase("scale_entry", "block_items(w, w.blocks())", reads="mass_blocks scale shown", writes="factor_blocks"),
    Phase("invert_pivot", "level_pivots(w, level)", writes="factor_blocks inverse"),
    Phase("divide_entry", "block_items(w, level_edges(w, level))", reads="factor_blocks inverse", writes="lower"),
    Phase("update_entry", "block_items(w, level_targets(w, level))", reads="lower", writes="factor_blocks"),
    Phase("residual_row", "rows", reads="bias gamma jacobian own solved target twist", writes="right worst"),
    Phase("guard", reads="since", writes="correcting first_error guard_action left stuck worst"),
    Phase("guard_body", "bodies * 6", reads="guard_action", writes="kept_twist twist"),
    Phase("guard_row", "rows", reads="guard_action", writes="kept_solved solved"),
    Phase("scale_right", "rows", reads="scale", writes="right"),
    Phase("forward_row", "level_rows(w, level) * w.block()", reads="lower", writes="right"),
    Phase("divide_row", "rows", reads="inverse right", writes="change"),
    Phase("backward_row", "level_pivots(w, level) * w.block()", reads="lower", writes="change"),
    Phase("scale_change", "rows", reads="scale", writes="change"),
    Phase("correct_row", "rows", reads="change", writes="solved"),
    Phase("correct_body", "bodies", reads="change mass_jacobian", writes="twist"),
    Phase("count_pass", writes="again left since"),
    Phase(
        "want_mode", "axes",
        reads="law_friction law_impulse law_slope mode rate_next response servo_impulse servo_most servo_slope "
        "solved switches velocity_lower velocity_upper",
        writes="changed first_axis unconverged wanted",
    ),
    Phase(
        "switch_mode", "axes",
        reads="changed factored first_axis law_friction law_impulse law_slope response servo_impulse servo_most "
        "servo_slope switches velocity_lower velocity_upper wanted",
        writes="gamma mode stale target",
    ),
    Phase("end_refit", writes="again changed first_axis left since stale switches"),
    Phase("plan_bias", reads="since", writes="hold refreshes"),
    Phase("keep_factor", writes="again"),
    Phase("hold_bias", writes="hold"),
    Phase("end_solve", writes="residual_next worst"),
    Phase(
        "prepare_constraint", "constraints",
        reads="jacobian mass_jacobian",
        writes="axis_motion axis_reaction inverse mode response",
    ),
    Phase("warm_row", "rows", reads="impulse kick_before step_last", writes="solved"),
    Phase("warm_body", "bodies", reads="mass_jacobian solved", writes="twist"),
    Phase("start_sweeps", writes="done largest_change sweeps unconverged worst"),
    Phase(
        "sweep_overflow", "overflow_constraints",
        reads="axis_motion axis_reaction bias inverse jacobian law_friction law_impulse law_slope mass_jacobian "
        "response servo_impulse servo_most servo_slope twist velocity_lower velocity_upper",
        writes="largest_change mode overflow_change solved",
    ),
    Phase("add_overflow", "bodies", reads="overflow_change", writes="twist"),
    Phase(
        "sweep_color", "color_size(w, level)",
        reads="axis_motion axis_reaction bias inverse jacobian law_friction law_impulse law_slope mass_jacobian "
        "response servo_impulse servo_most servo_slope velocity_lower velocity_upper",
        writes="largest_change mode overflow_change solved twist",
    ),
    Phase("end_sweep", writes="done largest_change last_change sweeps unconverged"),
    Phase("left_row", "rows", reads="bias jacobian twist", writes="worst"),
    Phase("skip_solve", writes="residual_next unconverged worst"),
    Phase("split_row", "rows", reads="coupling_value element_value", writes="right"),
    Phase("split_body", "bodies", reads="change mass_jacobian", writes="displacement"),
    Phase("clear_displacement", "bodies * 6", writes="displacement"),
    Phase(
        "split_overflow", "overflow_constraints",
        reads="coupling_value displacement element_value inverse jacobian mass_jacobian",
        writes="overflow_change",
    ),
    Phase("split_overflow_body", "bodies", reads="overflow_change", writes="displacement"),
    Phase(
        "split_color", "color_size(w, level)",
        reads="coupling_value element_value inverse jacobian mass_jacobian",
        writes="displacement overflow_change",
    ),
    Phase("commit_actuator", "actuators", reads="actuator_scratch axis_position rate_next", writes="actuator_state"),
    Phase("commit_control", "controls", writes="command_before"),
    Phase(
        "drift_body", "bodies",
        reads="kick_before kick_before_last momentum_kicked rotation twist twist_kicked",
        writes="angular_momentum linear_velocity orientation position velocity_before velocity_before_last",
    ),
    Phase("displace_body", "bodies", reads="displacement", writes="orientation position"),
    Phase("store_row", "rows", reads="solved", writes="impulse"),
    Phase("store_axis", "axes", reads="mode rate rate_next", writes="axis_mode axis_velocity axis_velocity_before"),
    Phase(
        "store_times",
        reads="residual_next step_last unconverged",
        writes="kick_before kick_before_last not_converged residual step_before time",
    ),
    Phase("start_settle", writes="done settling"),
    Phase(
        "find_axis_impact", "axes",
        reads="jacobian mode rate rate_old step_last twist_kicked",
        writes="settling velocity_lower velocity_upper",
    ),
    Phase("enter_settle", reads="settling", writes="done"),
    Phase(
        "refill_axis", "axes",
        reads="law_friction law_impulse law_slope mode response servo_impulse servo_most servo_slope velocity_lower "
        "velocity_upper",
        writes="gamma target",
    ),
    Phase("resume_passes", writes="again changed first_axis hold left refreshes since stale"),
    Phase(
        "store_velocity", "bodies",
        reads="momentum_kicked rotation twist twist_kicked",
        writes="angular_momentum linear_velocity",
    ),
    Phase(
        "store_rate", "axes",
        reads="rate_next velocity_lower velocity_upper",
        writes="axis_velocity axis_velocity_before",
    ),
    Phase("turn_body", "bodies", reads="orientation", writes="rotation"),
    Phase("error_row", "rows", reads="angle coupling_offset orientation position rotation stuck", writes="right"),
    Phase("shift_body", "bodies", reads="change mass_jacobian", writes="orientation position"),
    Phase(
        "correct_overflow", "overflow_constraints",
        reads="angle coupling_offset inverse mass_jacobian orientation position rotation",
        writes="overflow_change",
    ),
    Phase("move_overflow", "bodies", reads="overflow_change", writes="orientation position rotation"),
    Phase(
        "correct_color", "color_size(w, level)",
        reads="angle coupling_offset inverse mass_jacobian",
        writes="orientation overflow_change position rotation",
    ),
    Phase("sense_share", "shares", reads="rate_next share step_last", writes="share_force"),
    Phase("keep_angle", "angles", reads="angle"),
    Phase("keep_offset", "couplings", reads="coupling_offset"),
    Phase("start_check", writes="culprit"),
    Phase("check_body", "bodies", reads="angular_momentum linear_velocity orientation position", writes="culprit"),
    Phase("check_actuator", "actuators", reads="actuator_state", writes="culprit"),
    Phase("check_start", "bodies", reads="twist_before", writes="culprit"),
    Phase("conclude", reads="angular_momentum culprit linear_velocity orientation position twist_before"),
    Phase("tell_active", reads="left"),
    *CONTACT_PHASES,
)
PHASES = {phase.name: phase for phase in _TABLE}
"""All phases by name."""
