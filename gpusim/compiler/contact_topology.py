"""Constant contact data of a finalized model: shape arrays, collision filter, contact laws and capacities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusim import validate
from gpusim.compiler.adjacent_bodies import adjacent_bodies
from gpusim.compiler.seams import seam_reach, seams
from gpusim.contact.law import NUMBERS, ContactLaw
from gpusim.contact.material import Material, combine, contact_modulus
from gpusim.description.config import SolverConfig
from gpusim.description.shape_kinds import shape_kinds, shape_type
from gpusim.description.specs import WORLD, BodySpec, JointSpec, PairSpec, ShapeSpec
from gpusim.typing import Array

# Maximum number of shapes for which finalize lists all pairs. With more shapes, a grid finds pairs with overlapping
# boxes.
MAX_LISTED = 64
# Default pair capacity per movable shape, and additional capacity per world.
PAIRS_EACH, PAIRS_MORE = 14, 32
MATERIAL_NUMBERS = 2
# Maximum number of pairs for which one thread colors the manifolds in sequence, even on a GPU.
MAX_SEQUENTIAL = 1000
PARTS = 256
"""Number of sections into which the kernels split a list for parallel work."""
LARGE, MAX_WALKED = 32, 1000
"""In models with more than MAX_WALKED shapes, several threads search for the pairs of each large shape. A large shape
is larger than a grid cell. LARGE is the maximum number of large shapes."""


@dataclass
class ContactTopology:
    """Contact data of all shapes, as arrays. The world is the last body, as in :class:`Topology`."""

    labels: list[str]
    kind: Array
    body: Array
    size: Array
    """(shapes, 8) dimensions of the shape, in an order that depends on the shape kind (description/shape_kinds.py)."""
    center: Array
    """(shapes, 3) origin of the shape frame relative to the body's center of mass, body axes, m."""
    rotation: Array
    """(shapes, 9) rotation matrix, shape to body."""
    radius: Array
    """(shapes,) bounding radius about ``center``, m. The radius of a plane is infinite."""
    rolls: Array
    """(shapes,) True for rolling surfaces, whose contact points do not rotate with the body within a step."""
    group: Array
    mask: Array
    law: Array
    """(shapes,) index of the contact law. Index 0 is a rigid law with Coulomb friction."""
    rule: Array
    """(shapes,) rule that combines the friction of two shapes, encoded as in Material.rule."""
    laws: Array
    """(laws, n) choices and parameters of each contact law, from ``ContactLaw.numbers``."""
    modulus: Array
    """(shapes,) modulus E/(1 - nu^2), Pa."""
    curvature: Array
    """(shapes,) curvature 1/R of a round shape, 1/m, or 0 for other shapes."""
    points: Array
    point_start: Array
    face_first: Array
    face_start: Array
    vertex_start: Array
    face_vertex: Array
    face_normal: Array
    excluded: list[list[int]]
    """For each shape, the shapes with a higher index that must not collide with it."""
    included: list[list[int]]
    """For each shape, the shapes with a higher index that collide with it regardless of collision groups."""
    include_material: list[list[int]]
    """For each pair in ``included``, the row index in ``materials``, or -1 if the materials of the shapes apply."""
    materials: Array
    """(n, 2) modulus E* (Pa) and law index of each pair with a separate material."""
    candidates: list[list[int]] | None
    """For each shape, the shapes with a higher index that may touch it. An index occurs several times if the pair can
    have several manifolds. The list is None if a grid finds the pairs."""
    cell: float
    """Edge length of the grid's cells, m."""
    seams: list[list[int]]
    """For each shape, neighbor shapes on the same body whose faces can form one surface with it (compiler/seams.py)."""
    seam_reach: Array
    """(shapes,) maximum gap (m) between a tile (box, hull, height field or plane) and a neighbor tile, or 0 for other
    shapes (compiler/seams.py)."""
    manifolds: Array
    """(shapes,) maximum number of manifolds in a pair that contains this shape (ShapeType.manifolds)."""
    articulated: Array
    """(bodies,) True for bodies with joints or couplings in the direct solver."""

    @property
    def num_shapes(self) -> int:
        """Return the number of shapes."""
        return self.kind.size

    @property
    def num_buckets(self) -> int:
        """Return the number of buckets of the broad phase grid (a power of two), or 0 for models without this grid."""
        return 0 if self.candidates is not None else 1 << max(self.num_shapes - 1, 1).bit_length()

    @property
    def level(self) -> int:
        """Return the maximum ``level`` of the shape kinds in the model. This level selects the build of the kernels."""
        return max((kind.level for kind in shape_kinds() if np.any(self.kind == kind.number)), default=1)

    def capacity(self, config: SolverConfig, dynamic: Array) -> int:
        """Return the capacity of the pair buffer of one world."""
        listed = None if self.candidates is None else sum(map(len, self.candidates))
        if listed == 0 or self.num_shapes < 2:
            return 0
        if config.max_pairs is not None:
            return config.max_pairs if listed is None else min(config.max_pairs, listed)
        each = PAIRS_EACH + int(self.manifolds.max()) - 1
        guess = each * int(np.count_nonzero(dynamic[self.body])) + PAIRS_MORE
        return guess if listed is None else min(guess, listed)

    def sizes(self, config: SolverConfig, dynamic: Array) -> dict[str, int]:
        """Return the sizes of the arrays that description/contact_fields.py declares."""
        pairs = self.capacity(config, dynamic)
        shapes = self.num_shapes if pairs else 0
        gridded = pairs > 0 and self.candidates is None
        side_by_side = pairs > MAX_SEQUENTIAL
        seamed = any(self.seams)
        return {
            "shapes": self.num_shapes,
            "surfaces": self.num_shapes + self.materials.shape[0],
            "touchable": shapes,
            "shape_level": self.level if pairs else 0,
            "pairs": pairs,
            "seam_pairs": pairs if seamed else 0,
            "split_pairs": pairs if (self.manifolds > 1).any() else 0,
            "shape_slots": shapes + 1 if pairs else 0,
            "buckets": self.num_buckets if gridded else 0,
            "bucket_slots": self.num_buckets + 2 if gridded else 0,
            "grid_shapes": shapes if gridded else 0,
            "scan_parts": PARTS if pairs else 0,
            "large_parts": LARGE * PARTS if gridded and shapes > MAX_WALKED else 0,
            "color_slots": config.max_colors + 3 if pairs else 0,
            "body_slots": dynamic.size + 1 if pairs else 0,
            "pair_sides": 2 * pairs,
            "contact_bodies": dynamic.size if pairs else 0,
            "rolling_shapes": int(np.count_nonzero(self.rolls)) if pairs else 0,
            "lanes": 1,
            "record_slots": pairs,
            "anchor_slots": 0,
            "contact_sweeps": (2 if config.direct else 1) * config.iterations if pairs else 0,
            "incident_slots": dynamic.size + 1 if side_by_side else 0,
            "incidents": 2 * pairs if side_by_side else 0,
            "color_parts": PARTS * (config.max_colors + 2) if side_by_side else 0,
            "kept_pairs": pairs if config.direct else 0,
        }


