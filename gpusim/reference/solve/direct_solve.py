"""The stage ``solve`` with the direct solver, which solves all joint rows at once.

    (J v + b) + (gamma + eps A_ii) p = target,   v = v_kicked + M^-1 J^T p

b is the curvature bias. Position limits, friction and force limits use active-set switching (modes.py). The solver
iterates in *passes*. Each pass solves all rows, and then linearizes the nonlinear laws at the new velocities. The first
pass uses b at velocities that are extrapolated from the last three velocities. After the first pass, a *refresh* also
recomputes b.

If later passes diverge, the *guard* restores the solution of the first pass. Near a singular pose of a kinematic loop,
it restarts the passes with a damped factorization.

Between the forward and the backward solve, the solver sweeps the contacts (contact_direct.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim import rotations
from gpusim.reference import rotors
from gpusim.reference.accuracy import measure_spins
from gpusim.reference.contacts import contact_islands, contact_push
from gpusim.reference.joints import actuate, coupled_laws
from gpusim.reference.joints.curvature import curvature
from gpusim.reference.joints.factor import REGULARIZATION, diagonal, products
from gpusim.reference.joints.laws import AT_LOWER, AT_UPPER, CONTACT_BITS, STICK, solve_row
from gpusim.reference.joints.modes import adjacent_modes, first_move, off_stop, reversal_fractions
from gpusim.reference.joints.prediction import predict_bias
from gpusim.reference.solve import colored_solve, contact_direct, self_stress
from gpusim.reference.solve.drift import momentum_change
from gpusim.reference.solve.world_factors import factor_worlds
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

PASSES = 3
# Number of passes in stage relax, which keeps the bias.
RELAX_PASSES = 1
# Maximum number of refreshes of the curvature bias in a solve.
MAX_REFRESHES = 3
# Relative change of a compliance above which the solver factors again.
STALE = 0.2
# Rows with the slope D = 0 get D = MIN_SLOPE / response, so that p = P up to round-off.
MIN_SLOPE = {np.dtype(np.float64): 1e-30, np.dtype(np.float32): 1e-24}
# After CAREFUL_AFTER factorizations in a substep, only one row switches its mode in each pass. The maximum number of
# factorizations is ``iterations`` + 2 (axis rows + clamped terms). After that, the solver leaves a residual.
CAREFUL_AFTER = 4
# Refreshes converge if each one multiplies the error, or the square root of its energy, by at most CONTRACTION.
# Refreshes also converge if the residual of the rigid rows (m/s) is below ROUNDING.
CONTRACTION = 0.9
ROUNDING = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 1e-4}
# A step has large rotations if the error after the first pass exceeds FAR_RATIO times the initial error. Measured
# fractions: 0.3 to 0.5 in a cracking whip, 2e-3 to 5e-3 at singular poses of a four-bar.
FAR_RATIO = 0.05
# Damping of the factor near singular poses, as a multiple of an estimate (Passes.guard) or of the previous damping.
# Singular poses need a damping of up to 9e-4. Above MAX_DAMPING, the guard assumes another cause, such as a curved
# law.
DAMPING, MAX_DAMPING = 20.0, 2e-3
# In a world with loops, the first pass runs away if its energy exceeds RUNAWAY times twice the kinetic energy. The
# solver checks the energy only if a pivot is weak, or if the bias moves joints by more than MAX_BEND times the usual
# lever in a step. After a runaway, the joints restart with RUNAWAY_DAMPING.
RUNAWAY, RUNAWAY_DAMPING, MAX_BEND = 0.05, 1e-4, 1e-3
# With large rotations, the first pass also runs away if it adds more than GAIN times twice the kinetic energy. The
# added energy excludes the work of the axis rows. If more damping does not help, the joints restart without bias. A
# solve without bias adds no energy.
GAIN = 0.5
# The energy excludes rows with a larger compliance (1/kg), such as sliding friction, because the energy of loose rows
# is only round-off.
LOOSE = 1e12
# The passes end when the error of every row is below SETTLED (m/s), or below LOOPS_SETTLED in worlds with loops.
SETTLED = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-6}
LOOPS_SETTLED = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
# In worlds without loops in which each mechanism is in contact, the passes also end when two errors are small enough.
# The error of every row is below CONTACTS_SETTLED times the speed that gravity adds in a substep. The contact impulses
# have changed by at most CONTACTS_SETTLED times the greatest impulse. Contacts start and end at substeps, so they cause
# much larger errors (ci/bench/cpu.md).
CONTACTS_SETTLED = 1e-3


class Rows:
    """Compliances and targets of all rows in their current modes, (num_worlds, constraints, block)."""

    def __init__(self, w: StepBuffers, response: Array) -> None:
        self.gamma = np.zeros_like(response)
        self.target = np.zeros_like(response)
        self.regularization = response.dtype.type(REGULARIZATION[response.dtype]) * response
        axis_rows = response.reshape(w.num_worlds, -1)[:, w.topology.axis_row]
        self.response = np.maximum(axis_rows, np.finfo(w.real).tiny * 1e6)
        self.floor = MIN_SLOPE[w.real] / self.response

    def fill(self, w: StepBuffers, mode: Array) -> None:
        """Set the compliances and targets of all axis rows for the modes ``mode``."""
        impulse, slope = w.law.total(mode)
        contact = mode & CONTACT_BITS
        rigid = contact >= STICK
        slope = np.maximum(slope, self.floor)
        stop = np.where(contact == AT_LOWER, w.law.velocity_lower, 0.0)
        stop = np.where(contact == AT_UPPER, w.law.velocity_upper, stop)
        direct = ~w.layout.axis_swept
        rows = w.topology.axis_row[direct]
        self.gamma.reshape(w.num_worlds, -1)[:, rows] = np.where(rigid, 0.0, 1.0 / slope)[:, direct]
        self.target.reshape(w.num_worlds, -1)[:, rows] = np.where(rigid, stop, impulse / slope)[:, direct]
        coupled_laws.fill(w, self.gamma, self.target)

    def residual(self, w: StepBuffers) -> Array:
        """Return the residuals of all rows (m/s or rad/s), (num_worlds, constraints, block)."""
        compliance = (self.gamma + self.regularization) * w.solved
        compliance[:, w.topology.coupled_constraint] += coupled_laws.off_diagonal_product(w, w.solved)
        residual = self.target - w.row_velocity(w.twist) - w.bias.reshape(w.solved.shape) - compliance
        residual[:, w.topology.swept] = 0.0
        return residual

    def change(self, w: StepBuffers, residual: Array, response: Array) -> Array:
        """Return the maximum residual (m/s or rad/s) that an impulse on the same row can correct, (num_worlds,)."""
        return np.asarray(
            np.abs(residual * (response / (response + self.gamma)) * w.topology.row_used).max(axis=(1, 2))
        )

    def rigid_error(self, w: StepBuffers, residual: Array) -> Array:
        """Return the maximum residual of the rigid rows (m/s or rad/s), (num_worlds,)."""
        rigid = w.topology.row_used & (self.gamma == 0.0)
        return np.asarray(np.abs(residual * rigid).max(axis=(1, 2)))


class Passes:
    """Control of the passes in each world: counters, error measures, and the saved solution of the first pass."""

    def __init__(self, w: StepBuffers) -> None:
        worlds = w.num_worlds
        self.max_passes = np.where(w.spinning, rotors.PASSES, PASSES)
        self.max_refreshes = np.where(w.spinning, rotors.PASSES, MAX_REFRESHES)
        self.remaining = self.max_passes.copy()
        self.since = np.zeros(worlds, np.int64)
        self.switches = np.zeros(worlds, np.int64)
        self.refreshes = np.zeros(worlds, np.int64)
        self.hold_bias = np.full(worlds, w.scheme != "semi_implicit")
        self.load_error = np.zeros(worlds, w.real)
        self.error = np.zeros(worlds, w.real)
        self.energy = np.zeros(worlds)
        self.stalled = np.zeros(worlds, bool)
        self.saved: tuple[Array, ...] = w.twist, w.solved, w.bias

    @property
    def active(self) -> Array:
        """Return a mask of the worlds with remaining passes."""
        return self.remaining > 0

    def end(self, w: StepBuffers, error: Array, change: Array) -> None:
        """End the passes in converged worlds, and detect diverging worlds for the guard."""
        active, refreshed = self.active, (self.since > 0) & ~self.hold_bias
        self.load_error = np.where(active & (self.since == 0) & (self.switches == 0), error, self.load_error)
        self.keeps = active & (self.since == 1)
        self.error = np.where(self.keeps, error, self.error)
        self.remaining[active & refreshed & (change <= _settled_error(w))] = 0
        second = active & (self.since == 2) & (error > ROUNDING[w.real])
        far = self.error > FAR_RATIO * self.load_error
        self.restores = second & far & (error > CONTRACTION * self.error)
        self.weighs = second & ~far & refreshed & self.active

    def guard(self, w: StepBuffers, energy: Array, plain: Array) -> None:
        """Save the solution of the first pass. If later passes diverge, restore this solution or restart the passes.

        Args:
            w: work arrays of the substep.
            energy: energy r . x with the residual r and the correction x, (num_worlds,).
            plain: energy of the correction with diag(A) instead of A, (num_worlds,).
        """
        now, damping = (w.twist, w.solved, w.bias.copy()), w.factor_damping  # refreshes change the bias
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = np.sqrt(energy / self.energy)
            more = DAMPING * np.where(damping > 0.0, damping, growth * plain / energy)
        more = np.where(self.keeps, DAMPING * damping + np.where(damping > 0.0, 0.0, RUNAWAY_DAMPING), more)
        motion = _motion(w)
        bends = self.error * w.h > MAX_BEND * w.accuracy_limits["usual_lever"]
        far = bends & (self.error > FAR_RATIO * self.load_error)
        runs_away = w.topology.loops.any() & (bends | (w.softening > 0.0)) & (energy > RUNAWAY * motion)
        gains = self.active & self.keeps & (far | runs_away) & _gains(w, motion)
        diverges = np.where(self.keeps, runs_away | gains, self.weighs & (growth > CONTRACTION))
        self.released = self.active & diverges & (more <= MAX_DAMPING)
        straight = gains & ~self.released & (self.refreshes < self.max_refreshes)
        keeps, back = self.active & self.keeps, self.released | (self.active & self.restores)
        self.energy = np.where(keeps, energy, self.energy)
        if keeps.any():
            pairs = zip(now, self.saved, strict=True)
            self.saved = now if keeps.all() else tuple(_choose(keeps, a, b) for a, b in pairs)
            if w.touch is not None:
                w.touch.keep(keeps)
        self.stalled |= back & ~self.released
        self.remaining[back & ~self.released] = 0
        if back.any():
            w.twist, w.solved = (_choose(back, a, b) for a, b in zip(self.saved[:2], now[:2], strict=True))
            if w.touch is not None:
                w.touch.restore(back)
        if self.released.any():
            damping[self.released] = more[self.released]
            self._release(w)
        if straight.any():
            self.released = self.released | straight
            self._release(w)
            w.bias[straight] = 0.0
            self.refreshes[straight] = self.max_refreshes[straight]

    def _release(self, w: StepBuffers) -> None:
        """Reset the joint impulses of the direct solver to zero, in the worlds of the mask ``released``."""
        worlds = self.released
        impulse = np.where(worlds[:, None, None] & ~w.topology.swept[:, None], w.solved, w.real.type(0.0))
        w.solved = w.solved - impulse
        w.twist = _choose(worlds, w.twist + w.apply_impulse(-impulse), w.twist)
        w.bias = _choose(worlds, self.saved[2], w.bias)
        self.since[worlds], self.refreshes[worlds] = 0, 0
        self.hold_bias[worlds], self.remaining[worlds] = True, self.max_passes[worlds]

    def restart(self, worlds: Array) -> None:
        """Reset the counters of ``worlds`` before a new factorization."""
        self.switches[worlds] += 1
        self.since[worlds] = 0
        self.remaining[worlds] = self.max_passes[worlds]

    def plan_bias(self, worlds: Array) -> None:
        """Decide in which ``worlds`` the next pass keeps the curvature bias."""
        self.hold_bias = np.where(worlds, (self.since == 0) | (self.refreshes >= self.max_refreshes), self.hold_bias)
        self.refreshes += worlds & (self.since > 0)

    def resume(self, worlds: Array) -> None:
        """Allow more passes for ``worlds``. The passes start from the current solution."""
        self.remaining = np.where(worlds, RELAX_PASSES, 0)
        self.since[worlds] = 0
        self.refreshes[:] = self.max_refreshes
        self.hold_bias[:] = True


def _motion(w: StepBuffers) -> Array:
    """Return twice the kinetic energy after the kick, (num_worlds,)."""
    return _work(w, w.twist_kicked, w.momentum_kicked, w.twist_kicked)


def _work(w: StepBuffers, velocity: Array, momentum: Array, twist: Array) -> Array:
    linear = rotations.dot(velocity[..., :3], twist[..., :3]) * w.broadcast(w.parameters["mass"])
    angular = rotations.dot(momentum, twist[..., 3:])
    return _total(np.where(w.topology.dynamic, linear + angular, 0.0).astype(np.float64))


def _gains(w: StepBuffers, motion: Array) -> Array:
    """Return a mask (num_worlds,) of worlds with loops that gain too much energy in the solve."""
    t = w.topology
    if not t.loops.any():
        return np.zeros(w.num_worlds, bool)
    both = w.twist + w.twist_kicked
    added = _work(w, w.twist - w.twist_kicked, momentum_change(w), both)
    impulse, rate = (x.reshape(w.num_worlds, -1)[:, t.axis_row] for x in (w.solved, w.row_velocity(both)))
    driven = np.maximum(_total(impulse.astype(np.float64) * rate), 0.0)
    return np.asarray(added - driven > GAIN * motion)


def _choose(worlds: Array, these: Array, others: Array) -> Array:
    return np.where(worlds.reshape(-1, *(1,) * (these.ndim - 1)), these, others)


@dataclass
class System:
    """Equations of a substep, with the state of the passes that solve them."""

    blocks: Array
    response: Array
    rows: Rows
    mode: Array
    factored_gamma: Array
    """Compliances at the last factorization."""
    passes: Passes


def solve(w: StepBuffers) -> None:
    """Compute the impulses ``solved``, the velocities ``twist`` and the axis rates ``rate_next``."""
    t = w.topology
    blocks = products(t, w.jacobian, w.mass_jacobian)
    response = diagonal(t, blocks)
    mode = w.state.arrays["axis_mode"].copy()
    rows = Rows(w, response)
    w.response = rows.response.copy()
    _start_modes(w, mode, rows.response)
    rows.fill(w, mode)
    w.mode, w.solved = mode, np.zeros_like(w.solved)
    w.unconverged, w.factor_damping, w.softening = (np.zeros(w.num_worlds, kind) for kind in (bool, float, w.real))
    w.factor = factor_worlds(w, blocks, rows.gamma, response, np.arange(w.num_worlds))
    swept = bool(t.swept.any())
    w.contact_residual_now = np.zeros(w.num_worlds, w.real)
    w.island_count, w.condensed_fits = contact_islands.list_islands(w), np.zeros(w.num_worlds, bool)
    if w.touch is not None:
        contact_direct.respond_articulated(w, np.ones(w.num_worlds, bool))
    _find_spinning(w)
    predict_bias(w)
    if swept:
        colored_solve.warm_start(w)
    if w.touch is not None:
        contact_push.start_contacts(w, colored_solve.follow if swept else None)
    w.direct = System(blocks, response, rows, mode, rows.gamma.copy(), Passes(w))
    _run_passes(w, w.direct, np.ones(w.num_worlds, bool))
    w.stalled = w.direct.passes.stalled
    _refresh_bias(w, np.zeros(w.num_worlds, bool))
    _find_rate_next(w)
    w.residual_now = rows.rigid_error(w, rows.residual(w))
    if swept:
        w.residual_now = np.maximum(w.residual_now, colored_solve.residual(w))


def _find_spinning(w: StepBuffers) -> None:
    touching = w.touch.touching if w.touch is not None else np.zeros(w.num_worlds, bool)
    w.spinning, angles = rotors.find_spinning(w, touching | w.topology.swept.any())
    measure_spins(w, angles)


def resume(w: StepBuffers, worlds: Array) -> None:
    """Continue the solve in worlds with new bounds or contacts. ``worlds`` is a mask, (num_worlds,)."""
    system: System = w.direct
    system.passes.resume(worlds)
    system.rows.fill(w, system.mode)
    _run_passes(w, system, worlds)


def _run_passes(w: StepBuffers, system: System, worlds: Array) -> None:
    t, rows, passes = w.topology, system.rows, system.passes
    while passes.active.any():
        _refresh_bias(w, passes.hold_bias)
        residual = rows.residual(w)
        passes.end(w, rows.rigid_error(w, residual), rows.change(w, residual, system.response))
        advancing = _correct(w, system, residual)
        again = _refit(w, system) if t.axis_row.size else np.zeros(w.num_worlds, bool)
        passes.restart(again)
        passes.plan_bias(advancing)
        again = np.flatnonzero(again | passes.released)
        if again.size:
            w.factor.replace(factor_worlds(w, system.blocks, rows.gamma, system.response, again), again)
            system.factored_gamma[again] = rows.gamma[again]
            contact_direct.respond_articulated(w, np.isin(np.arange(w.num_worlds), again))
    self_stress.drop(w, worlds)


def _refresh_bias(w: StepBuffers, hold: Array) -> None:
    """Recompute the curvature bias at the newest velocities. Worlds in the mask ``hold`` keep their bias."""
    if hold.all():
        return
    saved = w.bias.copy() if hold.any() or w.topology.swept.any() else None
    curvature(w)
    if saved is not None:
        swept = np.repeat(w.topology.swept, w.topology.block)
        w.bias[:] = np.where(hold[:, None] | swept, saved, w.bias)


def _correct(w: StepBuffers, system: System, residual: Array) -> Array:
    passes, response = system.passes, system.response + system.rows.gamma
    y, x = w.factor.forward(residual[..., None])
    w.delta = x[..., 0]
    plain = residual.astype(np.float64) ** 2 / np.where(response > 0.0, response, np.inf)
    stiff = system.rows.gamma <= w.real.type(LOOSE)
    passes.guard(w, _total(np.where(stiff[..., None], y.astype(np.float64) * x, 0.0)), _total(plain * stiff))
    active = passes.active & ~passes.released
    # The first pass has twice as many sweeps, because later passes must correct its contact errors through the joints.
    # Sweeps that include joints are expensive, so the solver halves their number.
    sweeps = w.config.iterations
    first_sweeps, other_sweeps = (sweeps, (sweeps + 1) // 2) if w.topology.swept.any() else (2 * sweeps, sweeps)
    contact_direct.sweep_contacts(w, active, np.where(passes.since == 0, first_sweeps, other_sweeps))
    change = w.factor.backward(w.delta)
    twist = w.twist + w.apply_impulse(change)
    if active.all():
        w.solved, w.twist = w.solved + change, twist
    else:
        pick = active[:, None, None]
        w.solved, w.twist = np.where(pick, w.solved + change, w.solved), np.where(pick, twist, w.twist)
    w.active = active[:, None]
    passes.remaining -= active
    passes.since += active
    return active


def _settled_error(w: StepBuffers) -> Array:
    """Return the maximum error of the rows (m/s or rad/s) at which the passes of each world end, (num_worlds,)."""
    loops = w.topology.loops.any()
    limit = np.full(w.num_worlds, (LOOPS_SETTLED if loops else SETTLED)[w.real], w.real)
    if w.touch is None or loops or w.topology.swept.any():
        return limit
    weight = (np.linalg.norm(w.parameters["gravity"], axis=-1) * (CONTACTS_SETTLED * w.h)).astype(w.real)
    in_contact = w.touch.all_in_contact & (w.contact_residual_now <= w.real.type(CONTACTS_SETTLED))
    return np.where(in_contact, np.maximum(limit, weight), limit)


def _total(energy: Array) -> Array:
    parts = energy.reshape(len(energy), -1)
    return np.asarray(np.add.accumulate(parts, axis=1)[:, -1]) if parts.shape[1] else np.zeros(len(parts))


def _refit(w: StepBuffers, system: System) -> Array:
    """Update laws and modes at the newest velocities. Return a mask of the worlds that need a new factorization."""
    rows, mode, passes = system.rows, system.mode, system.passes
    before = w.rate_next
    _find_rate_next(w)
    if not w.active.all():
        w.rate_next = np.where(w.active, w.rate_next, before)
    actuate.relinearize(w, w.rate_next)
    # Do not switch modes in worlds that may not factor again, because the factor would no longer match the rows.
    may = passes.switches < w.config.iterations + 2 * (w.topology.axis_row.size + w.clamps)
    changed = _switch_modes(w, system, may)
    if not (changed.any() or w.nonlinear):
        return changed
    rows.fill(w, mode)
    stale = (np.abs(rows.gamma - system.factored_gamma) > STALE * system.factored_gamma).any(axis=(1, 2))
    return np.asarray(w.active[:, 0] & (changed | stale) & may)


def _find_rate_next(w: StepBuffers) -> None:
    rows = w.topology.axis_row
    flat = w.row_velocity(w.twist).reshape(w.num_worlds, -1)
    w.rate_next = flat[:, rows] + w.bias[:, rows]


def _start_modes(w: StepBuffers, mode: Array, response: Array) -> None:
    if not w.law.switches:
        mode[:] = 0
        return
    law, contact = w.law, mode & CONTACT_BITS
    fresh = solve_row(law, w.rate, response)[1]
    gone = (contact == AT_LOWER) & ~np.isfinite(law.velocity_lower)
    gone |= (contact == AT_UPPER) & ~np.isfinite(law.velocity_upper)
    gone |= (contact < AT_LOWER) & ((law.friction > 0.0) != (contact > 0))
    gone |= w.h_prev <= 0.0
    mode[:] = np.where(gone, fresh, mode)
    mode[:, w.layout.axis_swept] = 0


def _switch_modes(w: StepBuffers, system: System, may: Array) -> Array:
    """Switch rows that have left their segment of the law to the adjacent segment (modes.py).

    Switching all rows at once is fast, but it may cycle. After many switches, the solver therefore switches only the
    row with the lowest index. This rule always terminates (Murty 1974).
    """
    if not w.law.switches:
        return np.zeros(w.num_worlds, bool)
    mode, careful = system.mode, system.passes.switches >= CAREFUL_AFTER
    new = _next_modes(w, system)
    differs = (new != mode) & ~w.layout.axis_swept
    if self_stress.redundant(w).any() and differs.any():  # self-stress must not make friction slip
        change = self_stress.drop(w, w.active[:, 0] & may & differs.any(axis=1))
        w.twist = w.twist + w.apply_impulse(change)
        again = _next_modes(w, system)
        new = np.where((again == mode) & off_stop(w.law, mode, w.rate_next), new, again)
        differs = (new != mode) & ~w.layout.axis_swept
    w.unconverged |= w.active[:, 0] & ~may & differs.any(axis=1)
    changed = w.active[:, 0] & may & differs.any(axis=1)
    for world in np.flatnonzero(changed & careful):
        first = int(np.argmax(differs[world]))
        differs[world, first + 1 :] = False
        new[world, first] = first_move(int(mode[world, first]), int(new[world, first]))
    mode[:] = np.where(differs & changed[:, None], new, mode)
    return np.asarray(changed)


def _next_modes(w: StepBuffers, system: System) -> Array:
    """Return the new modes of all axis rows for the current impulses and rates, (num_worlds, axes)."""
    excess = system.passes.switches - CAREFUL_AFTER
    impulse = w.solved.reshape(w.num_worlds, -1)[:, w.topology.axis_row]
    touching = w.touch.touching if w.touch is not None else False
    fraction = reversal_fractions((excess >= 0) & touching, excess)
    return adjacent_modes(w.law, system.mode, w.rate_next, impulse, system.rows.response, fraction)
