"""Numbers of contacts that the reference and the kernels share."""

from __future__ import annotations

import numpy as np

from gpusim.model.contact_law import DAMPING, FRICTION, NORMAL, NUMBERS
from gpusim.model.material import COMBINE

FLIGHT, SLIDING, STICKING = range(3)
"""Modes of a contact point; a sticking one rolls where surfaces are round."""
MODES = ("flight", "sliding", "sticking")
# What stands for a color where a manifold has none.
OVERFLOW, NO_CONTACT, ARTICULATED = -1, -2, -3

# Share of a sticking point's slip that is taken back in each substep.
SLIP_SHARE = 0.2
# What turns of bodies add to velocities of points until half a step later fades out about this turn, rad a step.
TURN_LIMIT = 0.5
# A point slides when its friction has this share of the most that it can have.
SLIDING_SHARE = 1.0 - 1e-5
# Share of an overlap that is taken back in each substep.
PUSH_SHARE = 0.2
# A point on bodies that joints hold gives way by at least this share of the same bodies' response without joints, or by
# what their systems' masses alone would, where that is less, but not by less than POINT_LEAST of the former.
POINT_FLOOR, POINT_LEAST = 1e-3, 1e-6
# Tangents of such points give way by at least this share of their response.
TANGENT_FLOOR = 1e-2
# At rest, points on bodies with joints are stiff springs: they yield by this share of their response during the drift.
# The weight presses them in by about 0.7 SOFT_JOINED g h^2, 3e-8 m at 1 ms. So a machine on more supports than it needs
# loads them evenly. A point is rigid if it approaches faster than gravity alone makes it in REST_WEIGHTS substeps.
SOFT_JOINED, REST_WEIGHTS = 5e-3, 2.0
# Stage relax stops a point if its spring pushes it out by more than this many times what its load needs.
PUSHED_OUT = 1.001
# A push-out gives way by this share of the point's response, so that pushes against each other stay bounded; on bodies
# with joints by the larger share of the response without them.
PUSH_YIELD, PUSH_YIELD_JOINED = 0.1, 0.5
# A point carries what its manifold has borne, or so many times the weight of its bodies: how far that presses it in is
# no overlap to push out, which are those that are deeper by this share of the slop.
PUSH_WEIGHTS, PUSH_BAND = 30.0, 0.01
# A point gives way by this share of its mass while the drift lasts: one over the square of the number of sweeps, times
# FIRM_MANIFOLDS over the number of manifolds where there are fewer, and over SOFTEST at most.
SOFTEST, FIRM_MANIFOLDS = 4.0, 16.0
# Sweeps over contacts end when no impulse changes by more than this share of the greatest one.
CONVERGED = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 3e-6}
# Times that the points of one manifold are solved in turn before the next manifold is.
POINT_PASSES = 1
# The same for manifolds with points younger than so many substeps.
NEW_PASSES, NEW_AGE = 20, 5
# They end when a pass changes no impulse by more than this share of the manifold's greatest one.
PASS_SETTLED = 1e-6
# A search direction is gone on along where a sweep changes less than this share of what the one before did, in energy:
# friction that winds up changes the same in each of them.
STEADY = 0.9999
# Newton steps for sliding friction in the circle: its direction is off by 1e-4 rad at most for masses of 1:4.
FRICTION_PASSES = 2
# A point whose friction has that share rests all the same where it is slower than this, m/s.
REST_SPEED = 1e-6
# Below this speed a patch that slides and spins comes to rest, m/s.
PATCH_STICK = 1e-5
# Share of the damping h k that a spring of stiffness k gets where it swings in few steps.
SPRING_DAMPING = 0.25
# A tire that stands gives way like a spring with this time constant, s, so that what stands on it does not swing for
# long; as it rolls that fades, by so many times what it would change of the force that follows a slip.
TIRE_DAMPING, TIRE_FADE = 0.02, 20.0
# Newton steps for a tire's share of sliding, those for the cubic of each, and the least part of a deflection that they
# look for without any force.
TIRE_PASSES, TIRE_STEPS, TIRE_LEAST = 3, 6, 1e-3
# A wheel that lies flatter than by this sine has no direction to roll in.
TIRE_FLAT = 1e-3
# A bias that no velocity overcomes: the point gives no force.
NO_FORCE = 1e30
CODES = {
    "CONTACT_FLIGHT": FLIGHT,
    "CONTACT_SLIDING": SLIDING,
    "CONTACT_STICKING": STICKING,
    "OVERFLOW": OVERFLOW,
    "NO_CONTACT": NO_CONTACT,
    "ARTICULATED": ARTICULATED,
    "LAW_SIZE": len(NUMBERS),
    **{f"COMBINE_{name.upper()}": number for number, name in enumerate(COMBINE)},
    **{f"LAW_AT_{name.upper()}": place for place, name in enumerate(NUMBERS)},
    **{f"LAW_{c.name.upper()}": c.number for socket in (NORMAL, DAMPING, FRICTION) for c in socket.values()},
}
