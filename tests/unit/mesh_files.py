from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

#: Corners of the square of edge 2, its triangles, and its texture coordinates (v upward): the whole picture, upright.
SQUARE = np.array([[-1.0, 0.0, -1.0], [1.0, 0.0, -1.0], [1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]])
TRIANGLES = np.array([[0, 1, 2], [0, 2, 3]])
UV = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
QUARTERS = {"ul": (220, 30, 30), "ur": (30, 200, 30), "ll": (30, 30, 220), "lr": (220, 220, 30)}


def picture(size: int = 64) -> np.ndarray:
    rows = [[QUARTERS["ul"], QUARTERS["ur"]], [QUARTERS["ll"], QUARTERS["lr"]]]
    return np.kron(np.array(rows), np.ones((size // 2, size // 2, 1))).astype(np.uint8)


def _save(path: Path) -> None:
    from PIL import Image

    Image.fromarray(picture()).save(path)


def obj_file(folder: Path, *lines: str) -> Path:
    _save(folder / "quarters.png")
    (folder / "square.mtl").write_text("\n".join(("newmtl paint", "map_Kd quarters.png", *lines)) + "\n")
    text = ["mtllib square.mtl", *(f"v {x} {y} {z}" for x, y, z in SQUARE), *(f"vt {u} {v}" for u, v in UV)]
    text += ["vn 0 -1 0", "usemtl paint", *("f " + " ".join(f"{k}/{k}/1" for k in t) for t in TRIANGLES + 1)]
    (folder / "square.obj").write_text("\n".join(text) + "\n")
    return folder / "square.obj"


def glb_file(folder: Path, **material: object) -> Path:
    import trimesh
    from PIL import Image

    paint = trimesh.visual.material.PBRMaterial(**{"baseColorTexture": Image.fromarray(picture()), **material})
    visual = trimesh.visual.TextureVisuals(uv=UV, material=paint)
    mesh = trimesh.Trimesh(SQUARE, TRIANGLES, vertex_normals=[[0.0, -1.0, 0.0]] * 4, visual=visual, process=False)
    mesh.export(folder / "square.glb", include_normals=True)
    return folder / "square.glb"


def dae_file(folder: Path, alpha: float = 1.0) -> Path:
    """DAE (in cm, y up) with a JPEG in the same folder."""
    from PIL import Image

    Image.fromarray(picture()).save(folder / "quarters.jpg", quality=95)
    numbers = [" ".join(map(str, values)) for values in (SQUARE[:, [0, 2, 1]].ravel() * 100.0, UV.ravel())]
    corners = " ".join(f"{k} 0 {k}" for k in TRIANGLES.ravel())
    (folder / "square.dae").write_text(_DAE.format(*numbers, corners, alpha))
    return folder / "square.dae"


TEXTURED: dict[str, Callable[[Path], Path]] = {"obj": obj_file, "glb": glb_file, "dae": dae_file}

_DAE = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="centimeter" meter="0.01"/><up_axis>Z_UP</up_axis></asset>
  <library_images><image id="image"><init_from>quarters.jpg</init_from></image></library_images>
  <library_effects><effect id="effect"><profile_COMMON>
    <newparam sid="surface"><surface type="2D"><init_from>image</init_from></surface></newparam>
    <newparam sid="sampler"><sampler2D><source>surface</source></sampler2D></newparam>
    <technique sid="common"><lambert>
      <diffuse><texture texture="sampler" texcoord="UVMap"/></diffuse>
      <transparent opaque="A_ONE"><color>1 1 1 {3}</color></transparent>
    </lambert></technique></profile_COMMON></effect></library_effects>
  <library_materials><material id="paint"><instance_effect url="#effect"/></material></library_materials>
  <library_geometries><geometry id="square"><mesh>
    <source id="places"><float_array id="places-array" count="12">{0}</float_array><technique_common>
      <accessor source="#places-array" count="4" stride="3"><param name="X" type="float"/>
      <param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
    <source id="normals"><float_array id="normals-array" count="3">0 0 1</float_array><technique_common>
      <accessor source="#normals-array" count="1" stride="3"><param name="X" type="float"/>
      <param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
    <source id="uv"><float_array id="uv-array" count="8">{1}</float_array><technique_common>
      <accessor source="#uv-array" count="4" stride="2"><param name="S" type="float"/>
      <param name="T" type="float"/></accessor></technique_common></source>
    <vertices id="vertices"><input semantic="POSITION" source="#places"/></vertices>
    <triangles material="paint" count="2"><input semantic="VERTEX" source="#vertices" offset="0"/>
      <input semantic="NORMAL" source="#normals" offset="1"/>
      <input semantic="TEXCOORD" source="#uv" offset="2" set="0"/><p>{2}</p></triangles>
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="scene"><node><rotate>1 0 0 90</rotate>
    <instance_geometry url="#square"><bind_material><technique_common><instance_material symbol="paint"
    target="#paint"/></technique_common></bind_material></instance_geometry></node></visual_scene>
  </library_visual_scenes>
  <scene><instance_visual_scene url="#scene"/></scene>
</COLLADA>
"""