def contact_topology(
    shapes: Sequence[ShapeSpec],
    pairs: Sequence[PairSpec],
    bodies: Sequence[BodySpec],
    joints: Sequence[JointSpec],
    dynamic: Array,
    articulated: Array,
) -> ContactTopology:
    """Create the contact data of all shapes. ``dynamic`` (bodies,) marks dynamic bodies."""
    world = len(bodies)
    body = np.array([world if s.body == WORLD else s.body for s in shapes], dtype=np.int64)
    types = [shape_type(s.kind) for s in shapes]
    laws, law = _laws(shapes, pairs)
    points = [np.asarray(t.points(s.params), dtype=np.float64).ravel() for s, t in zip(shapes, types, strict=True)]
    faces = [t.faces(s.params) for s, t in zip(shapes, types, strict=True)]
    radius = np.array([t.radius(s.params) for s, t in zip(shapes, types, strict=True)])
    group = np.array([s.group for s in shapes], dtype=np.int64)
    mask = np.array([s.mask for s in shapes], dtype=np.int64)
    included, include_material, materials = _included(shapes, pairs, laws)
    tolerance = seam_reach(shapes)
    manifolds = np.array([t.manifolds(s.params) for s, t in zip(shapes, types, strict=True)], dtype=np.int64)
    may = _Filter(body, dynamic, group, mask, _excluded(shapes, pairs, joints), included)
    return ContactTopology(
        labels=[s.label for s in shapes],
        kind=np.array([t.number for t in types], dtype=np.int64),
        body=body,
        size=np.array([t.sizes(s.params) for s, t in zip(shapes, types, strict=True)]).reshape(-1, 8),
        center=np.array([s.xform.position - _com(bodies, s) for s in shapes]).reshape(-1, 3),
        rotation=np.array([s.xform.matrix().ravel() for s in shapes]).reshape(-1, 9),
        radius=radius,
        rolls=np.array([t.rolls for t in types], dtype=bool),
        group=group,
        mask=mask,
        law=law,
        rule=np.array([s.material.rule for s in shapes], dtype=np.int64),
        laws=np.array([x.numbers() for x in laws], dtype=np.float64).reshape(-1, len(NUMBERS)),
        modulus=np.array([s.material.young_modulus / (1.0 - s.material.poisson_ratio**2) for s in shapes]),
        curvature=np.array([t.curvature(s.params) for s, t in zip(shapes, types, strict=True)]),
        points=np.concatenate([np.zeros(0), *points]),
        point_start=_starts([p.size for p in points]),
        face_first=np.concatenate([np.zeros(0), *(f.first for f in faces)]),
        face_start=_starts([len(f.first) for f in faces]),
        vertex_start=_starts([len(f.vertex) for f in faces]),
        face_vertex=np.concatenate([np.zeros(0, np.int32), *(f.vertex for f in faces)]),
        face_normal=np.concatenate([np.zeros((0, 3)), *(f.normal for f in faces)]),
        excluded=may.excluded,
        included=included,
        include_material=include_material,
        materials=materials,
        candidates=_candidates(may, manifolds) if len(shapes) <= MAX_LISTED else None,
        cell=_cell(radius[dynamic[body]]) if len(shapes) else 1.0,
        seams=seams(shapes, tolerance),
        seam_reach=tolerance,
        manifolds=manifolds,
        articulated=articulated,
    )


