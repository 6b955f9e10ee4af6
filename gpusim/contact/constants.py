"""Contact constants that the reference implementation and the kernels share."""

from __future__ import annotations

import numpy as np

from gpusim.contact.law import DAMPING, FRICTION, NORMAL, NUMBERS
from gpusim.contact.material import COMBINE

FLIGHT, SLIDING, STICKING = range(3)
"""Modes of a contact point. On round surfaces, a sticking contact point rolls without slip."""
MODES = ("flight", "sliding", "sticking")
# Values of the array manifold_color for manifolds without a color.
OVERFLOW, NO_CONTACT, ARTICULATED = -1, -2, -3

# Fraction of a sticking point's slip that each substep corrects.
SLIP_SHARE = 0.2
# The bias contains the velocity change due to rotations in half a step. The velocity change fades out for rotations
# above ROTATION_LIMIT (rad per step).
ROTATION_LIMIT = 0.5
# A point slides if the friction exceeds SLIDING_SHARE times the friction limit.
SLIDING_SHARE = 1.0 - 1e-5
# Fraction of the penetration that each substep corrects.
PUSH_SHARE = 0.2
# The normal compliance of a point on jointed bodies is at least min(POINT_FLOOR f, max(m, POINT_MIN f)). f is the
# response of the two bodies without joints. m is the inverse mass of the mechanisms of both bodies.
POINT_FLOOR, POINT_MIN = 1e-3, 1e-6
# Minimum additional compliance along the tangents of points on jointed bodies, as a fraction of the mean response.
TANGENT_FLOOR = 1e-2
# Resting points on bodies with joints act as stiff springs with the compliance SOFT_JOINED times their response. These
# springs distribute the load of a machine evenly over redundant supports. The weight compresses the springs by about
# 0.7 SOFT_JOINED g h^2 (3e-8 m at h = 1 ms). A point is rigid if it approaches faster than REST_WEIGHTS h g.
SOFT_JOINED, REST_WEIGHTS = 5e-3, 2.0
# Stage relax solves a point on jointed bodies again if ``carried`` exceeds PUSHED_OUT gamma p.
PUSHED_OUT = 2.0
# Compliance of a push-out, as a fraction of the point's response without joints. The compliance limits opposite
# push-outs. PUSH_YIELD_JOINED is for bodies with joints.
PUSH_YIELD, PUSH_YIELD_JOINED = 0.1, 0.5
# The push-out ignores the penetration that a load causes. The load is the maximum impulse of the
# manifold, but at least PUSH_WEIGHTS times the weight of its bodies. A push-out starts if the remaining penetration
# exceeds PUSH_BAND times the slop.
PUSH_WEIGHTS, PUSH_BAND = 30.0, 0.01
# Before the drift (position update), the compliance of a point is its response times 1/max(s^2, SOFTEST), with
# s = FIRM_MANIFOLDS iterations/min(manifolds, FIRM_MANIFOLDS).
SOFTEST, FIRM_MANIFOLDS = 4.0, 16.0
# Contact sweeps end if every impulse change is below CONVERGED times the greatest impulse.
CONVERGED = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 3e-6}
# Number of passes over the points of a manifold in a sweep.
POINT_PASSES = 1
# Number of passes for manifolds with points that are younger than NEW_AGE substeps.
NEW_PASSES, NEW_AGE = 20, 5
# The passes end if every impulse change in a pass is below PASS_SETTLED times the manifold's greatest impulse.
PASS_SETTLED = 1e-6
# The solver keeps the search direction only if a sweep reduces |g|^2 below STEADY times its previous value
# (reference/contacts/search_direction.py). If friction impulses grow without limit, g is the same in every sweep.
STEADY = 0.9999
# Newton's method for contacts ends if the distance between impulses and projections is below NEWTON_SETTLED times the
# greatest impulse. If the squared distance after a step is above NEWTON_SLOW times its value before the step, the limit
# is CONVERGED instead of NEWTON_SETTLED. The method takes at most NEWTON_PASSES steps, and halves each step up to
# NEWTON_HALVINGS - 1 times. The rows of the equations are scaled to about 1. The method adds NEWTON_DAMPING to the
# diagonal of the equations, so redundant points share a load. If no step helps, the method multiplies the damping by
# NEWTON_GROWTH, up to NEWTON_MAX_DAMPING. A jam has no solution, and the impulses of a jam change velocities by 1e2 to
# 1e5 times the initial error. In moving robots, impulses change velocities by at most 3 times the initial error. Above
# NEWTON_GAIN times the initial error, the solver uses sweeps, because the number of sweeps limits the impulses.
NEWTON_SETTLED = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-6}
NEWTON_DAMPING = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-5}
NEWTON_PASSES, NEWTON_HALVINGS = 20, 8
NEWTON_GROWTH, NEWTON_MAX_DAMPING = 1e3, 1e-2
NEWTON_GAIN, NEWTON_SLOW = 30.0, 0.25
# Number of Newton steps for sliding friction. The direction error is at most 1e-4 rad for mass ratios of 1:4.
FRICTION_PASSES = 2
# A point below REST_SPEED (m/s) also counts as sticking, even above SLIDING_SHARE.
REST_SPEED = 1e-6
# Minimum speed of a patch that slides and spins. A slower patch sticks (m/s).
PATCH_STICK = 1e-5
# Damping of a stiff spring with a period of a few steps, as a fraction of h k.
SPRING_DAMPING = 0.25
# Time constant of the damper of a tire at standstill (s). The damper stops oscillations of the vehicle. TIRE_FADE
# reduces the damper with the rolling speed (reference/contacts/contact_tire.py).
TIRE_DAMPING, TIRE_FADE = 0.02, 20.0
# TIRE_PASSES: Newton steps for the factor G of a tire (reference/contacts/contact_tire.py). TIRE_STEPS: Newton steps
# for the cubic equation in each step for G. TIRE_MIN: minimum ratio of a deflection to its value without force.
TIRE_PASSES, TIRE_STEPS, TIRE_MIN = 3, 6, 1e-3
# Minimum sine of the angle between axle and normal of a wheel with a rolling direction.
TIRE_FLAT = 1e-3
# Bias of a point that must not exert a force.
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
    **{f"LAW_AT_{name.upper()}": index for index, name in enumerate(NUMBERS)},
    **{f"LAW_{c.name.upper()}": c.number for socket in (NORMAL, DAMPING, FRICTION) for c in socket.values()},
}
