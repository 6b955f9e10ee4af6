"""Insert one fault at a time into the code, and check that a test fails: ``python ci/mutants.py [--only NAME]``.

The script works in a temporary copy of the checkout. Each mutant (a deliberate fault) names a test that must fail with
the mutant, and pass without it. The exit code is 1 if the test of a mutant passes (the mutant survives), and 2 if a
mutant cannot run. The cache keeps the kernels of mutants.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
IGNORED = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", "*.npz", ".venv*", "venv", "build", "dist")
CYLINDER, CYLINDERS = "gpusim/actuators/hydraulic/hydraulic_cylinder.py", "tests/unit/test_motors_and_cylinders.py"
CYLINDER_KERNEL = "cuda_kernels/actuators/hydraulic_cylinder.cuh"
HYDRAULICS_KERNEL = "cuda_kernels/actuators/hydraulics.cuh"


@dataclass(frozen=True)
class Mutant:
    """Deliberate fault, with the test file and the ``-k`` filter of the test that must fail.

    Each change contains a file, a text that occurs once in this file, and the replacement of the text.
    """

    name: str
    changes: tuple[tuple[str, str, str], ...]
    tests: str
    chosen: str


MUTANTS = (
    Mutant("slides turn without Coriolis", (
        ("gpusim/control/blocks/inverse_dynamics.py", "vectors.scaled(t, 2.0, coriolis)", "coriolis"),
    ), "tests/unit/control/test_inverse_dynamics.py", "of_the_tree"),
    Mutant("chains without what is welded from outside", (
        ("gpusim/control/chains.py", "in (ends, ends[::-1]):", "in (ends,):"),
    ), "tests/unit/control/test_inverse_dynamics.py", "of_the_tree"),
    Mutant("stops fill integrators", (
        ("gpusim/signals/delays.py", "(held, held & ~np.array(self.integrates, bool))", "(held, held)"),
    ), "tests/unit/test_integrators.py", "emergency_stop and numpy"),
    Mutant("muscles without stiffness", (
        ("cuda_kernels/actuators/muscle.cuh", "law.ahead = (law.semi_implicit", "law.ahead = 0.0 * (law.semi_implicit"),
    ), "tests/unit/test_muscles.py", "springs_at_any and native"),
    Mutant("no hose at chamber A", (
        ("gpusim/actuators/hydraulic/hydraulics.py", '* x) / bulk + p["hose_volume_a"] / hose', "* x) / bulk"),
        (CYLINDER_KERNEL, "* x) / bulk + w.cylinder_hose_volume_a(k) / hose", "* x) / bulk"),
    ), CYLINDERS, "hose and numpy"),
    Mutant("no end cushions", (
        (CYLINDER, "impulse += np.where(inside, law[0], 0.0)", "impulse += 0.0"),
        (HYDRAULICS_KERNEL, "*impulse += more_impulse", "*impulse += 0.0"),
    ), CYLINDERS, "cushion and numpy"),
    Mutant("oil and geometry drift apart", ((CYLINDER, "VOLUME_SYNC = 0.1", "VOLUME_SYNC = 0.0"),),
           CYLINDERS, "shut_oil and numpy"),
    Mutant("pipe-break valves open as fast as they shut", (
        ("gpusim/actuators/hydraulic/circuit.py", "np.where(target > poppet, opening, closing)", "closing"),
        ("cuda_kernels/actuators/circuit.cuh", "target > poppet ? w.oil_edge_opening_time(n) : ", ""),
    ), "tests/analytic/test_circuits.py", "stays_shut"),
    Mutant("stale factors stay", (("gpusim/reference/solve/direct_solve.py", "STALE = 0.2", "STALE = 1e300"),),
           CYLINDERS, "opens_within and numpy"),
    Mutant("no least-index rule", (
        ("gpusim/reference/solve/direct_solve.py", "CAREFUL_AFTER = 4", "CAREFUL_AFTER = 10**9"),
    ), "tests/unit/test_joint_limits.py", "ropes and numpy"),
    Mutant("rate before a bounce kept", (
        ("gpusim/reference/solve/relax.py",
         'state["axis_velocity_before"][bounced] = state["axis_velocity"][bounced]', "pass"),
    ), "tests/analytic/test_limit_impacts.py", "rattles and numpy"),
    Mutant("rate before a bounce kept in kernels", (
        ("cuda_kernels/solve/relax.cuh", "w.axis_velocity_before()[k] = w.axis_velocity()[k];", ";"),
    ), "tests/analytic/test_limit_impacts.py", "rattles and native"),
    Mutant("no bias of wrapped ropes", (
        ("gpusim/reference/joints/curvature.py", "= rate.astype(w.real), 0.0", "= 0.0, 0.0"),
    ), "tests/unit/test_wrapped_ropes.py", "unwinds and direct"),
    Mutant("no bias of wrapped ropes in kernels", (
        ("cuda_kernels/joints/curvature.cuh", "return real(rate - line_rate", "return real(0.5 * rate - line_rate"),
    ), "tests/unit/test_wrapped_ropes.py", "second_order and sphere"),
    Mutant("no conjugate gradients", (
        ("gpusim/reference/contacts/search_direction.py",
         "np.where(square < STEADY * self._before,", "np.where(square < 0.0,"),
        ("cuda_kernels/contacts/contact_solve.cuh",
         "sum < STEADY * before ? real(sum / before)", "false ? real(sum / before)"),
    ), "tests/unit/contact/test_sweeps.py", "tower"),
    Mutant("manifolds colored in the order of the list", (
        ("gpusim/reference/contacts/contact_coloring.py",
         "    mask = (1 << bits) - 1\n", "    return k\n    mask = 0\n"),
    ), "tests/unit/contact/test_coloring.py", "neighbors"),
    Mutant("no caution in inverse kinematics", (
        ("gpusim/robotics/steps.py", "MAX_CAUTION = 2.0", "MAX_CAUTION = 1.0"),
    ), "tests/unit/robotics/test_ik.py", "out_of_reach"),
    Mutant("kept rows pull for nothing", (
        ("gpusim/robotics/steps.py", "KEPT_CURVATURE = 0.25", "KEPT_CURVATURE = 0.0"),
    ), "tests/unit/robotics/test_ik.py", "swing"),
    Mutant("later priorities take what they want", (
        ("gpusim/robotics/steps.py", "scale * np.sqrt(leak_scale)", "scale * np.ones_like(leak_scale)"),
    ), "tests/unit/robotics/test_ik.py", "costs_no_earlier"),
    Mutant("limits by steps alone", (
        (
            "gpusim/robotics/steps.py",
            "free = self.layout.moves & ~at_limit",
            "free = self.layout.moves & (at_limit | ~at_limit)",
        ),
    ), "tests/unit/robotics/test_ik.py", "bounded"),
    Mutant("axes of a joint walked backwards stay", (
        ("gpusim/robotics/kinematics.py", "node.motions[index:] if node.reverse", "[] if node.reverse"),
    ), "tests/unit/robotics/test_derivatives.py", "work_that_energy"),
    Mutant("overlaps stay", (("gpusim/contact/constants.py", "PUSH_SHARE = 0.2", "PUSH_SHARE = 0.0"),),
           "tests/analytic/contact/test_overlap.py", "taken_back and sphere-sphere"),
    Mutant("dampers of first order", (
        ("gpusim/description/actuator_kinds.py", "= 9.0 / 16.0, 6.0 / 16.0, 1.0 / 16.0", "= 1.0, 0.0, 0.0"),
    ), CYLINDERS, "exponentially"),
    Mutant("friction that pushes", (
        ("gpusim/reference/joints/laws.py", "(contact == SLIDE_UP)\n            impulse = impulse + sign",
         "(contact == SLIDE_UP)\n            impulse = impulse - sign"),
    ), "tests/unit/test_random_machines.py", "gains_energy and numpy"),
    Mutant("half of the curvature", (
        ("gpusim/reference/joints/curvature.py", "FULL_BIAS_BELOW = 0.5", "FULL_BIAS_BELOW = 0.005"),
    ), "tests/scenes/test_checks.py", "fulfills and four_bar"),
    Mutant("only the last drive counts", (
        ("gpusim/signals/elements/joint_signals.py", "+= np.sum(w.term_forces", "= np.sum(w.term_forces"),
    ), CYLINDERS, "share_its_axis"),
)  # fmt: skip


def copy_of_checkout(folder: Path) -> Path:
    """Copy the checkout, including links, into ``folder``."""
    return Path(shutil.copytree(ROOT, folder / "checkout", symlinks=True, ignore=IGNORED))


def mutate(copy: Path, mutant: Mutant) -> None:
    """Make the changes in the copy.

    Raises:
        ValueError: a text does not occur exactly once in its file.
    """
    for name, old, new in mutant.changes:
        text = (copy / name).read_text("utf-8")
        if text.count(old) != 1:
            raise ValueError(
                f"{mutant.name}: {name} has {text.count(old)} times {old!r}; choose a text that occurs once"
            )
        (copy / name).write_text(text.replace(old, new), "utf-8")


def run_tests(copy: Path, mutant: Mutant) -> int:
    """Return pytest's exit code for the tests that the mutant names."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.tests, "-k", mutant.chosen]
    # One process: workers take longer to start than the few tests to run.
    options = f"{os.environ.get('PYTEST_ADDOPTS', '')} -n0".strip()
    settings = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": options}
    environment = {**os.environ, **settings}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    # A skipped test, or a kernel that does not compile, does not count as a failure of the test.
    ran = (" failed" if done.returncode else " passed") in done.stdout and "does not compile" not in done.stdout
    return done.returncode if ran else 3


