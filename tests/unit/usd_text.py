"""Pieces of USD text for the tests of the importer."""

from __future__ import annotations


def usd(*prims: str, up: str = "Z", meters: float = 1.0, kilograms: float = 1.0, gravity: str = "") -> str:
    """Return a file with a physics scene and the prims under /World."""
    head = f'#usda 1.0\n(\n defaultPrim = "World"\n upAxis = "{up}"\n metersPerUnit = {meters}\n'
    scene = f'def PhysicsScene "scene"\n{{\n{gravity}\n}}\n'
    return f'{head} kilogramsPerUnit = {kilograms}\n)\ndef Xform "World"\n{{\n{scene}' + "\n".join(prims) + "\n}\n"


def prim(kind: str, name: str, *lines: str, apis: str = "", at=None, scale=None, turn=None) -> str:
    """Return a prim with API schemas, position, scale and quaternion (w, x, y, z)."""
    schemas = ", ".join(f'"{api}"' for api in apis.split())
    head = f'def {kind} "{name}"' + (f"\n(\n prepend apiSchemas = [{schemas}]\n)" if apis else "")
    ops = [("translate", "double3", at), ("orient", "quatd", turn), ("scale", "double3", scale)]
    given = [(op, type_, value) for op, type_, value in ops if value is not None]
    places = [f"{type_} xformOp:{op} = {tuple(value)}" for op, type_, value in given]
    order = ", ".join(f'"xformOp:{op}"' for op, _, _ in given)
    return "\n".join([head, "{", *places, f"uniform token[] xformOpOrder = [{order}]", *lines, "}"])


def body(name: str, *lines: str, mass=None, apis: str = "", inertia=None, **where) -> str:
    """Return a rigid body with optional mass and inertia."""
    given = [] if mass is None else [f"float physics:mass = {mass}", "point3f physics:centerOfMass = (0, 0, 0)"]
    if inertia is not None:
        given.append(f"float3 physics:diagonalInertia = {tuple(inertia)}")
    apis = f"PhysicsRigidBodyAPI PhysicsMassAPI {apis}"
    return prim("Xform", name, *given, *lines, apis=apis, **where)


def joint(
    kind: str, name: str, first: str, second: str, *lines: str, apis: str = "", at0=(0, 0, 0), at1=(0, 0, 0)
) -> str:
    ends = [f"rel physics:body{k} = </World/{end}>" for k, end in enumerate((first, second)) if end]
    points = [f"point3f physics:localPos{k} = {tuple(at)}" for k, at in enumerate((at0, at1))]
    return prim(f"Physics{kind}Joint" if kind else "PhysicsJoint", name, *ends, *points, *lines, apis=apis)
