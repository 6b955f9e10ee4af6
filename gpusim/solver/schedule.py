"""Schedule: all stages of a step and their phases, in order.

The schedule determines the kernels (backends/codegen/schedule_source.py), the launches (solver/launch_plan.py) and the
NumPy step (solver/step.py). STEP, at the end of this file, is the whole step. docs/architecture.md describes the
stages.

To add a phase, add a row to solver/phases.py, a node to this file, code to the NumPy stage, and a kernel function.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpusim.reference.solve.colored_solve import POSITION_SWEEPS, REFITS
from gpusim.reference.solve.positions import MAX_CORRECTIONS
from gpusim.solver.nodes import (
    Condition,
    If,
    LaterSweeps,
    Levels,
    Lists,
    Node,
    Routine,
    Run,
    Stage,
    Sweeps,
    TicketRun,
    While,
    Whole,
    walk,
)
from gpusim.solver.phases import PHASES

# Conditions that depend only on sizes and settings, and may be constant in a build.
DIRECT = Condition("direct", "w.direct()", lambda s: bool(s["direct"]), build=lambda b: b.direct)
COLORED = Condition("colored", "!w.direct()", lambda s: not s["direct"], build=lambda b: not b.direct)
SEMI_IMPLICIT = Condition("semi_implicit", "w.semi_implicit()", lambda s: bool(s["semi_implicit"]))
SECOND_ORDER = Condition("second_order", "!w.semi_implicit()", lambda s: not s["semi_implicit"])
STIFFENS = Condition(
    "stiffens", "(w.geometric_stiffness() && w.constraints())",
    lambda s: bool(s["geometric_stiffness"] and s["constraints"]),
)  # fmt: skip
BOUNCES = Condition("bounces", "w.bounces()", lambda s: bool(s["bounces"]))
JOINTS = Condition("joints", "w.constraints()", lambda s: s["constraints"] > 0)
HUBS = Condition("hubs", "w.hubs()", lambda s: s["hubs"] > 0)
FREE = Condition("free", "!w.constraints()", lambda s: not s["constraints"])
AXES = Condition("axes", "w.axes()", lambda s: s["axes"] > 0)
REFITTED = Condition("refitted", "w.refitted_terms()", lambda s: s["refitted_terms"] > 0)
SENSED_JOINTS = Condition("sensed_joints", "w.joint_sensors()", lambda s: s["joint_sensors"] > 0)
ROPES = Condition("ropes", "w.ropes()", lambda s: s["ropes"] > 0)
ANGLES = Condition("angles", "w.angles()", lambda s: s["angles"] > 0)
FREE_BODIES = Condition("free_bodies", "w.free_bodies()", lambda s: s["free_bodies"] > 0)
COUPLED = Condition("coupled", "", lambda s: s["coupled"] > 0, build=lambda b: b.coupled)
OVERFLOW = Condition("overflow", "w.overflow_constraints()", lambda s: s["overflow_constraints"] > 0)
PAIRS = Condition("pairs", "w.pairs()", lambda s: s["pairs"] > 0, build=lambda b: None if b.shapes else False)
SEAMS = Condition("seams", "w.seam_pairs()", lambda s: s["seam_pairs"] > 0)
GRID = Condition("grid", "w.buckets()", lambda s: s["buckets"] > 0)
MAY_RELAX = Condition("may_relax", "(w.pairs() || w.bounces())", lambda s: bool(s["pairs"] or s["bounces"]))
MANY_SWEEPS = Condition("many_sweeps", "(w.iterations() > 1)", lambda s: s["iterations"] > 1)
MIDDLE = Condition(
    "middle", "finds_middle(w)",
    lambda s: (s["substeps"] == 1 or s["rolling_shapes"] > 0) and not s["semi_implicit"] and not s["constraints"],
)  # fmt: skip
SIDE_BY_SIDE = Condition(
    "side_by_side", "true", lambda s: s["incident_slots"] > 0, build=lambda b: None if b.staged else False
)
ONE_BY_ONE = Condition("one_by_one", "true", lambda s: not s["incident_slots"])
ARTICULATED_CONTACTS = Condition(
    "articulated_contacts", "", lambda s: bool(s["direct"] and s["pairs"] and s["constraints"])
)
SWEPT = Condition("swept", "", lambda s: s["swept_constraints"] > 0, build=lambda b: b.swept)
ALL_DIRECT = Condition("all_direct", "", lambda s: not s["swept_constraints"], build=lambda b: not b.swept)
DIRECT_JOINTS = Condition("direct_joints", "", lambda s: bool(s["direct"] and s["constraints"]))
# Conditions that each world evaluates.
SEARCHING = Condition("searching", "*w.searching() != 0", each_world=True)
FOLLOWS = Condition("follows", "follows(w)", lambda s: s["rolling_shapes"] > 0 and s["substeps"] > 1, True)
TOUCHING = Condition("touching", "touches(w)", PAIRS.host, True, PAIRS.build)
TO_SWEEP = Condition(
    "to_sweep", "sweeps_within(w)", lambda s: PAIRS.host(s) or SWEPT.host(s), True,
    build=lambda b: b.swept or PAIRS.build(b),
)  # fmt: skip
ARTICULATED = Condition("articulated", "articulated_size(w) > 0", ARTICULATED_CONTACTS.host, True, PAIRS.build)
CONDENSABLE = Condition(
    "condensable", "", lambda s: ARTICULATED_CONTACTS.host(s) and not s["swept_constraints"],
    build=lambda b: b.direct and b.shapes and not b.swept,
)  # fmt: skip
CONDENSING = Condition(
    "condensing", "condenses(w)", CONDENSABLE.host, True, lambda b: CONDENSABLE.build(b) and None
)  # fmt: skip
AT_ONCE = Condition("at_once", "condenses_at_once(w)", CONDENSABLE.host, True, CONDENSING.build)
UNCONDENSED = Condition("uncondensed", "*w.condensed_fits() == 0", CONDENSABLE.host, True, CONDENSING.build)
SWEEPING = Condition("sweeping", "!*w.done()", each_world=True)
PASSES_REMAINING = Condition("passes_remaining", "*w.passes_remaining() > 0", each_world=True)
REFACTOR = Condition("refactor", "*w.refactor() != 0", each_world=True)
ROTORS = Condition("rotors", "w.rotors()", lambda s: s["rotors"] > 0)
LOOPS = Condition("loops", "w.loop_constraints()", lambda s: s["loop_constraints"] > 0)
NO_LOOPS = Condition("no_loops", "!w.loop_constraints()", lambda s: not s["loop_constraints"])
DEPENDENT = Condition("dependent", "w.dependent_constraints()", lambda s: s["dependent_constraints"] > 0)
SOFTENED = Condition("softened", "*w.softening() != 0", DEPENDENT.host, True)
SOFTENS = Condition("softens", "*w.softens() != 0", DEPENDENT.host, True)
# Worlds with loops but without axis rows do not detect weak pivots.
REDUNDANT = Condition(
    "redundant", "w.loop_constraints() && (*w.softening() != 0 || !w.dependent_constraints())", LOOPS.host, True
)
FREE_BIAS = Condition("free_bias", "!*w.hold_bias()", each_world=True)
UNBENT = Condition("unbent", "!*w.bias_fits()", each_world=True)
CORRECTING = Condition("correcting", "*w.correcting() != 0", each_world=True)
DIRECT_LOOPS = Condition("direct_loops", "", lambda s: bool(s["direct"]) and LOOPS.host(s))
CLOSING = Condition("closing", "*w.closing() != 0", LOOPS.host, True)
UNCLOSED = Condition("unclosed", "is_unclosed(w)", LOOPS.host, True)
STRESSED = Condition("stressed", "*w.stressed() != 0", LOOPS.host, True)
# If the modes or laws of axis rows change, the targets of the rows also change.
SWITCHING = Condition(
    "switching", "(w.refitted_terms() || w.coupled() || *w.changed() != 0)", AXES.host, each_world=True
)  # fmt: skip
ADVANCING = Condition("advancing", "*w.guard_action() < GUARD_RESTORE", each_world=True)
RELAXING = Condition("relaxing", "*w.relaxing() != 0", each_world=True)
PUSHING = Condition("pushing", "*w.pushing() != 0", PAIRS.host, True, PAIRS.build)
FLAGS = (
    SEARCHING, FOLLOWS, TOUCHING, TO_SWEEP, ARTICULATED, SWEEPING, PASSES_REMAINING, REFACTOR, SOFTENS, SOFTENED,
    FREE_BIAS, CORRECTING, CLOSING, UNCLOSED, REDUNDANT, STRESSED, ADVANCING, UNBENT, RELAXING, PUSHING, CONDENSING,
    AT_ONCE, UNCONDENSED, SWITCHING,
)  # fmt: skip
"""Conditions that each world evaluates."""


def run(names: str) -> tuple[Node, ...]:
    """Return nodes that run the phases ``names`` in order."""
    return tuple(Run(PHASES[name]) for name in names.split())


def by_level(names: str) -> tuple[Node, ...]:
    """Return nodes that run the phases ``names`` with the number of a level or color as argument."""
    return tuple(Run(PHASES[name], by_level=True) for name in names.split())


def lists(name: str) -> Node:
    """Return a node that runs a phase over contact manifolds: first manifolds without a color, then color by color."""
    return Lists(PHASES[name], PHASES["add_contact_parts"])


def colors(overflow: str, color: str) -> tuple[Node, ...]:
    """Return nodes that process joint constraints: first constraints without a color, then color by color."""
    return If(OVERFLOW, run(overflow)), Levels("colors", by_level(color))


# Stages that find contacts, once per step.
BROAD_PHASE = Stage("broad_phase", (If(PAIRS, (
    *run("refresh_rotation start_search locate_shape"),
    If(GRID, (If(SEARCHING, run(
        "widen_shape clear_bucket count_member scan_bucket_part scan_sums scan_bucket_rest enter_bucket sort_bucket"
        " find_neighbors"
    ), joined="search_joined"),)),
    *run("count_large count_pairs scan_pair_part scan_sums scan_pair_rest list_pairs list_large count_close"),
)),))  # fmt: skip
NARROW_PHASE = Stage("narrow_phase", (If(PAIRS, (*run("find_manifold"), If(SEAMS, run("judge_seam drop_seam")))),))
COLOR_CONTACTS = Stage("color_contacts", (If(PAIRS, (
    *run("clear_colors"),
    If(ONE_BY_ONE, run("color_pairs list_colors list_overflow")),
    If(SIDE_BY_SIDE, (
        *run("clear_incidents count_incidents scan_incident_part scan_sums scan_incident_rest enter_incidents"),
        TicketRun(PHASES["color_in_order"]),
        *run("count_colors sum_color start_colors fill_colors"),
        *run("clear_overflow count_overflow scan_overflow_part scan_sums scan_overflow_rest enter_overflow"),
        *run("sort_overflow"),
    )),
    *run("load_pair"),
)),))  # fmt: skip
STORE_CONTACTS = Stage("store_contacts", (If(TOUCHING, run("store_pair")),))

# Stages of the velocity solve.
PREPARE = Stage("prepare", (
    *run("set_times rotate_body track_angle evaluate_element sum_coupling"),
    If(STIFFENS, run("stiffen_body")),
    *run("mass_row"),
    If(HUBS, run("mass_hub")),
    *run("axis_rates"),
))  # fmt: skip
PREPARE_CONTACTS = Stage("prepare_contacts", (If(PAIRS, (
    If(FOLLOWS, run("follow_shape follow_pair")),
    *run("prepare_pair"),
)),))  # fmt: skip
LAWS = (
    *run("push_body evaluate_term sum_law bound_law"),
    If(ROPES, run("move_limit")),
    If(COUPLED, run("evaluate_coupled_law")),
)
ACTUATE = Stage("actuate", LAWS, reference="joints.actuate.actuate")
KICK = Stage("kick", run("kick_body"), reference="joints.kick.kick")

CURVATURE = Routine("curvature", (If(SECOND_ORDER, run("bend_body bend_element bend_coupling")),))
# Compute the curvature bias at predicted velocities.
PREDICT_BIAS = (*run("predict_body"), CURVATURE, *run("forget_prediction"))
REFIT = Routine(
    "refit",
    (*run("next_rate"), If(REFITTED, run("relinearize_term sum_law")), If(COUPLED, run("relinearize_coupled_law"))),
)
ELIMINATE = Routine("eliminate", (
    *run("scale_row scale_entry"),
    Levels("levels", by_level("invert_pivot divide_entry update_entry")),
))  # fmt: skip
FACTORIZE = Routine("factorize", (
    ELIMINATE,
    If(DEPENDENT, (*run("judge_pivots"), If(SOFTENS, (ELIMINATE, *run("end_softening"))))),
))  # fmt: skip
SOLVE_FORWARD = Routine("solve_forward", (
    *run("scale_right"),
    Levels("levels", by_level("substitute_forward_row")),
    *run("divide_row"),
))  # fmt: skip
SOLVE_BACKWARD = Routine("solve_backward", (
    Levels("levels", by_level("substitute_backward_row"), backward=True),
    *run("scale_change"),
))  # fmt: skip
SOLVE_FACTORED = Routine("solve_factored", (SOLVE_FORWARD, SOLVE_BACKWARD))


SPLIT_JOINTS = colors("split_overflow split_overflow_body", "split_color")
SWEEP_JOINTS = colors("sweep_overflow add_overflow", "sweep_color")
# Without joints, solve contacts by sweeps with conjugate gradients.
SWEEP_FREE = Routine("sweep_free", (
    *run("start_direction_sum"),
    If(MANY_SWEEPS, run("start_direction_body start_direction_pair start_direction_row")),
    Sweeps("iterations", (
        LaterSweeps(run("sum_squares choose_beta extend_pair extend_body extend_row")),
        lists("sweep_contact"),
        *run("end_contact_sweep"),
    ), condition=SWEEPING),
), label="sweep contacts")  # fmt: skip
# If a world has few manifolds, solve the manifolds by Newton's method. If the method fails, use sweeps.
SOLVE_CONDENSED = (
    If(UNCONDENSED, run("condense_manifold condense_pair keep_condensed")),
    Whole("solve_condensed_contacts"),
)
# The solver solves contacts between the forward and the backward solve of the joints. If sweeps solve no joints, the
# sweeps use conjugate gradients.
SWEEP_WITHIN = Routine("sweep_within", (
    If(ARTICULATED, run("split_change")),
    *run("start_direction_sum"),
    If(AT_ONCE, SOLVE_CONDENSED),
    If(MANY_SWEEPS, (If(ALL_DIRECT, run("start_direction_body start_direction_pair start_direction_row")),)),
    Sweeps("contact_sweeps", (
        LaterSweeps((If(ALL_DIRECT, run("sum_squares choose_beta extend_pair extend_body extend_row")),)),
        If(SWEPT, SWEEP_JOINTS),
        If(TOUCHING, (lists("sweep_contact"), If(ARTICULATED, (Whole("sweep_articulated_contacts"),)))),
        *run("end_contact_sweep"),
        If(CONDENSING, SOLVE_CONDENSED),
    ), condition=SWEEPING),
    If(ARTICULATED, run("join_change")),
), label="sweep contacts")  # fmt: skip
PUSH_OUT = Routine("push_out", (
    *run("start_push"),
    If(DIRECT, (If(ARTICULATED, run("start_push_row")),)),
    Sweeps("iterations", (
        # In the semi-implicit scheme, stage split_impulses corrects the joints afterwards.
        If(SECOND_ORDER, (If(SWEPT, SPLIT_JOINTS), If(COLORED, SPLIT_JOINTS))),
        Lists(PHASES["push_contact"], PHASES["add_push_parts"]),
        If(DIRECT, (If(ARTICULATED, (Whole("push_articulated_contacts"),)),)),
    )),
    If(DIRECT, (If(ARTICULATED, (*run("join_change"), SOLVE_BACKWARD)),)),
    *run("end_push"),
), label="push out")  # fmt: skip
WARM_START_CONTACTS = Routine("warm_start_contacts", (
    *run("start_contact_sweeps"),
    If(MIDDLE, run("middle_body")),
    *run("set_bias_pair"),
    If(PUSHING, (PUSH_OUT,), joined="push_out_joined"),
    lists("warm_contact"),
    If(DIRECT, (If(ARTICULATED, (Whole("warm_articulated_contacts"),)),)),
), label="warm start contacts")  # fmt: skip
CONDENSE_AGAIN = (If(CONDENSABLE, run("forget_condensed")),)
DROP_SELF_STRESS = Routine("drop_self_stress", (
    *run("start_stress respond_body load_row"), SOLVE_FACTORED, *run("weigh_stress drop_stress"),
))  # fmt: skip
DIRECT_PASSES = Routine("direct_passes", (While(PASSES_REMAINING, (
    If(PASSES_REMAINING, (
        If(REFACTOR, (FACTORIZE, If(ARTICULATED, (*run("solve_path respond_path"), *CONDENSE_AGAIN)))),
        If(FREE_BIAS, (CURVATURE,)),
        *run("residual_row"),
    )),
    *run("end_passes"),
    If(CORRECTING, (
        *run("sum_plain_energy"),
        SOLVE_FORWARD,
        # Measure the energy of the joints before the contacts change, because sticking
        # contacts may then slide or separate.
        *run("sum_energy guard"),
        If(LOOPS, run("guard_loops")),
        *run("guard_row guard_body"),
        If(SECOND_ORDER, run("guard_bias")),
        If(TOUCHING, run("guard_pair")),
        If(ADVANCING, (
            If(TO_SWEEP, (SWEEP_WITHIN,)),
            SOLVE_BACKWARD,
            *run("correct_row correct_body"),
            If(ARTICULATED, (If(HUBS, run("move_hub")),)),
            *run("count_pass"),
            If(AXES, (
                REFIT, *run("want_mode"),
                # Remove self-stress, because self-stress must not make friction slip.
                If(REDUNDANT, (*run("judge_modes"), If(STRESSED, (
                    DROP_SELF_STRESS, *run("correct_body want_mode_again"),
                )))),
                If(SWITCHING, run("switch_mode")),
                If(COUPLED, (*run("refit_coupled"), If(SWEPT, run("prepare_coupled")))),
                *run("end_refit"),
            )),
            *run("plan_bias"),
        )),
    )),
)), If(REDUNDANT, (DROP_SELF_STRESS,))))  # fmt: skip
DIRECT_SOLVE = Routine("direct_solve", (
    *run("product_entry start_row start_axis"),
    If(COUPLED, run("start_coupled")),
    If(ROTORS, run("find_spin")),
    *run("start_passes"),
    If(SECOND_ORDER, (*PREDICT_BIAS, *run("hold_bias"))),
    If(TO_SWEEP, (
        # The compliance of a point depends on its response. For articulated bodies, the response needs the factor.
        If(CONDENSABLE, run("condense_list")),
        If(ARTICULATED, (FACTORIZE, *run("count_path start_paths merge_path solve_path respond_path keep_factor"))),
        If(SWEPT, run("start_contact_sweeps prepare_constraint warm_row warm_body")),
        If(TOUCHING, (WARM_START_CONTACTS,)),
    )),
    DIRECT_PASSES,
    If(UNBENT, (CURVATURE, *run("residual_row"))),
    *run("next_rate"),
    If(SWEPT, run("swept_residual end_swept")),
    *run("end_solve"),
))  # fmt: skip
# Solve joints and contacts, color by color.
SWEEPS = Routine("sweeps", (Sweeps("iterations", (
    LaterSweeps((If(AXES, (REFIT, If(COUPLED, run("prepare_coupled")))),), last=REFITS),
    *SWEEP_JOINTS,
    If(TOUCHING, (lists("sweep_contact"),)),
    *run("end_sweep"),
), condition=SWEEPING),))  # fmt: skip
COLORED_SOLVE = Routine("colored_solve", (
    If(SECOND_ORDER, PREDICT_BIAS),
    *run("prepare_constraint warm_row warm_body"),
    If(TOUCHING, (WARM_START_CONTACTS,)),
    *run("start_sweeps"),
    SWEEPS,
    *run("next_rate swept_residual end_swept end_solve"),
))  # fmt: skip
# Solve a world without joints.
FREE_SOLVE = Routine("free_solve", (
    *run("skip_solve"),
    If(TOUCHING, (WARM_START_CONTACTS, SWEEP_FREE)),
))  # fmt: skip
SOLVE = Stage("solve", (
    If(FREE, (FREE_SOLVE,)),
    If(JOINTS, (If(DIRECT, (DIRECT_SOLVE,)), If(COLORED, (COLORED_SOLVE,)))),
), together=ARTICULATED_CONTACTS)  # fmt: skip

# Stages that change positions.
SPLIT_SWEEPS = Sweeps("iterations", SPLIT_JOINTS)
SPLIT_IMPULSES = Stage("split_impulses", (
    If(DIRECT, (*run("split_row"), SOLVE_FACTORED, *run("split_body"), If(SWEPT, (SPLIT_SWEEPS,)))),
    If(COLORED, (*run("clear_displacement"), SPLIT_SWEEPS)),
))  # fmt: skip
ADVANCE_ACTUATORS = Stage("advance_actuators", run("advance_actuator store_control"))
DRIFT = Stage("drift", (
    If(ANGLES, run("advance_angle")),
    If(FREE_BODIES, run("spin_body")),
    *run("drift_body"),
    If(SEMI_IMPLICIT, run("displace_body")),
    If(SECOND_ORDER, (If(PUSHING, run("displace_body")),)),
    *run("store_row store_axis"),
    If(TOUCHING, run("slip_pair")),
    *run("joint_residual store_times"),
))  # fmt: skip
# Solve the velocities again, starting from the current impulses.
RESOLVE = Routine("resolve", (
    If(FREE, (If(PAIRS, (SWEEP_FREE,)),)),
    If(JOINTS, (
        If(DIRECT, (*run("refill_axis resume_passes"), DIRECT_PASSES)),
        If(COLORED, (SWEEPS,)),
    )),
    *run("next_rate store_velocity store_rate"),
))  # fmt: skip
RELAX = Stage("relax", (If(MAY_RELAX, (
    *run("start_relax"),
    If(BOUNCES, run("find_axis_impact")),
    If(TOUCHING, run("relax_pair")),
    *run("enter_relax"),
    If(RELAXING, (RESOLVE,), joined="resolve_joined"),
)),), together=DIRECT_JOINTS, reference="solve.relax.relax")  # fmt: skip
SENSE = Stage(
    "sense", (*run("sense_joint"), If(SENSED_JOINTS, run("break_joint")), *run("sense_pull sense_contact")),
    reference="signals.sense.sense", kernels="signals/sense.cuh",
)  # fmt: skip
CORRECTIONS = Sweeps(POSITION_SWEEPS, colors("correct_overflow move_overflow", "correct_color"))
# Release the axis rows, because friction, limits or stiff springs would keep loops open.
LET_AXES_GO = (If(AXES, run("let_axis_go")),)
# Correct closed loops several times, each time with a factor at the corrected pose.
CLOSE_LOOPS = (*run("start_closing"), Sweeps(MAX_CORRECTIONS, (
    LaterSweeps(run("refresh_rotation")),
    *run("error_row judge_errors"),
    LaterSweeps((If(CLOSING, (
        *run("track_angle evaluate_element sum_coupling mass_row"), If(HUBS, run("mass_hub")),
        *run("product_entry diagonal_row"), *LET_AXES_GO, FACTORIZE,
    )),)),
    If(CLOSING, (SOLVE_FACTORED, *run("weigh_shift shift_trusted"))),
), condition=UNCLOSED))  # fmt: skip
POSITIONS = Stage("positions", (
    *run("refresh_rotation"),
    If(DIRECT, (
        If(DEPENDENT, (If(SOFTENED, (*LET_AXES_GO, ELIMINATE)),)),
        If(LOOPS, CLOSE_LOOPS), If(NO_LOOPS, (*run("error_row"), SOLVE_FACTORED, *run("shift_body"))),
        If(SWEPT, (CORRECTIONS,)),
    )),
    If(COLORED, (CORRECTIONS,)),
), together=DIRECT_LOOPS)  # fmt: skip

# Compute forces in a trial substep. In the state, only joint angles (full rotations) and gear offsets change.
FORWARD = Stage("forward", run("forward_term keep_angle keep_offset"), reference="joints.forward.forward")
# Compute rotation matrices and joint angles (with full rotations), for signals that need no velocities.
POSE = Stage("pose", run("refresh_rotation track_angle keep_angle"))
CHECK = Stage("check", run("start_check check_body check_actuator check_start"))

CONTACTS = (BROAD_PHASE, NARROW_PHASE, COLOR_CONTACTS)
IMPULSES = (PREPARE, PREPARE_CONTACTS, ACTUATE, KICK, SOLVE)
"""Nodes that advance the velocities from t - h_prev/2 to t + h/2."""
SUBSTEP = (
    *IMPULSES,
    If(SEMI_IMPLICIT, (SPLIT_IMPULSES,)),  # computes the displacement that corrects position errors
    ADVANCE_ACTUATORS,
    DRIFT,  # x += h v, midpoint rotation
    RELAX,  # before POSITIONS, because angular momentum depends on rotations
    SENSE,
    If(SECOND_ORDER, (POSITIONS,)),  # corrects positions of rigid rows
)
STEP = (
    *CONTACTS,
    Sweeps("substeps", SUBSTEP),
    STORE_CONTACTS,
    CHECK,
)
TRIAL = (*CONTACTS, *IMPULSES, FORWARD)
"""Nodes that compute the forces at the current time, in a trial substep."""


def stages(nodes: tuple[Node, ...] = (*STEP, FORWARD, POSE)) -> Iterator[Stage]:
    """Yield the stages in the given nodes of the schedule, in order."""
    for node in nodes:
        for part in walk(node):
            if isinstance(part, Stage):
                yield part