def judge(copy: Path, mutant: Mutant) -> str:
    """Run a mutant, and restore the copy. Return "killed", "SURVIVED", or the reason why the mutant cannot run."""
    if code := run_tests(copy, mutant):
        return f"NOT TRIED: its tests end with {code} without it"
    try:
        mutate(copy, mutant)
        code = run_tests(copy, mutant)
    except ValueError as error:
        return f"NOT TRIED: {error}"
    finally:
        for name, _, _ in mutant.changes:
            shutil.copy2(ROOT / name, copy / name)
    return {0: "SURVIVED", 1: "killed"}.get(code, f"NOT TRIED: pytest ended with {code}")


def main(arguments: list[str] | None = None) -> int:
    """Run the mutants. Return 0 if all are killed, 1 if one survived, 2 if one could not run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--only", choices=[m.name for m in MUTANTS], metavar="NAME", help="try this one")
    options = parser.parse_args(arguments)
    chosen = [m for m in MUTANTS if options.only in (None, m.name)]
    if options.list:
        print("\n".join(f"{m.name}: {m.tests} -k '{m.chosen}'" for m in chosen))
        return 0
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = copy_of_checkout(Path(folder))
        for mutant in chosen:
            start = time.perf_counter()
            verdicts.append(judge(copy, mutant))
            print(f"{mutant.name:45} {time.perf_counter() - start:6.0f} s  {verdicts[-1]}", flush=True)
    return 1 if "SURVIVED" in verdicts else 2 if any(v != "killed" for v in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
