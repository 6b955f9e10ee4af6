"""USD import: colliders, materials, collision groups, filtered pairs and visuals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpusim
from gpusim.description.shape_kinds import shape_type
from gpusim.importers import load_usd
from tests.backends import FASTEST
from tests.unit.usd_text import body, joint, prim, usd

pytest.importorskip("pxr")

COLLIDER = "PhysicsCollisionAPI"
POINTS = "point3f[] points = [(-1, -1, -1), (1, -1, -1), (1, 1, -1), (-1, 1, -1), (0, 0, 1)]"
PYRAMID = (
    POINTS,
    "int[] faceVertexCounts = [4, 3, 3, 3, 3]",
    "int[] faceVertexIndices = [0, 3, 2, 1, 0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4]",
)


def solid(name, *parts, **where):
    return body(name, *parts, mass=1, inertia=(1, 1, 1), **where)


def said(report, words):
    return any(words in finding.sentence for finding in report.findings)


SHAPES = {
    "Cube": (("double size = 0.4",), "box", {"half_extents": (0.2, 0.4, 0.6)}, (1, 2, 3)),
    "Sphere": (("double radius = 0.3",), "sphere", {"radius": 0.6}, (2, 2, 2)),
    "Capsule": (
        ("double radius = 0.1", "double height = 1"),
        "capsule",
        {"radius": 0.2, "half_length": 1.0},
        (2, 2, 2),
    ),
    "Cylinder": (
        ("double radius = 0.1", "double height = 1"),
        "cylinder",
        {"radius": 0.2, "half_length": 1.5},
        (2, 2, 3),
    ),
    "Capsule_1": (
        ("double radiusTop = 0.1", "double radiusBottom = 0.1", "double height = 1"),
        "capsule",
        {"radius": 0.2, "half_length": 1.0},
        (2, 2, 2),
    ),
    "Cylinder_1": (
        ("double radiusTop = 0.1", "double radiusBottom = 0.1", "double height = 1"),
        "cylinder",
        {"radius": 0.2, "half_length": 1.5},
        (2, 2, 3),
    ),
    "Cone": (("double radius = 0.1", "double height = 1"), "cone", {"radius": 0.2, "half_length": 1.5}, (2, 2, 3)),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_basic_shapes_with_their_scales(kind):
    lines, expected, sizes, scale = SHAPES[kind]
    part = prim(kind, "s", *lines, apis=COLLIDER, at=(0.1, 0, 0), scale=scale)
    builder, report = load_usd(usd(solid("a", part, at=(5, 0, 0))))
    shape = builder.shapes[0]
    assert shape.kind == expected and np.allclose(shape.xform.position, (0.1, 0, 0), atol=1e-7)
    for name, value in sizes.items():
        assert np.allclose(shape.params[name], value, rtol=1e-6)
    assert report.exact and not any(f.severity == "contact" for f in report.findings)


@pytest.mark.parametrize("line", ["", "float3 physics:diagonalInertia = (1, 1, 1)"])
def test_a_collider_that_is_left_out_is_missing_in_the_mass(line):
    taper = prim("Capsule_1", "s", "double radiusTop = 0.1", "double radiusBottom = 0.2", apis=COLLIDER)
    weight = ["float physics:mass = 1", "point3f physics:centerOfMass = (0, 0, 0)", line]
    _, report = load_usd(usd(prim("Xform", "a", *weight, taper, apis="PhysicsRigidBodyAPI PhysicsMassAPI")))
    assert report.exact == bool(line)


@pytest.mark.parametrize("axis", "XYZ")
def test_axes_of_round_shapes(axis):
    cone = prim("Cone", "s", f'uniform token axis = "{axis}"', apis=COLLIDER)
    builder, _ = load_usd(usd(solid("a", cone)))
    assert np.allclose(builder.shapes[0].xform.rotate((0, 0, 1)), np.eye(3)["XYZ".index(axis)], atol=1e-12)


@pytest.mark.parametrize("kind", ["Cube", "Cone"])
@pytest.mark.parametrize("static", [False, True])
def test_mirrored_shapes(kind, static):
    part = prim(kind, "s", apis=COLLIDER, scale=(1, 2, -3))
    builder, report = load_usd(usd(part if static else solid("a", part)))
    shape = builder.shapes[0]
    assert report.exact and shape.xform.rotate((0, 0, 1))[2] == pytest.approx(1 if kind == "Cube" else -1)
    if kind == "Cube":
        assert np.allclose(shape.params["half_extents"], (1, 2, 3))


def test_a_static_plane_and_a_tilted_static_box():
    half = math.sqrt(0.5)
    plane = prim("Plane", "ground", 'uniform token axis = "Y"', apis=COLLIDER)
    box = prim("Cube", "box", apis=COLLIDER, at=(0, 0, 1), turn=(half, 0, 0, half), scale=(2, 1, 1))
    builder, _ = load_usd(usd(plane, box), xform=gpusim.Transform((0, 0, 3)))
    ground, tilted = builder.shapes
    assert ground.body == -1 and np.allclose(ground.xform.rotate((0, 0, 1)), (0, 1, 0), atol=1e-12)
    assert np.allclose(tilted.xform.position, (0, 0, 4)) and np.allclose(
        tilted.xform.rotate((1, 0, 0)), (0, 1, 0), atol=1e-7
    )


def mesh(how, *, apis="", scale=None, lines=PYRAMID):
    token = f'uniform token physics:approximation = "{how}"'
    return prim("Mesh", "m", *lines, token, apis=f"{COLLIDER} PhysicsMeshCollisionAPI {apis}", scale=scale)


def test_approximations_of_meshes():
    kinds = {"convexHull": "hull", "none": "hull", "boundingSphere": "sphere", "boundingCube": "box"}
    for how, kind in kinds.items():
        builder, report = load_usd(usd(solid("a", mesh(how, scale=(0.1, 0.1, 0.1)))))
        shape = builder.shapes[0]
        assert shape.kind == kind and not said(report, "convex hull")
        if kind == "sphere":
            assert shape.params["radius"] == pytest.approx(0.1 * math.sqrt(3))
        if kind == "box":
            assert np.allclose(shape.params["half_extents"], 0.1)


def concave():
    """Return the lines of an L-shaped prism."""
    outline = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
    points = ", ".join(f"({x}, {y}, {z})" for z in (0, 1) for x, y in outline)
    sides = [(k, (k + 1) % 6, (k + 1) % 6 + 6, k + 6) for k in range(6)]
    flats = [(0, 2, 1), (0, 3, 2), (0, 4, 3), (0, 5, 4), (6, 7, 8), (6, 8, 9), (6, 9, 10), (6, 10, 11)]
    counts = [4] * 6 + [3] * 8
    indices = [k for face in (*sides, *flats) for k in face]
    return (
        f"point3f[] points = [{points}]",
        f"int[] faceVertexCounts = {counts}",
        f"int[] faceVertexIndices = {indices}",
    )


def test_a_concave_mesh_is_its_hull_with_a_finding_and_its_own_mass():
    text = usd(body("a", mesh("none", lines=concave())))
    builder, report = load_usd(text)
    assert said(report, "it collides as its convex hull") and report.exact
    assert builder.bodies[0].mass == pytest.approx(3000.0, rel=1e-6)
    assert np.allclose(builder.bodies[0].com, (5 / 6, 5 / 6, 0.5), atol=1e-6)


def test_a_concave_mesh_can_be_decomposed():
    pytest.importorskip("coacd")
    builder, report = load_usd(usd(body("a", mesh("none", lines=concave()))), meshes="decompose")
    volumes = [shape_type(s.kind).volume(s.params) for s in builder.shapes]
    assert len(volumes) >= 2 and sum(volumes) == pytest.approx(3.0, rel=0.05)
    assert not any(finding.severity == "contact" for finding in report.findings)


def test_materials_of_physics():
    lines = [
        "float physics:staticFriction = 0.9",
        "float physics:dynamicFriction = 0.7",
        "float physics:restitution = 0.4",
    ]
    mode = 'uniform token physxMaterial:frictionCombineMode = "min"'
    stuff = prim("Material", "stuff", *lines, mode, apis="PhysicsMaterialAPI PhysxMaterialAPI")
    bound = "rel material:binding:physics = </World/stuff>"
    builder, report = load_usd(
        usd(stuff, solid("a", prim("Sphere", "s", bound, apis=f"{COLLIDER} MaterialBindingAPI")))
    )
    material = builder.shapes[0].material
    assert (material.friction, material.restitution, material.combine) == pytest.approx((0.7, 0.4, "min"))
    assert said(report, "static friction 0.9 and dynamic friction 0.7 differ")


def ball(name, x):
    return solid(name, prim("Sphere", "s", "double radius = 0.1", apis=COLLIDER), at=(x, 0, 0))


def colliding(builder):
    """Return the pairs of labels of bodies whose shapes may collide."""
    model = builder.finalize()
    names = [builder.body_label(shape.body) for shape in builder.shapes]
    from gpusim.builder.collision_groups import shapes_with_bits

    shapes = shapes_with_bits(builder.shapes, builder.group_rules)
    excluded = {frozenset((p.shape_a, p.shape_b)) for p in model.pairs if not p.collide}
    found = set()
    for i, a in enumerate(shapes):
        for k, c in enumerate(shapes[:i]):
            if a.group & c.mask and c.group & a.mask and frozenset((i, k)) not in excluded:
                found.add("".join(sorted((names[i], names[k]))))
    return found


def group(name, members, others="", *lines):
    def paths(names):
        return "[" + ", ".join(f"</World/{n}>" for n in names.split()) + "]"

    rels = [f"rel collection:colliders:includes = {paths(members)}"]
    rels += [f"rel physics:filteredGroups = {paths(others)}"] if others else []
    return prim("PhysicsCollisionGroup", name, *rels, *lines, apis="CollectionAPI:colliders")


def test_collision_groups_and_filtered_pairs():
    balls = [ball(name, k) for k, name in enumerate("abcd")]
    assert colliding(load_usd(usd(*balls))[0]) == {"ab", "ac", "ad", "bc", "bd", "cd"}
    grouped = usd(*balls, group("g", "a b", "g"), group("h", "c", "g"))
    assert colliding(load_usd(grouped)[0]) == {"ad", "bd", "cd"}
    inverted = usd(*balls, group("g", "a", "h", "bool physics:invertFilteredGroups = 1"), group("h", "c"))
    assert "ac" in colliding(load_usd(inverted)[0])
    filtered = ball("e", 9).replace("{", "{\nrel physics:filteredPairs = </World/a>", 1)
    filtered = filtered.replace('"PhysicsRigidBodyAPI"', '"PhysicsRigidBodyAPI", "PhysicsFilteredPairsAPI"')
    assert colliding(load_usd(usd(*balls[:2], filtered))[0]) == {"ab", "be"}


@pytest.mark.parametrize("collides", [False, True])
def test_a_hinge_excludes_the_static_collider_that_carries_it(collides):
    post, floor = (prim("Cube", name, apis="PhysicsCollisionAPI") for name in ("post", "floor"))
    line = f"bool physics:collisionEnabled = {int(collides)}"
    text = usd(post, floor, ball("a", 0), joint("Revolute", "pin", "post", "a", line))
    builder, _ = load_usd(text)
    labels = [shape.label for shape in builder.shapes]
    apart = [{labels[pair.shape_a], labels[pair.shape_b]} for pair in builder.pairs if not pair.collide]
    assert apart == ([] if collides else [{"post", "s"}])


def robot(*lines):
    links = [ball(name, 0.5 * k) for k, name in enumerate("abc")]
    pins = [joint("Revolute", f"j{k}", "abc"[k], "abc"[k + 1], at0=(0.5, 0, 0)) for k in range(2)]
    return usd(
        prim("Xform", "robot", *lines, *links, *pins, apis="PhysicsArticulationRootAPI").replace(
            "/World/", "/World/robot/"
        )
    )


def test_self_collisions_of_articulations():
    off = "bool physxArticulation:enabledSelfCollisions = 0"
    assert "ac" in colliding(load_usd(robot())[0])
    assert colliding(load_usd(robot(off))[0]) == set()
    assert colliding(load_usd(robot(), self_collisions=False)[0]) == set()
    assert "ac" in colliding(load_usd(robot(off), self_collisions=True)[0])
    assert not load_usd(robot(), collisions=False)[0].shapes


@pytest.mark.parametrize("place", ["shader", "material", "graph", "texture"])
def test_visuals_respect_purpose_visibility_and_colors(place):
    red, paint = "color3f[] primvars:displayColor = [(1, 0, 0)]", "rel material:binding = </World/paint>"
    sources = {"shader": "", "material": ".inputs:tint", "graph": "/g.outputs:tint", "texture": "/t.outputs:rgb"}
    source = sources[place]
    shader = prim(
        "Shader",
        "s",
        'uniform token info:id = "UsdPreviewSurface"',
        "color3f inputs:diffuseColor" + (f".connect = </World/paint{source}>" if source else " = (0, 0.5, 0)"),
        "token outputs:surface",
    )
    image = prim("Shader", "t", 'uniform token info:id = "UsdUVTexture"', "float3 outputs:rgb")
    graph = prim(
        "NodeGraph",
        "g",
        "color3f inputs:tint.connect = </World/paint.inputs:tint>",
        "color3f outputs:tint.connect = </World/paint/g.inputs:tint>",
    )
    surface = "token outputs:surface.connect = </World/paint/s.outputs:surface>"
    material = prim("Material", "paint", "color3f inputs:tint = (0, 0.5, 0)", surface, shader, image, graph)
    parts = [
        prim("Cube", "shown", red, at=(1, 0, 0)),
        prim("Cube", "hidden", 'token visibility = "invisible"'),
        prim("Cube", "guide", 'uniform token purpose = "guide"', apis=COLLIDER),
        prim("Mesh", "painted", *PYRAMID, paint, apis="MaterialBindingAPI"),
    ]
    builder, report = load_usd(usd(material, solid("a", *parts)))
    cube, pyramid = builder.visuals
    assert cube.kind == "box" and cube.color == (1.0, 0.0, 0.0) and np.allclose(cube.xform.position, (1, 0, 0))
    piece = pyramid.params["pieces"][0]
    textured = place == "texture"
    assert piece.closed and (piece.color == pytest.approx((0.0, 0.7354, 0.0), abs=1e-3)) != textured
    assert any("has a texture" in warning for warning in report.warnings) == textured
    assert report.triangles == 12 + 6 and len(builder.shapes) == 1
    assert not load_usd(usd(material, solid("a", *parts)), visuals=False)[0].visuals


def test_a_visible_basic_collider_colors_its_own_shape():
    blue = "color3f[] primvars:displayColor = [(0, 0, 1)]"
    builder, _ = load_usd(usd(solid("a", prim("Cube", "c", blue, apis=COLLIDER))))
    assert not builder.visuals and builder.shapes[0].color == (0.0, 0.0, 1.0)


def test_left_handed_and_mirrored_meshes_face_outward():
    left = prim("Mesh", "m", *PYRAMID, 'uniform token orientation = "leftHanded"')
    mirrored = prim("Mesh", "m", *PYRAMID, scale=(-1, 1, 1))
    for part in (left, mirrored):
        piece = load_usd(usd(solid("a", part)))[0].visuals[0].params["pieces"][0]
        a, b, c = (piece.vertices[piece.triangles[:, k]] for k in range(3))
        assert np.einsum("ij,ij->", a, np.cross(b, c)) > 0


def test_broken_colliders_are_left_out_with_a_finding():
    flat = mesh("convexHull", lines=("point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]", *PYRAMID[1:]))
    plane = solid("b", prim("Plane", "p", apis=COLLIDER))
    builder, report = load_usd(usd(solid("a", flat), plane))
    assert not builder.shapes
    assert sum(finding.severity == "contact" for finding in report.findings) == 2


@pytest.mark.nightly
def test_static_meshes_collide_as_triangles():
    pit = """def Mesh "pit" ( prepend apiSchemas = ["PhysicsCollisionAPI"] )
    {
        point3f[] points = [(-2,-2,0), (2,-2,0), (2,2,0), (-2,2,0), (0,0,-1)]
        int[] faceVertexCounts = [3, 3, 3, 3]
        int[] faceVertexIndices = [0,1,4, 1,2,4, 2,3,4, 3,0,4]
    }
    def Sphere "ball" ( prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"] )
    {
        double radius = 0.2
        double3 xformOp:translate = (0, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }"""
    builder, report = load_usd('#usda 1.0\n( metersPerUnit = 1\n upAxis = "Z" )\ndef PhysicsScene "s" {}\n' + pit)
    assert [shape.kind for shape in builder.shapes] == ["triangle_mesh", "sphere"] and not report.findings
    sim = gpusim.Simulation(builder.finalize(), backend=FASTEST, config=gpusim.SolverConfig(dt=5e-3))
    sim.step(300)
    # It touches all four faces, whose normals have a vertical part of 2/sqrt(5).
    height = -1.0 + 0.2 * np.sqrt(5.0) / 2.0
    assert np.allclose(sim.read("body.ball.position"), (0, 0, height), atol=1e-3)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("float newton:contactGap = 0", ""),
        ("float newton:contactGap = -inf", ""),
        ("float newton:contactGap = 0.01", "newton:contactGap = 0.01 is not used"),
        ("uniform double[] mjc:solref = [0.02, 1]", ""),
        ("uniform double[] mjc:solref = [0.05, 1]", "contacts are rigid"),
        ("float physxLimit:angular:stiffness = 0", ""),
        ("float physxRigidBody:maxLinearVelocity = inf", ""),
        ("float physxRigidBody:maxLinearVelocity = 0", "speeds are not limited"),
        ("bool physxRigidBody:enableGyroscopicForces = 0", "gyroscopic torques always act"),
        ("token mjc:other = '0'", "mjc:other = '0' is not used; it is not read"),
    ],
)
def test_values_without_effect_are_no_findings(line, said):
    _, report = load_usd(usd(solid("a", prim("Sphere", "s", line, apis=COLLIDER))))
    found = [f.sentence for f in report.findings if f.element == "prim 's'"]
    assert (said in found[0] and found[0].count("not used") <= 1) if said else not found


def test_prims_with_the_same_unread_attribute_share_a_finding():
    line = "float newton:contactGap = 0.01"
    spheres = "\n".join(prim("Sphere", name, line, apis=COLLIDER) for name in "stuvw")
    _, report = load_usd(usd(solid("a", spheres)))
    (found,) = (f.sentence for f in report.findings if "contactGap" in f.what)
    assert found == "5 prims 's', 't', 'u' and 2 more: newton:contactGap = 0.01 is not used"


def test_attributes_with_the_same_effect_share_a_finding():
    lines = "float physxRigidBody:maxLinearVelocity = 5\nfloat physxRigidBody:maxAngularVelocity = 7"
    _, report = load_usd(usd(solid("a", prim("Sphere", "s", lines, apis=COLLIDER))))
    what = "physxRigidBody:maxAngularVelocity = 7, physxRigidBody:maxLinearVelocity = 5 are not used"
    assert [f.sentence for f in report.findings] == [f"prim 's': {what}; speeds are not limited"]


def test_sheared_colliders_are_reported():
    turn = (math.cos(0.4), 0, 0, math.sin(0.4))
    for scale, sheared in (((1, 2, 1), True), ((2, 2, 1), False)):
        box = body("a", prim("Cube", "c", apis=COLLIDER, turn=turn), scale=scale)
        _, report = load_usd(usd(box))
        assert ("collider '/World/a/c': is sheared" in report.summary()) is sheared


def test_poses_without_a_default_value_are_reported():
    moved = solid("a", at=(0, 0, 5)).replace("translate = (0, 0, 5)", "translate.timeSamples = {0: (0, 0, 5)}")
    _, report = load_usd(usd(moved))
    (found,) = (f for f in report.findings if f.severity == "motion")
    assert found.sentence == "prim 'a': only time samples, without a default value; they are not read; " + found.fix
