"""Contact constants that the reference implementation and the kernels share."""

from __future__ import annotations

import numpy as np

from gpusim.contact.law import DAMPING, FRICTION, NORMAL, NUMBERS
from gpusim.contact.material import COMBINE

FLIGHT, SLIDING, STICKING = range(3)
"""Modes of a contact point. A sticking point rolls if its surfaces are round."""
MODES = ("flight", "sliding", "sticking")
# Codes in place of a color, for manifolds without one.
OVERFLOW, NO_CONTACT, ARTICULATED = -1, -2, -3

# Share of a sticking point's slip that each substep corrects.
SLIP_SHARE = 0.2
# The rotation of bodies changes the velocities of points until half a step later. This term fades out at about this
# rotation, rad per step.
TURN_LIMIT = 0.5
# A point slides if its friction reaches this share of its maximum.
SLIDING_SHARE = 1.0 - 1e-5
# Share of a penetration that each substep corrects.
PUSH_SHARE = 0.2
# The normal compliance of a point on jointed bodies is at least min(POINT_FLOOR f, max(m, POINT_LEAST f)).
# f is the response of the same bodies without joints, m the sum of the inverse masses of their whole systems.
POINT_FLOOR, POINT_LEAST = 1e-3, 1e-6
# The tangents of such points get an extra compliance of at least this share of their mean response.
TANGENT_FLOOR = 1e-2
# At rest, points on bodies with joints are stiff springs: they yield by this share of their response during the drift.
# The weight presses them in by about 0.7 SOFT_JOINED g h^2, 3e-8 m at 1 ms. So a machine on more supports than it needs
# loads them evenly. A point is rigid if it approaches faster than gravity accelerates it in REST_WEIGHTS substeps.
SOFT_JOINED, REST_WEIGHTS = 5e-3, 2.0
# Stage relax stops a point if its spring pushes it out by more than this factor times what its load needs.
PUSHED_OUT = 2.0
# Compliance of a push-out, as a share of the point's response. It bounds pushes against each other. Points on jointed
# bodies use the larger share, of the response without joints.
PUSH_YIELD, PUSH_YIELD_JOINED = 0.1, 0.5
# The push-out ignores the penetration that a load causes. The load is the manifold's greatest impulse, but at least
# PUSH_WEIGHTS times the weight of its bodies. Points that are deeper by PUSH_BAND of the slop are pushed out.
PUSH_WEIGHTS, PUSH_BAND = 30.0, 0.01
# During the drift a point yields by the share 1/max(s^2, SOFTEST) of its mass, where
# s = FIRM_MANIFOLDS iterations/min(manifolds, FIRM_MANIFOLDS).
SOFTEST, FIRM_MANIFOLDS = 4.0, 16.0
# Contact sweeps end when no impulse changes by more than this share of the greatest impulse.
CONVERGED = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 3e-6}
# Passes over the points of a manifold before the solver moves to the next manifold.
POINT_PASSES = 1
# The same for manifolds with points younger than NEW_AGE substeps.
NEW_PASSES, NEW_AGE = 20, 5
# The passes end when one changes no impulse by more than this share of the manifold's greatest impulse.
PASS_SETTLED = 1e-6
# The solver reuses the search direction only if the energy of a sweep's change is below this share of the previous one.
# Friction that winds up changes by the same amount in every sweep.
STEADY = 0.9999
# Newton's method in contact space ends when impulses differ from their projections by less than NEWTON_SETTLED of the
# greatest one, or within CONVERGED if a step leaves more than NEWTON_SLOW of the squared distance. It takes at most
# NEWTON_PASSES steps, each halved up to NEWTON_HALVINGS - 1 times. NEWTON_DAMPING is added to the diagonal of its
# equations, whose rows are scaled to about 1. So points that carry a load redundantly share it. If no part of a step
# helps, the damping grows by NEWTON_GROWTH, up to NEWTON_MOST_DAMPING. In robots that move, the impulses change
# velocities by up to 3 times what was missed. In jams, which have no solution, they do by 1e2 to 1e5 times. If they
# change by more than NEWTON_GAIN times that and the previous impulses, the solver sweeps instead, because the number of
# sweeps bounds the impulses.
NEWTON_SETTLED = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-6}
NEWTON_DAMPING = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-5}
NEWTON_PASSES, NEWTON_HALVINGS = 20, 8
NEWTON_GROWTH, NEWTON_MOST_DAMPING = 1e3, 1e-2
NEWTON_GAIN, NEWTON_SLOW = 30.0, 0.25
# Newton steps for sliding friction on the circle. The direction error is at most 1e-4 rad for mass ratios of 1:4.
FRICTION_PASSES = 2
# A point at SLIDING_SHARE still counts as sticking below this speed, m/s.
REST_SPEED = 1e-6
# A patch that slides and spins sticks below this speed, m/s.
PATCH_STICK = 1e-5
# Share of the damping h k that a spring of stiffness k gets if it oscillates within a few steps.
SPRING_DAMPING = 0.25
# Time constant of the damper of a standing tire, s, so that the vehicle does not oscillate for long. TIRE_FADE sets how
# fast the damper fades with the rolling speed (reference/contacts/contact_tire.py).
TIRE_DAMPING, TIRE_FADE = 0.02, 20.0
# Newton steps for the sliding share of a tire, Newton steps for the cubic in each, and the least assumed ratio of a
# deflection to its value without force.
TIRE_PASSES, TIRE_STEPS, TIRE_LEAST = 3, 6, 1e-3
# A wheel has no rolling direction if it lies flatter than this sine.
TIRE_FLAT = 1e-3
# A bias that no velocity overcomes, so that the point exerts no force.
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
