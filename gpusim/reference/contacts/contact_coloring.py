"""Stage color_contacts: color the contact manifolds. No two manifolds of one color share a dynamic body.

The coloring is greedy and handles the manifolds in a pseudorandom order. Each manifold takes the lowest color that its
two bodies do not use yet. If its bodies already use all colors, the manifold joins the overflow (manifolds without a
color). The solver splits the mass of a body over its overflow manifolds.
"""

from __future__ import annotations

import numpy as np

from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

NO_CONTACT, OVERFLOW, ARTICULATED = -2, -1, -3


def color(w: StepBuffers) -> None:
    """Color the manifolds of all worlds. List the manifolds of each color, and the overflow manifolds of each body."""
    c, state, shapes = w.contacts, w.state.arrays, w.model.contact
    assert c is not None
    articulated = shapes.articulated & (w.config.direct)
    bodies = shapes.body[state["pair_shapes"]]
    used = c.body_colors.view(np.uint32)
    c.body_colors[:] = 0
    c.body_parts[:] = 0
    for k, count in enumerate(state["pair_count"]):
        on, points, chosen = bodies[k, :count], state["pair_points"][k, :count], c.manifold_color[k, :count]
        c.touching[k] = color_pairs(on, points, w.topology.dynamic, articulated, w.config.max_colors, used[k], chosen)
        list_colors(chosen, w.config.max_colors, c.color_first[k], c.color_member[k])
        first, last = c.color_first[k, w.config.max_colors : w.config.max_colors + 2]
        list_overflow(on, c.color_member[k, first:last], c.body_parts[k], c.part_start[k], c.part_side[k])


def mixed(k: int, bits: int) -> int:
    """Return element k of a fixed pseudorandom permutation of the integers from 0 to 2^bits - 1."""
    mask = (1 << bits) - 1
    shift = (bits + 1) // 2
    k = (k * 0x9E3779B1) & mask
    k ^= k >> shift
    k = (k * 0x85EBCA6B) & mask
    k ^= k >> shift
    return k & mask


def bits_for(count: int) -> int:
    """Return the number of bits (at least 1) that can represent every index below ``count``."""
    return max((count - 1).bit_length(), 1)


def choose_color(a: int, b: int, dynamic: Array, colors: int, used: Array) -> int:
    """Return the lowest color that dynamic bodies a and b do not use yet, and mark this color as used."""
    low = np.uint32(0)
    high = np.uint32(0)
    for body in (a, b):
        if dynamic[body]:
            low |= used[body, 0]
            high |= used[body, 1]
    for color in range(colors):
        word, bit = color >> 5, np.uint32(1 << (color & 31))
        if not (low if word == 0 else high) & bit:
            for body in (a, b):
                if dynamic[body]:
                    used[body, word] |= bit
            return color
    return OVERFLOW


def color_pairs(
    bodies: Array, points: Array, dynamic: Array, articulated: Array, colors: int, used: Array, chosen: Array
) -> int:
    """Color the manifolds of one world. Return the number of manifolds that have contact points.

    Args:
        bodies: (n, 2) bodies of each manifold.
        points: (n,) number of points of each manifold.
        dynamic: (bodies,) True for dynamic bodies.
        articulated: (bodies,) True for bodies with joints. The manifolds of these bodies get no color.
        colors: number of colors.
        used: (bodies, 2) uint32, bit mask of the colors that each body uses. All bits are 0 at the start.
        chosen: output for the color of each manifold, with at least n entries.
    """
    count, touching = len(bodies), 0
    bits = bits_for(count)
    for k in range(1 << bits):
        m = mixed(k, bits)
        if m >= count:
            continue
        a, b = bodies[m]
        if points[m] == 0:
            chosen[m] = NO_CONTACT
            continue
        touching += 1
        chosen[m] = ARTICULATED if articulated[a] or articulated[b] else choose_color(a, b, dynamic, colors, used)
    return touching


def list_colors(chosen: Array, colors: int, first: Array, member: Array) -> None:
    """List the manifolds of each color, then the overflow, then the manifolds of bodies with joints.

    Each list is in ascending order of the manifold indices.

    Args:
        chosen: (n,) color of each manifold, from :func:`color_pairs`.
        colors: number of colors.
        first: (colors + 3,) output for the start index of each list in ``member``, followed by the end index of the
            last list.
        member: output for the manifold indices of all lists.
    """
    listed = np.flatnonzero(chosen != NO_CONTACT)
    list_index = np.select([chosen == OVERFLOW, chosen == ARTICULATED], [colors, colors + 1], chosen)[listed]
    member[: listed.size] = listed[np.argsort(list_index, kind="stable")]
    first[0] = 0
    first[1:] = np.cumsum(np.bincount(list_index, minlength=colors + 2))


def list_overflow(bodies: Array, members: Array, parts: Array, start: Array, side: Array) -> None:
    """List the overflow manifolds of each body. The entries are indices of sides.

    A side is one of the two bodies of a manifold: side 2 k is body A of manifold k, and side 2 k + 1 is body B.

    Args:
        bodies: (n, 2) bodies of each manifold of the world.
        members: (overflow,) indices of the manifolds of the overflow.
        parts: (bodies,) output for the number of sides on each body. The caller fills ``parts`` with zeros first.
        start: (bodies + 1,) output for the index in ``side`` at which the sides of each body start.
        side: output for the sides, sorted by body.
    """
    if members.size == 0:
        return
    sides = (2 * members[:, None] + np.arange(2)).ravel()
    on = bodies[members].ravel()
    parts[:] = np.bincount(on, minlength=parts.size)
    start[0] = 0
    start[1:] = np.cumsum(parts)
    side[: sides.size] = sides[np.argsort(on, kind="stable")]
