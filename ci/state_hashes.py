"""Write or check hashes of the states of all scenes, to detect whether a refactoring changes results.

    python ci/state_hashes.py --write     # before a change
    python ci/state_hashes.py --check     # after it: lists every case whose bits differ, exit code 1

A case is a scene or the model of :func:`robot`, with a backend, number type, joint solver, scheme and launch mode. Two
worlds with different gravities run 200 steps with the scene's schedule. Piles on the NumPy backend run 10 steps. The
hash covers poses, velocities, impulses, angles, actuator variables, and voids in oil if a model has any. The results of
the NumPy backend depend on the NumPy version and on the processor, so the script compares them only on the type of
machine that wrote the hashes. The results of the kernels are the same on all machines. The exit code is 2 if the script
compared nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import platform
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # not in processes that import this module, because their children would round differently
    # Some scenes compute commands with NumPy, whose AVX-512 functions round differently.
    os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", "X86_V4 AVX512_ICL AVX512_SPR")

import numpy as np  # noqa: E402

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.scene import list_scenes, load_scene

FILE = Path(__file__).parent / "state_hashes.json"
STEPS, HEAP_STEPS = 200, 10
HEAP = 10
"""Number of shapes above which a scene counts as a heap."""
ARRAYS = ("position", "orientation", "linear_velocity", "angular_momentum", "impulse", "angle", "contact_impulse")
ROBOT = "robot"
KERNELS_ALONE = {"card_house", "excavator", "krt100m", "pile", "pyramid", "rattleback", "tippe_top"}
"""Scenes for which NumPy needs minutes, because of many contact pairs."""
Case = tuple[str, str, str, str, str, str]


def robot(ball: bool = True) -> ModelBuilder:
    """Return a model with joints and contacts: two legs with servos and box feet, and a ball rolling against a leg."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    hip = b.add_body(xform=Transform((0, 0, 0.85)), label="hip")
    b.add_shape_box(hip, half_extents=(0.1, 0.2, 0.05))
    for side in (-1, 1):
        shin = b.add_body(xform=Transform((0, 0.15 * side, 0.45)), label=f"shin{side}")
        b.add_shape_capsule(shin, radius=0.04, half_length=0.25)
        foot = b.add_body(xform=Transform((0.03, 0.15 * side, 0.04)), label=f"foot{side}")
        b.add_shape_box(foot, half_extents=(0.12, 0.05, 0.04))
        options: dict[str, Any] = {"axis": (0, 1, 0), "damping": 0.5, "limit_lower": -1.0, "limit_upper": 1.0}
        knee = b.add_joint_revolute(hip, shin, Transform((0, 0.15 * side, -0.05)), Transform((0, 0, 0.35)), **options)
        ankle = b.add_joint_revolute(shin, foot, Transform((0, 0, -0.35)), Transform((-0.03, 0, 0.06)), **options)
        for joint in (knee, ankle):
            b.add_servo(joint, stiffness=300.0, damping=10.0, effort_limit=60.0, target=0.05 * side)
    if ball:
        body = b.add_body(xform=Transform((-0.4, 0.15, 0.08)), linear_velocity=(1.5, 0.0, 0.0), label="ball")
        b.add_shape_sphere(body, radius=0.08)
    return b


def cases() -> Iterator[Case]:
    """Yield the scene, backend, number type, joint solver, scheme and launch of each case."""
    for name in [*sorted(list_scenes()), ROBOT]:
        for dtype in ("float64", "float32"):
            for solver in ("direct", "colored"):
                for launch in ("fused", "staged"):
                    yield name, "native", dtype, solver, "second_order", launch
                if name not in KERNELS_ALONE:
                    yield name, "numpy", dtype, solver, "second_order", ""
        for solver in ("direct", "colored"):
            yield name, "native", "float64", solver, "semi_implicit", "fused"


def state_hash(case: Case) -> str:
    """Return the first 64 bits of the hash of a case's state after its steps."""
    name, backend, dtype, solver, scheme, launch = case
    scene = None if name == ROBOT else load_scene(name)
    config = scene.config if scene else SolverConfig(dt=2e-3)
    config = dataclasses.replace(config, joint_solver=solver, scheme=scheme)
    model = (scene.builder if scene else robot()).finalize()
    steps = HEAP_STEPS if backend == "numpy" and model.shapes and len(model.shapes) > HEAP // 2 else STEPS
    options = {"launch": launch, "threads": 1} if launch else {}
    sim = Simulation(model, 2, backend, dtype, config, **options)  # type: ignore[arg-type]
    sim.write("sim.gravity", np.array([[0.0, 0.0, -9.81], [0.3, -0.2, -9.7]]))
    for k in range(0, steps, 10):
        if scene and scene.schedule is not None:
            scene.schedule(sim, k * config.dt)
        sim.step(min(10, steps - k))
    state, digest = sim.state, hashlib.sha256()
    arrays = {key: state.arrays[key] for key in ARRAYS}
    for group in state.groups:
        present = {key: x for key, x in group.state.items() if key not in group.type.voids or x.any()}
        arrays |= {f"{group.type.name}.{key}": array for key, array in present.items()}
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        if key == "contact_impulse":  # unused entries of the pair buffer are undefined
            array = np.concatenate([array[w, :count].ravel() for w, count in enumerate(state.arrays["pair_count"])])
        digest.update(key.encode() + array.tobytes())
    return digest.hexdigest()[:16]


def machine() -> str:
    """Return the properties of this machine that affect the results of the NumPy backend."""
    return f"numpy {np.__version__}, {platform.machine()}, {platform.python_version_tuple()[1]}"


def main() -> int:
    """Write or check the hashes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--write", action="store_true", help="write the hashes of this checkout")
    parser.add_argument("--check", action="store_true", help="compare with the written hashes")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--backend", default="", help="only cases of this backend")
    args = parser.parse_args()
    if args.write == args.check:
        parser.error("give --write or --check")
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    known = json.loads(FILE.read_text()) if FILE.exists() else {"machine": machine(), "hashes": {}}
    different, compared, skipped, numpys = [], 0, 0, 0
    for case in cases():
        key = " ".join(x for x in case if x)
        if args.only not in key or (args.backend and case[1] != args.backend):
            continue
        if args.check and case[1] == "numpy" and known["machine"] != machine():
            skipped += 1
            continue
        found = state_hash(case)
        if args.write:
            known["hashes"][key] = found
            numpys += case[1] == "numpy"
        compared += 1
        if args.check and known["hashes"].get(key) != found:
            different.append(key)
            print(f"differs: {key}", flush=True)
    if args.write and compared:
        known["machine"] = machine() if numpys else known["machine"]
        FILE.write_text(json.dumps(known, indent=1) + "\n")
    print(f"{compared} cases, {len(different)} differ")
    if skipped:
        print(f"{skipped} cases of numpy skipped: their hashes are those of {known['machine']}, this is {machine()}")
    if not compared + skipped:
        known_words = " ".join(sorted({case[0] for case in cases()}))
        print(f"no case of --only '{args.only}' --backend '{args.backend}'; scenes: {known_words}", file=sys.stderr)
    return 1 if different else 0 if compared else 2


if __name__ == "__main__":
    sys.exit(main())
