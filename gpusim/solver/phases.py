"""Table of all phases: number of work items, and arrays that the phase reads and writes.

A phase is a kernel function over independent work items (solver/nodes.py). model/fields.py defines the arrays.
``actuator_state`` and ``actuator_scratch`` represent the arrays of all actuator kinds. solver/schedule.py defines the
order and the conditions of the phases. tests/parity/test_schedule.py compares this table with the kernels.
"""

from __future__ import annotations

from gpusim.solver.contact_phases import CONTACT_PHASES
from gpusim.solver.nodes import Phase

_TABLE = (
    Phase("set_forward", writes="blocks_ended forward_only next_ticket tickets_ended"),
    Phase("set_times", reads="step_before", writes="loop_gap pushing step_last"),
    Phase(
        "rotate_body",
        "bodies",
        reads="angular_momentum linear_velocity orientation",
        writes="inertia_inverse inertia_inverse_effective rotation twist_before",
    ),
    Phase("track_angle", "angles", reads="rotation", writes="angle"),
    Phase(
        "evaluate_element",
        "element_items(w)",
        bound="elements",
        reads="angle orientation position rotation",
        writes="element_value element_vectors jacobian",
    ),
    Phase(
        "sum_coupling",
        "couplings",
        reads="angle element_value orientation position rotation",
        writes="coupling_offset coupling_value jacobian",
    ),
    Phase(
        "stiffen_body",
        "bodies",
        reads="impulse inertia_inverse jacobian kick_before rotation",
        writes="inertia_inverse_effective tension_stiffness",
    ),
    Phase("mass_row", "sides * block", reads="jacobian inertia_inverse_effective", writes="mass_jacobian"),
    Phase("mass_hub", "constraints", reads="inertia_inverse_effective", writes="jacobian mass_jacobian"),
    Phase(
        "axis_rates",
        "axes",
        reads="axis_velocity axis_velocity_before coupling_value element_value jacobian step_last twist_before",
        writes="axis_position rate rate_old",
    ),
    Phase(
        "push_body",
        "bodies",
        reads="command_before inertia_inverse kick_before rotation step_last twist_before velocity_before",
        writes="force torque",
    ),
    Phase(
        "evaluate_term",
        "actuator_terms",
        reads="actuator_state axis_position command_before forward_only rate rate_old sensed_substeps step_last",
        writes="actuator_scratch actuator_term",
    ),
    Phase(
        "sum_law",
        "axes",
        reads="actuator_term axis_position jacobian joint_slack mass_jacobian rate rate_old step_last",
        writes="clamped_bound clamped_impulse clamped_slope law_impulse law_slope",
    ),
    Phase(
        "bound_law",
        "axes",
        reads="actuator_term axis_position joint_slack step_last",
        writes="law_friction velocity_lower velocity_upper",
    ),
    Phase(
        "move_limit",
        "ropes",
        reads="actuator_term axis_position forward_only",
        writes="limit_left limit_now limit_rate velocity_lower velocity_upper",
    ),
    Phase(
        "evaluate_coupled_law",
        "coupled",
        reads="actuator_state axis_position rate rate_old step_last",
        writes="actuator_scratch coupled_gamma coupled_impulse coupled_slope coupled_target",
    ),
    Phase(
        "relinearize_coupled_law",
        "coupled",
        reads="actuator_state axis_position rate rate_next step_last",
        writes="actuator_scratch coupled_gamma coupled_impulse coupled_slope coupled_target",
    ),
    Phase("start_coupled", "coupled", reads="coupled_gamma coupled_target", writes="gamma target"),
    Phase(
        "refit_coupled",
        "coupled",
        reads="coupled_gamma coupled_target factored_gamma",
        writes="gamma stale target",
    ),
    Phase(
        "kick_body",
        "bodies",
        reads="angular_momentum force inertia_inverse linear_velocity step_last torque",
        writes="momentum_kicked twist twist_kicked",
    ),
    Phase(
        "bend_body",
        "bend_items(w)",
        bound="bodies",
        reads="rotation twist",
        writes="midpoint rotation_terms rotation_angle",
    ),
    Phase(
        "bend_element",
        "element_items(w)",
        bound="elements",
        reads="element_value element_vectors midpoint orientation position rotation rotation_angle rotation_terms "
        "since_factor twist",
        writes="bias element_bias",
    ),
    Phase(
        "bend_coupling",
        "couplings",
        reads="angle element_bias element_value orientation position rotation since_factor twist",
        writes="bias",
    ),
    Phase("next_rate", "axes", reads="bias jacobian twist", writes="rate_next"),
    Phase(
        "relinearize_term",
        "actuator_terms",
        reads="actuator_state axis_position law_slope rate rate_next rate_old response step_last",
        writes="actuator_scratch actuator_term",
    ),
    Phase(
        "product_entry",
        "row_items(w, w.blocks())",
        bound="blocks * block",
        reads="jacobian mass_jacobian",
        writes="mass_blocks",
    ),
    Phase("diagonal_row", "rows", reads="jacobian mass_blocks mass_jacobian", writes="diagonal"),
    Phase("start_row", "rows", reads="jacobian mass_blocks mass_jacobian", writes="gamma diagonal solved target"),
    Phase(
        "start_axis",
        "axes",
        reads="axis_mode clamped_bound clamped_impulse clamped_slope diagonal law_friction law_impulse law_slope rate "
        "step_last velocity_lower velocity_upper",
        writes="gamma mode response target",
    ),
    Phase("find_spin", reads="rotation touching twist", writes="spin_peak spinning"),
    Phase(
        "predict_body",
        "bodies",
        reads="angular_momentum inertia_inverse kick_before kick_before_last linear_velocity spinning step_last "
        "velocity_before velocity_before_last",
        writes="twist",
    ),
    Phase("forget_prediction", "bodies * 6", reads="twist_kicked", writes="midpoint twist"),
    Phase(
        "start_passes",
        reads="spinning",
        writes="all_in_contact bias_fits changed contact_residual_now factor_damping first_axis first_error "
        "guard_action hold_bias load_error passes_remaining refactor refreshes since_factor softening softens stale "
        "stalled switches unconverged weak worst worst_change",
    ),
    Phase("let_axis_go", "axes", reads="response", writes="gamma"),
    Phase("judge_pivots", writes="softening softens weak"),
    Phase("end_softening", writes="softens"),
    Phase(
        "scale_row",
        "rows",
        reads="diagonal factor_damping gamma jacobian mass_blocks mass_jacobian softening",
        writes="factored_gamma scale scaled_diagonal",
    ),
    Phase(
        "scale_entry",
        "row_items(w, w.blocks())",
        bound="blocks * block",
        reads="coupled_gamma jacobian mass_blocks mass_jacobian scale",
        writes="factor_blocks scaled_diagonal",
    ),
    Phase(
        "invert_pivot",
        "level_pivots(w, level)",
        bound="constraints",
        reads="scaled_diagonal",
        writes="factor_blocks inverse pivot_inverse weak",
    ),
    Phase(
        "divide_entry",
        "row_items(w, level_edges(w, level))",
        bound="blocks * block",
        reads="factor_blocks inverse",
        writes="lower",
    ),
    Phase(
        "update_entry",
        "row_items(w, level_targets(w, level))",
        bound="blocks * block",
        reads="lower",
        writes="factor_blocks",
    ),
    Phase("split_change", "constraints", reads="factor_blocks", writes="delta"),
    Phase("join_change", "constraints", reads="factor_blocks", writes="delta"),
    Phase(
        "residual_row",
        "row_items(w, w.constraints())",
        bound="rows",
        reads="coupled_gamma bias gamma jacobian diagonal solved target twist",
        writes="rhs worst worst_change",
    ),
    Phase(
        "end_passes",
        reads="all_in_contact contact_residual_now hold_bias since_factor switches",
        writes="bias_fits correcting first_error guard_action load_error passes_remaining worst worst_change",
    ),
    Phase(
        "sum_plain_energy",
        "row_parts(w)",
        bound="PARTS",
        reads="diagonal gamma guard_action rhs",
        writes="plain_energy",
    ),
    Phase("sum_energy", "row_parts(w)", bound="PARTS", reads="delta gamma guard_action rhs", writes="energy"),
    Phase(
        "guard",
        reads="energy plain_energy spinning",
        writes="factor_damping first_energy guard_action hold_bias passes_remaining refactor refreshes since_factor "
        "stalled",
    ),
    Phase(
        "guard_loops",
        reads="first_energy first_error jacobian load_error momentum_kicked rotation softening solved spinning twist "
        "twist_kicked",
        writes="factor_damping guard_action hold_bias passes_remaining refactor refreshes since_factor",
    ),
    Phase("guard_row", "rows", reads="guard_action", writes="delta kept_impulse solved"),
    Phase("guard_bias", "rows", reads="guard_action", writes="bias kept_bias"),
    Phase("guard_body", "bodies", reads="delta guard_action mass_jacobian", writes="kept_twist twist"),
    Phase("scale_right", "rows", reads="scale", writes="rhs"),
    Phase("substitute_forward_row", "row_items(w, level_rows(w, level))", bound="rows", reads="lower", writes="rhs"),
    Phase("divide_row", "row_items(w, w.constraints())", bound="rows", reads="inverse rhs", writes="delta"),
    Phase(
        "substitute_backward_row",
        "row_items(w, level_pivots(w, level))",
        bound="rows",
        reads="lower",
        writes="delta",
    ),
    Phase("scale_change", "rows", reads="scale", writes="delta"),
    Phase("correct_row", "rows", reads="delta", writes="solved"),
    Phase("correct_body", "body_items(w)", bound="bodies * 6", reads="delta mass_jacobian", writes="twist"),
    Phase("move_hub", "constraints", reads="delta mass_jacobian", writes="twist"),
    Phase("start_stress", writes="load_size self_stress"),
    Phase("respond_body", "bodies", reads="mass_jacobian solved", writes="rotation_terms"),
    Phase(
        "load_row",
        "row_items(w, w.constraints())",
        bound="rows",
        reads="coupled_gamma factored_gamma jacobian solved rotation_terms",
        writes="rhs",
    ),
    Phase("weigh_stress", "rows", reads="delta diagonal solved", writes="load_size self_stress"),
    Phase("drop_stress", "rows", reads="factor_damping load_size self_stress", writes="delta solved"),
    Phase("count_pass", writes="changed first_axis passes_remaining refactor since_factor stale"),
    Phase(
        "want_mode",
        "axes",
        reads="clamped_bound clamped_impulse clamped_slope law_friction law_impulse law_slope mode rate_next response "
        "solved switches touching velocity_lower velocity_upper",
        writes="changed first_axis unconverged wanted_mode",
    ),
    Phase(
        "want_mode_again",
        "axes",
        reads="clamped_bound clamped_impulse clamped_slope law_friction law_impulse law_slope mode rate_next response "
        "solved switches touching velocity_lower velocity_upper",
        writes="changed first_axis unconverged wanted_mode",
    ),
    Phase("judge_modes", writes="changed first_axis stressed"),
    Phase(
        "switch_mode",
        "axes",
        reads="changed clamped_bound clamped_impulse clamped_slope factored_gamma first_axis law_friction law_impulse "
        "law_slope response switches velocity_lower velocity_upper wanted_mode",
        writes="gamma mode stale target",
    ),
    Phase("end_refit", reads="changed spinning stale", writes="refactor passes_remaining since_factor switches"),
    Phase("plan_bias", reads="since_factor spinning", writes="hold_bias refreshes"),
    Phase("keep_factor", writes="refactor"),
    Phase("hold_bias", writes="hold_bias"),
    Phase("end_solve", writes="residual_now worst worst_change"),
    Phase(
        "prepare_constraint",
        "constraints",
        reads="axis_mode clamped_bound clamped_impulse clamped_slope coupled_gamma jacobian law_impulse law_slope "
        "mass_jacobian",
        writes="axis_gamma axis_motion axis_reaction inverse mode response",
    ),
    Phase(
        "prepare_coupled",
        "coupled",
        reads="axis_mode clamped_bound clamped_impulse clamped_slope coupled_gamma jacobian law_impulse law_slope "
        "mass_jacobian",
        writes="axis_gamma axis_motion axis_reaction inverse mode response",
    ),
    Phase("warm_row", "rows", reads="impulse kick_before step_last", writes="solved"),
    Phase("warm_body", "body_items(w)", bound="bodies * 6", reads="mass_jacobian solved", writes="twist"),
    Phase(
        "start_sweeps",
        writes="contact_change contact_residual_now done greatest_impulse largest_change largest_load sweeps "
        "unconverged wanted_change worst",
    ),
    Phase(
        "sweep_overflow",
        "overflow_constraints",
        reads="axis_gamma axis_motion axis_reaction bias clamped_bound clamped_impulse clamped_slope coupled_gamma "
        "coupled_target inverse jacobian law_friction law_impulse law_slope mass_jacobian response twist "
        "velocity_lower velocity_upper",
        writes="largest_change mode overflow_change solved",
    ),
    Phase("add_overflow", "bodies", reads="overflow_change", writes="twist"),
    Phase(
        "sweep_color",
        "color_size(w, level)",
        reads="axis_gamma axis_motion axis_reaction bias clamped_bound clamped_impulse clamped_slope coupled_gamma "
        "coupled_target inverse jacobian law_friction law_impulse law_slope mass_jacobian response velocity_lower "
        "velocity_upper",
        writes="largest_change mode solved twist",
    ),
    Phase(
        "end_sweep",
        writes="contact_change contact_residual_now done largest_change largest_load last_change sweeps unconverged",
    ),
    Phase(
        "swept_residual",
        "rows",
        reads="bias clamped_bound clamped_impulse clamped_slope coupled_gamma coupled_target inverse jacobian "
        "law_friction law_impulse law_slope response solved twist velocity_lower velocity_upper",
        writes="greatest_impulse wanted_change worst",
    ),
    Phase("end_swept", reads="greatest_impulse wanted_change", writes="unconverged"),
    Phase("skip_solve", writes="contact_residual_now residual_now unconverged worst"),
    Phase("split_row", "rows", reads="coupling_value element_value", writes="rhs"),
    Phase("split_body", "bodies", reads="delta mass_jacobian pushing", writes="displacement"),
    Phase("clear_displacement", "bodies * 6", reads="pushing", writes="displacement"),
    Phase(
        "split_overflow",
        "overflow_constraints",
        reads="coupling_value displacement element_value inverse jacobian mass_jacobian",
        writes="overflow_change",
    ),
    Phase("split_overflow_body", "bodies", reads="overflow_change", writes="displacement"),
    Phase(
        "split_color",
        "color_size(w, level)",
        reads="coupling_value element_value inverse jacobian mass_jacobian",
        writes="displacement",
    ),
    Phase(
        "advance_actuator",
        "actuators",
        reads="axis_position clamped_bound clamped_impulse clamped_slope command_before forward_only law_friction "
        "law_impulse law_slope mode rate rate_next sensed_substeps sensed_time solved step_last",
        writes="actuator_scratch actuator_state jump_peak void_peak",
    ),
    Phase("store_control", "controls", writes="command_before"),
    Phase("advance_angle", "angles", reads="rotation twist", writes="angle"),
    Phase("spin_body", "bodies", reads="orientation rotation twist", writes="midpoint spun"),
    Phase(
        "drift_body",
        "bodies",
        reads="kick_before kick_before_last midpoint momentum_kicked rotation spun twist twist_kicked",
        writes="angular_momentum linear_velocity orientation position velocity_before velocity_before_last",
    ),
    Phase("displace_body", "bodies", reads="displacement", writes="orientation position"),
    Phase("store_row", "rows", reads="solved", writes="impulse"),
    Phase("store_axis", "axes", reads="mode rate rate_next", writes="axis_mode axis_velocity axis_velocity_before"),
    Phase(
        "sense_joint",
        "joint_sensors",
        reads="jacobian rotation sensed_substeps sensed_time solved step_last",
        writes="sensed_wrench",
    ),
    Phase("break_joint", "joint_sensors", reads="sensed_substeps sensed_wrench", writes="joint_slack"),
    Phase("sense_pull", "pulls", reads="sensed_substeps solved", writes="sensed_pull"),
    Phase(
        "sense_contact",
        "contact_sensors",
        reads="manifold pair_count pair_points pair_shapes record_index sensed_substeps touching",
        writes="sensed_contact",
    ),
    Phase(
        "joint_residual",
        "constraints",
        reads="coupling_value element_value posed step_last",
        writes="joint_drift_peak joint_tilt_peak loop_gap",
    ),
    Phase(
        "store_times",
        reads="color_first color_member contact_residual_now jacobian joint_drift_peak joint_tilt_peak jump_peak "
        "loop_gap mode pair_points residual_now spin_peak step_last touching twist twist_before unconverged void_peak",
        writes="contact_residual contact_streak inexact kick_before kick_before_last loop_open manifold not_converged "
        "posed residual sensed_substeps sensed_time step_before time",
    ),
    Phase("start_relax", writes="done relaxing"),
    Phase(
        "find_axis_impact",
        "axes",
        reads="jacobian limit_rate mode rate rate_old step_last twist_kicked",
        writes="relaxing velocity_lower velocity_upper",
    ),
    Phase("enter_relax", reads="relaxing", writes="done"),
    Phase(
        "refill_axis",
        "axes",
        reads="clamped_bound clamped_impulse clamped_slope law_friction law_impulse law_slope mode response "
        "velocity_lower velocity_upper",
        writes="gamma target",
    ),
    Phase(
        "resume_passes",
        reads="spinning",
        writes="refactor changed first_axis hold_bias passes_remaining refreshes since_factor stale",
    ),
    Phase(
        "store_velocity",
        "bodies",
        reads="momentum_kicked rotation twist twist_kicked",
        writes="angular_momentum linear_velocity",
    ),
    Phase(
        "store_rate",
        "axes",
        reads="limit_rate rate_next velocity_lower velocity_upper",
        writes="axis_velocity axis_velocity_before",
    ),
    Phase("refresh_rotation", "bodies", reads="orientation", writes="rotation"),
    Phase(
        "error_row",
        "rows",
        reads="angle coupling_offset orientation position rotation stalled",
        writes="position_error rhs",
    ),
    Phase("start_closing", writes="closing error_before position_error position_rotation"),
    Phase("judge_errors", writes="closing error_before position_error position_rotation"),
    Phase("weigh_shift", "bodies", reads="delta mass_jacobian", writes="displacement position_rotation"),
    Phase("shift_body", "bodies", reads="delta mass_jacobian", writes="orientation position"),
    Phase(
        "shift_trusted",
        "bodies",
        reads="displacement error_before position_rotation",
        writes="orientation position",
    ),
    Phase(
        "correct_overflow",
        "overflow_constraints",
        reads="angle coupling_offset inverse mass_jacobian orientation position rotation",
        writes="overflow_change",
    ),
    Phase("move_overflow", "bodies", reads="overflow_change", writes="orientation position rotation"),
    Phase(
        "correct_color",
        "color_size(w, level)",
        reads="angle coupling_offset inverse mass_jacobian",
        writes="orientation position rotation",
    ),
    Phase(
        "forward_term",
        "actuator_terms",
        reads="rate_next actuator_term step_last mode solved law_impulse law_slope law_friction clamped_impulse "
        "clamped_slope clamped_bound",
        writes="actuator_term_force",
    ),
    Phase("keep_angle", "angles", reads="angle"),
    Phase("keep_offset", "couplings", reads="coupling_offset"),
    Phase("start_check", reads="loop_open", writes="cause"),
    Phase(
        "check_body",
        "bodies",
        reads="angular_momentum command_before linear_velocity orientation position",
        writes="cause",
    ),
    Phase("check_actuator", "actuators", reads="actuator_state", writes="cause"),
    Phase("check_start", "bodies", reads="twist_before", writes="cause"),
    Phase(
        "conclude",
        reads="angular_momentum cause linear_velocity loop_gap orientation position twist_before",
    ),
    Phase("publish_active", reads="passes_remaining"),
    *CONTACT_PHASES,
)
PHASES = {phase.name: phase for phase in _TABLE}
"""All phases by name."""
