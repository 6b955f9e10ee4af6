"""Staged launch: the order of the phases of cuda_kernels/staged.cu, for big worlds.

A *segment* is a list of launches that no decision of the host interrupts; the cuda backend captures each one in a
graph. The order is that of cuda_kernels/step.cuh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpusim.reference.colored_solve import POSITION_SWEEPS, REFITS

ALWAYS, ACTIVE, AGAIN, SWEEPING, CORRECTING, REFRESHING, TOUCHING, PRESSING, SETTLING, SEARCHING = range(10)
# Rounds of coloring by many threads; what is left after them, one thread colors.
COLOR_ROUNDS = 48
# Phases that have nothing to do where a size is zero.
_NEEDS = {
    "couplings": ("couple", "bend_coupling", "keep_offset"),
    "angles": ("track_angle", "keep_angle"),
    "axes": (
        "axis_rates",
        "sum_law",
        "bound_law",
        "start_axis",
        "next_rate",
        "store_axis",
        "store_rate",
        "find_axis_impact",
    ),
    "shares": ("contribute", "refresh", "sense_share"),
    "controls": ("commit_control",),
    "actuators": ("commit_actuator", "check_actuator"),
    "constraints": ("prepare_constraint",),
    "pairs": ("prepare_pair", "slip_pair"),
}


@dataclass(frozen=True)
class Launch:
    """One kernel: phase, which worlds it concerns, level or color."""

    phase: str
    condition: int = ALWAYS
    level: int = 0


TELL_ACTIVE = [Launch("tell_active")]
"""Sets the flag ``active`` where a world still corrects."""


class Program:
    """The segments of a model's substep.

    Args:
        sizes: as tables.model_tables gives them.
        settings: "papers", "geometric_stiffness", "iterations" of the run.
        direct: the joint solver.
    """

    def __init__(self, sizes: dict[str, int], settings: dict[str, int], direct: bool) -> None:
        self.sizes, self.settings = sizes, settings
        self.direct = direct
        # A world's joints and contacts together go through the direct solver in one block.
        self.whole = direct and bool(sizes["pairs"] and sizes["constraints"])
        self.free = bool(sizes["pairs"]) and not sizes["constraints"]
        self.start = self._needed(self._start())
        self.collide = self._needed(self._collide())
        self.begin_step = [*self.start, Launch("set_trial"), *self.collide]
        self.begin_trial = [*self.start, Launch("set_trial", level=1), *self.collide]
        self.prepare = self._needed(self._prepare())
        self.actuate = self._needed(self._all("push_body", "contribute", "sum_law", "bound_law"))
        self.kick = self._needed(self._all("kick_body"))
        self.start_solve = self._needed(self._start_solve())
        self.solve_pass = self._needed(self._pass()) if self.direct else []
        self.end_solve = self._needed(self._end_solve())
        self.settle = self._needed(self._settle())
        self.split_impulses = self._needed(self._split_impulses())
        self.commit = self._needed(self._all("commit_actuator", "commit_control"))
        self.drift = self._needed(self._drift())
        self.positions = self._needed(self._positions())
        self.before_passes = [*self.prepare, *self.actuate, *self.kick, *self.start_solve]
        self.after_impulses = [*self.split_impulses, *self.commit, *self.drift, *self.settle, *self.positions]
        self.end = self._needed(self._end())
        self.pose = self._needed(self._all("clear_rows", "load_state", "turn_body", "track_angle", "keep_angle"))
        self.sense = self._needed(self._all("sense_share", "keep_angle", "keep_offset"))

    def _needed(self, launches: Iterator[Launch]) -> list[Launch]:
        idle = {phase for size, phases in _NEEDS.items() if not self.sizes[size] for phase in phases}
        return [launch for launch in launches if launch.phase not in idle]

    def run_step(self, run: Callable[[list[Launch]], None], any_active: Callable[[], bool], substeps: int) -> None:
        """One step: ``run`` executes a segment, ``any_active`` tells whether a world still corrects."""
        run(self.begin_step)
        for _ in range(substeps):
            self.run_impulses(run, any_active)
            run(self.after_impulses)
        run(self.end)

    def run_impulses(self, run: Callable[[list[Launch]], None], any_active: Callable[[], bool]) -> None:
        """The part that changes velocities only."""
        run(self.before_passes)
        self.run_passes(run, any_active)

    def run_sense(self, run: Callable[[list[Launch]], None], any_active: Callable[[], bool]) -> None:
        """Stage sense: a trial of the impulses on the loaded state."""
        run(self.begin_trial)
        self.run_impulses(run, any_active)
        run(self.sense)

    def run_passes(self, run: Callable[[list[Launch]], None], any_active: Callable[[], bool]) -> None:
        """The passes of the direct solver, and the end of the stage solve."""
        while self.direct and not self.whole and not self.free and any_active():
            run(self.solve_pass)
        run(self.end_solve)

    def run_stage(self, stage: str, run: Callable[[list[Launch]], None], any_active: Callable[[], bool]) -> None:
        """One stage of backends/base.py by its name."""
        if stage == "solve":
            run(self.start_solve)
            self.run_passes(run, any_active)
        else:
            run(getattr(self, stage))

    def _all(self, *phases: str, condition: int = ALWAYS) -> Iterator[Launch]:
        for phase in phases:
            yield Launch(phase, condition)

    def _start(self) -> Iterator[Launch]:
        yield from self._all("clear_rows", "load_state")

    def _collide(self) -> Iterator[Launch]:
        """Stages collide and color, once a step."""
        if not self.sizes["pairs"]:
            return
        yield from self._all("turn_body", "start_search", "place_shape")
        if self.sizes["buckets"]:
            grid = ("clear_bucket", "count_member", "scan_bucket_part", "scan_sums", "scan_bucket_rest", "enter_bucket")
            yield from self._all("widen_shape", *grid, "sort_bucket", "find_near", condition=SEARCHING)
        yield from self._all("count_pairs", "scan_pair_part", "scan_sums", "scan_pair_rest", "list_pairs")
        yield from self._all("count_close", "meet_pair", "clear_colors")
        yield from self._color_rounds() if self.sizes["ready_pairs"] else self._all("color_pairs", "list_colors")
        yield from self._all("list_overflow", "load_pair")

    def _color_rounds(self) -> Iterator[Launch]:
        """Colors by many threads in rounds, and their lists."""
        yield from self._all("clear_meetings", "count_meetings", "scan_meeting_part", "scan_sums", "scan_meeting_rest")
        yield Launch("enter_meetings")
        for _ in range(COLOR_ROUNDS):
            yield from self._all("find_ready", "color_ready_pair")
        yield from self._all("color_rest", "count_colors", "start_colors", "place_colors")

    def _prepare(self) -> Iterator[Launch]:
        yield from self._all("set_times", "rotate_body", "track_angle", "evaluate_element", "couple")
        if self.settings["geometric_stiffness"]:
            yield Launch("stiffen_body")
        yield from self._all("mass_row", "axis_rates")
        if self.sizes["rolling_shapes"] and self.settings["substeps"] > 1:
            yield from self._all("follow_shape", "follow_pair")
        yield Launch("prepare_pair")

    def _start_solve(self) -> Iterator[Launch]:
        """All sweeps, or what comes before the passes of the direct solver."""
        if self.whole:
            yield Launch("solve_world")
            return
        if self.free:
            yield Launch("skip_solve")
            yield from self._start_contacts()
            yield from self._sweep_contacts()
            return
        if self.direct:
            yield from self._all("product_entry", "start_row", "start_axis", "start_passes")
            return
        yield from self._curvature(ALWAYS)
        yield from self._all("prepare_constraint", "warm_row", "warm_body")
        if self.sizes["pairs"]:
            yield from self._start_contacts()
        yield Launch("start_sweeps")
        yield from self._sweeps()

    def _sweeps(self) -> Iterator[Launch]:
        """Joints and contacts by color."""
        for sweep in range(self.settings["iterations"]):
            if 0 < sweep <= REFITS and self.sizes["axes"]:
                yield from self._refit(SWEEPING)
            yield from self._colors("sweep_overflow", "add_overflow", "sweep_color", SWEEPING)
            if self.sizes["pairs"]:
                yield from self._lists("sweep_contact", PRESSING)
            yield Launch("end_sweep", SWEEPING)

    def _lists(self, phase: str, condition: int) -> Iterator[Launch]:
        """Manifolds: the overflow together, then one color after another."""
        colors = self.sizes["max_colors"]
        yield Launch(phase, condition, colors)
        yield Launch("add_contact_parts", condition)
        for color in range(colors):
            yield Launch(phase, condition, color)

    def _start_contacts(self) -> Iterator[Launch]:
        yield Launch("start_contact_sweeps", TOUCHING)
        found_anew = self.settings["substeps"] == 1 or self.sizes["rolling_shapes"]
        if found_anew and not self.settings["papers"]:
            yield Launch("middle_body", TOUCHING)
        yield Launch("aim_pair", TOUCHING)
        yield from self._lists("warm_contact", TOUCHING)

    def _sweep_contacts(self) -> Iterator[Launch]:
        """Contacts alone, by conjugate gradients over the sweeps."""
        yield Launch("start_course_sum", PRESSING)
        if self.settings["iterations"] > 1:
            yield from self._all("start_course_body", "start_course_pair", condition=PRESSING)
        for sweep in range(self.settings["iterations"]):
            if sweep:
                yield from self._all("sum_squares", "choose_share", "go_on_pair", "go_on_body", condition=PRESSING)
            yield from self._lists("sweep_contact", PRESSING)
            yield Launch("end_contact_sweep", PRESSING)

    def _settle(self) -> Iterator[Launch]:
        """Velocities after overlaps were taken back and after impacts."""
        if not self.sizes["pairs"] and not self.settings["bounces"]:
            return
        if self.direct and not self.free:
            yield Launch("settle_world")
            return
        yield Launch("start_settle")
        if self.settings["bounces"]:
            yield Launch("find_axis_impact")
        if self.sizes["pairs"]:
            yield Launch("settle_pair", TOUCHING)
        yield Launch("enter_settle")
        yield from self._sweep_contacts() if self.free else self._sweeps()
        yield from self._all("next_rate", "store_velocity", "store_rate", condition=SETTLING)

    def _curvature(self, condition: int) -> Iterator[Launch]:
        if not self.settings["papers"]:
            yield from self._all("bend_body", "bend_element", "bend_coupling", condition=condition)

    def _refit(self, condition: int) -> Iterator[Launch]:
        yield from self._all("next_rate", "refresh", "sum_law", condition=condition)

    def _pass(self) -> Iterator[Launch]:
        """One pass of the direct solver, for worlds that still correct."""
        yield from self._all("scale_row", "scale_entry", condition=AGAIN)
        for level in range(self.sizes["levels"]):
            for phase in ("invert_pivot", "divide_entry", "update_entry"):
                yield Launch(phase, AGAIN, level)
        yield from self._curvature(REFRESHING)
        yield from self._all("residual_row", "guard", condition=ACTIVE)
        # A world that was just stopped is taken back too.
        yield from self._all("guard_body", "guard_row", "mark_pass")
        yield from self._solve_factored(CORRECTING)
        yield from self._all("correct_row", "correct_body", "count_pass", condition=CORRECTING)
        if self.sizes["axes"]:
            yield from self._refit(CORRECTING)
            yield from self._all("want_mode", "switch_mode", "end_refit", condition=CORRECTING)
        yield Launch("plan_bias", CORRECTING)

    def _solve_factored(self, condition: int) -> Iterator[Launch]:
        yield Launch("scale_right", condition)
        for level in range(self.sizes["levels"]):
            yield Launch("forward_row", condition, level)
        yield Launch("divide_row", condition)
        for level in reversed(range(self.sizes["levels"])):
            yield Launch("backward_row", condition, level)
        yield Launch("scale_change", condition)

    def _end_solve(self) -> Iterator[Launch]:
        if self.whole or self.free:
            return
        if not self.direct:
            yield from self._all("next_rate", "left_row", "end_solve")
            return
        yield from self._curvature(ALWAYS)
        yield from self._all("next_rate", "residual_row", "end_solve")

    def _colors(self, overflow: str, body: str, color: str, condition: int = ALWAYS) -> Iterator[Launch]:
        if self.sizes["overflow_constraints"]:
            yield from self._all(overflow, body, condition=condition)
        for number in range(self.sizes["colors"]):
            yield Launch(color, condition, number)

    def _split_impulses(self) -> Iterator[Launch]:
        """The papers' position correction."""
        if not self.settings["papers"]:
            return
        if self.direct:
            yield Launch("split_row")
            yield from self._solve_factored(ALWAYS)
            yield Launch("split_body")
            return
        yield Launch("clear_displacement")
        for _ in range(self.settings["iterations"]):
            yield from self._colors("split_overflow", "split_overflow_body", "split_color")

    def _drift(self) -> Iterator[Launch]:
        yield Launch("drift_body")
        if self.settings["papers"]:
            yield Launch("displace_body")
        yield from self._all("store_row", "store_axis")
        if self.sizes["pairs"]:
            yield Launch("slip_pair", TOUCHING)
        yield Launch("store_times")

    def _positions(self) -> Iterator[Launch]:
        if self.settings["papers"]:
            return
        yield Launch("turn_body")
        if self.direct:
            yield Launch("error_row")
            yield from self._solve_factored(ALWAYS)
            yield Launch("shift_body")
            return
        for _ in range(POSITION_SWEEPS):
            yield from self._colors("correct_overflow", "move_overflow", "correct_color")

    def _end(self) -> Iterator[Launch]:
        if self.sizes["pairs"]:
            yield Launch("store_pair", TOUCHING)
        yield from self._all("start_check", "check_body", "check_actuator", "check_start", "conclude", "store_state")