def _starts(counts: Sequence[int]) -> Array:
    return np.concatenate([[0], np.cumsum(np.array(counts, dtype=np.int64))]).astype(np.int64)


def _com(bodies: Sequence[BodySpec], shape: ShapeSpec) -> Array:
    return np.zeros(3) if shape.body == WORLD else bodies[shape.body].com


def _laws(shapes: Sequence[ShapeSpec], pairs: Sequence[PairSpec]) -> tuple[list[ContactLaw], Array]:
    """Return all contact laws (the default law first), and the index of each shape's law."""
    laws = [ContactLaw()]
    for material in [s.material for s in shapes] + [p.material for p in pairs if p.material is not None]:
        if material.law is not None and material.law not in laws:
            laws.append(material.law)
    return laws, np.array([0 if s.material.law is None else laws.index(s.material.law) for s in shapes], dtype=np.int64)


def _included(
    shapes: Sequence[ShapeSpec], pairs: Sequence[PairSpec], laws: list[ContactLaw]
) -> tuple[list[list[int]], list[list[int]], Array]:
    """Return the shape pairs that collide in spite of the collision groups, and the materials of these pairs."""
    included: list[dict[int, int]] = [{} for _ in shapes]
    materials: list[list[float]] = []
    for pair in pairs:
        if not pair.collide:
            continue
        low, high = sorted((pair.shape_a, pair.shape_b))
        number = -1
        if pair.material is not None:
            number = len(materials)
            materials.append(_material_row(pair.material, laws))
        included[low][high] = number
    order = [sorted(t) for t in included]
    numbers = [[t[k] for k in o] for t, o in zip(included, order, strict=True)]
    return order, numbers, np.array(materials, dtype=np.float64).reshape(-1, MATERIAL_NUMBERS)


def _material_row(m: Material, laws: list[ContactLaw]) -> list[float]:
    law = 0 if m.law is None else laws.index(m.law)
    return [contact_modulus(m, m), float(law)]


def pairs_with_material(pairs: Sequence[PairSpec]) -> list[PairSpec]:
    """Return the shape pairs with a custom contact material, in the order of ``ContactTopology.materials``."""
    return [pair for pair in pairs if pair.collide and pair.material is not None]


def _excluded(shapes: Sequence[ShapeSpec], pairs: Sequence[PairSpec], joints: Sequence[JointSpec]) -> list[set[int]]:
    excluded: list[set[int]] = [set() for _ in shapes]
    for pair in pairs:
        if not pair.collide:
            low, high = sorted((pair.shape_a, pair.shape_b))
            excluded[low].add(high)
    on: dict[int, list[int]] = {}
    for k, s in enumerate(shapes):
        on.setdefault(s.body, []).append(k)
    for one, other in adjacent_bodies(joints, on):
        for a in on.get(one, []):
            for b in on.get(other, []):
                excluded[min(a, b)].add(max(a, b))
    return excluded


class _Filter:
    """Collision filter that decides whether two shapes may touch."""

    def __init__(
        self,
        body: Array,
        dynamic: Array,
        group: Array,
        mask: Array,
        excluded: list[set[int]],
        included: list[list[int]],
    ) -> None:
        self.body, self.dynamic, self.group, self.mask = body, dynamic, group, mask
        self.included = included
        self.excluded = [sorted(s - set(t)) for s, t in zip(excluded, included, strict=True)]

    def __call__(self, a: int, b: int) -> bool:
        """Return whether the filter allows contact between shapes a and b, with a < b."""
        if self.body[a] == self.body[b] or not (self.dynamic[self.body[a]] or self.dynamic[self.body[b]]):
            return False
        if b in self.included[a]:
            return True
        if not (self.group[a] & self.mask[b]) or not (self.group[b] & self.mask[a]):
            return False
        return b not in self.excluded[a]


def _candidates(may: _Filter, manifolds: Array) -> list[list[int]]:
    touchable = [np.array([b for b in range(a + 1, may.body.size) if may(a, b)], int) for a in range(may.body.size)]
    return [b.repeat(np.maximum(manifolds[a], manifolds[b])).tolist() for a, b in enumerate(touchable)]


def _cell(radius: Array) -> float:
    """Return the grid's cell size (m): 2.5 times the largest bounding radius. The few largest shapes do not count."""
    finite = np.sort(radius[np.isfinite(radius)])
    if not finite.size:
        return 1.0
    few = max(4, finite.size // 50)
    return 2.5 * float(finite[max(finite.size - 1 - few, 0)])


def pair_material(a: ShapeSpec, b: ShapeSpec, pair: PairSpec | None = None) -> Material:
    """Return the material of a shape pair: the material that ``pair`` defines, or the combination of both materials.

    Raises:
        ModelError: the materials have different contact laws, and ``pair`` defines no material. The message names both
            shapes.
    """
    if pair is not None and pair.material is not None:
        return pair.material
    return combine(a.material, b.material, f"{a.element} and {b.element}")


def check_laws(
    shapes: Sequence[ShapeSpec], pairs: Sequence[PairSpec], topology: ContactTopology, dynamic: Array
) -> None:
    """Check all shape pairs that can touch. Each pair must have one contact law, and the law must support both shapes.

    Raises:
        ModelError: a shape pair has two contact laws, or its law does not support one of the shapes.
    """
    pair_of = {tuple(sorted((p.shape_a, p.shape_b))): p for p in pairs if p.collide}
    special = {p.shape_a for p in pair_of.values()} | set(np.flatnonzero(topology.law).tolist())
    if not special or topology.laws.shape[0] < 2:
        return
    excluded = [set(x) for x in topology.excluded]
    may = _Filter(topology.body, dynamic, topology.group, topology.mask, excluded, topology.included)
    for a in sorted(special):
        for b in range(len(shapes)):
            low, high = min(a, b), max(a, b)
            if low == high or not may(low, high):
                continue
            material = pair_material(shapes[low], shapes[high], pair_of.get((low, high)))
            wheel = "wheel" in (shapes[low].kind, shapes[high].kind)
            if material.law is not None and material.law.friction == "tire" and not wheel:
                raise validate.fail(
                    f"{shapes[low].element} and {shapes[high].element}",
                    "friction 'tire' needs a wheel, and neither shape is a wheel",
                    "use Tire only in add_shape_wheel, or call exclude_collision_pair for these shapes",
                )
            flat = topology.curvature[low] + topology.curvature[high] == 0.0
            if flat and material.law is not None and _needs_radius(material.law):
                raise validate.fail(
                    f"{shapes[low].element} and {shapes[high].element}",
                    f"{material.law} needs a round shape, and neither shape is round",
                    "give a stiffness for 'hertz' and a patch_radius for 'contensou', or another law for this pair",
                )


def _needs_radius(law: ContactLaw) -> bool:
    """Return whether the force of a contact law depends on the radius of relative curvature."""
    elastic = law.normal == "volumetric" or (law.normal == "hertz" and law.stiffness is None)
    return elastic or (law.friction == "contensou" and law.patch_radius is None)


def capacity_message(count: int, capacity: int, world: int) -> str:
    """Return the error message for a world with more close pairs than its pair buffer can store."""
    return (
        f"world {world}: {count} pairs of shapes are close, but max_pairs = {capacity}; "
        f"the other pairs did not collide; give SolverConfig(max_pairs={int(1.25 * count) + 8})"
    )
