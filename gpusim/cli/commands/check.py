"""``gpusim check``: report lost features and likely model errors, run the model, and compare it with MuJoCo."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpusim.cli.exit_codes import DONE, FAILED, OptionError, exit_code, sentence
from gpusim.cli.options import RunOptions, check
from gpusim.cli.summary import joint_failure
from gpusim.cli.target_files import MODEL
from gpusim.cli.targets import load_target
from gpusim.errors import GpusimError
from gpusim.output_files import finite_json

if TYPE_CHECKING:
    from gpusim.importers import Finding, ImportReport
    from gpusim.lint import Comparison
    from gpusim.scene import Scene

SECONDS = 2.0
"""Simulated time of the run, s."""
_WALL = 60.0
"""Maximum wall time of the run, s."""
_ACTS = ("motion", "contact")
"""A strict check fails if a finding has one of these severities."""
_MAX_LINES = 20


@dataclass(frozen=True)
class CheckOptions:
    """Options of the command ``gpusim check``."""

    run: RunOptions
    strict: bool = False
    json: bool = False
    against: str | None = None


@dataclass
class Run:
    """Result of the run: simulated time (s), joint errors ``gap`` (m) and ``tilt`` (rad), failures and warnings."""

    time: float = 0.0
    steps: int = 0
    dt: float = 0.0
    gap: float = 0.0
    tilt: float = 0.0
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass
class CheckResult:
    """Result of all parts of a check."""

    target: str
    strict: bool
    report: ImportReport | None
    lint: Sequence[Finding]
    run: Run
    comparison: Comparison | None

    @property
    def failures(self) -> list[str]:
        """Return the reasons why the model fails the check, as text."""
        found = [*self.run.failures, *(self.comparison.failures if self.comparison else ())]
        if self.strict:
            found += [f.sentence for f in [*self.imported, *self.lint] if f.severity in _ACTS]
            if self.comparison is not None and self.comparison.poses is None:
                found += [f"not compared with MuJoCo: {text}" for text in self.comparison.skipped]
        return found

    @property
    def imported(self) -> Sequence[Finding]:
        """Return the problems that the import found."""
        return [] if self.report is None else self.report.findings

    @property
    def verdict(self) -> str:
        """Return a text such as "fine, no findings" or "failed, 3 findings"."""
        count = len(self.imported) + len(self.lint)
        findings = f"{count} finding{'s' * (count != 1)}" if count else "no findings"
        return f"{'failed' if self.failures else 'fine'}, {findings}"


def check_target(options: CheckOptions) -> int:
    """Run the command ``gpusim check`` for one file. Return 0 if the check passed, or 1 if it failed.

    Raises:
        GpusimError: the file cannot be read, or an option is invalid.
    """
    result = _examine(options)
    print(_json(_content(result)) if options.json else "\n".join(_lines(result)))
    return FAILED if result.failures else DONE


def check_targets(options: Sequence[CheckOptions]) -> int:
    """Run the command ``gpusim check`` for several files. Return the highest exit code."""
    codes, contents = [], []
    for each in options:
        try:
            result = _examine(each)
        except (GpusimError, OSError) as error:
            codes.append(exit_code(error))
            contents.append({"target": each.run.target, "error": sentence(error)})
            print(f"gpusim: {sentence(error)}", file=sys.stderr)
            continue
        codes.append(FAILED if result.failures else DONE)
        contents.append(_content(result))
        if not each.json:
            print("\n".join(_lines(result)), flush=True)
    if options[0].json:
        print(_json(contents))
    return max(codes)


def _examine(options: CheckOptions) -> CheckResult:
    """Check the options, and return the result of :func:`examine`."""
    check(options.run)
    if options.against not in (None, "mujoco"):
        raise OptionError(f"--against {options.against!r} is unknown; give mujoco")
    if options.against and options.run.kind() != MODEL:
        raise OptionError(
            f"--against is for model files, and {options.run.target!r} is not a model file; drop the option"
        )
    return examine(options)


def examine(options: CheckOptions) -> CheckResult:
    """Load, lint and run a model. With ``against``, also compare the model with MuJoCo.

    Raises:
        GpusimError: the file cannot be read.
    """
    from gpusim.importers.report import combined
    from gpusim.lint import check_model, compare_with_mujoco

    reports: list[ImportReport] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scene = load_target(options.run, visuals=True, reports=reports)
        report = combined(reports)
        lint = check_model(scene.builder, report, dt=scene.config.dt)
        run, fell = _run(options.run, scene, lint)
    texts = dict.fromkeys(" ".join(str(w.message).split()) for w in caught if issubclass(w.category, UserWarning))
    run.warnings = list(texts)
    comparison = compare_with_mujoco(options.run.target) if options.against else None
    return CheckResult(options.run.target, options.strict, report, [*lint, *fell], run, comparison)


def _run(options: RunOptions, scene: Scene, lint: Sequence[Finding]) -> tuple[Run, Sequence[Finding]]:
    """Run the scene for at most ``SECONDS`` of simulated time and ``_WALL`` seconds of wall time."""
    from gpusim.lint import fallen
    from gpusim.recording.plots import check_plots
    from gpusim.simulation import Simulation

    sim = Simulation(scene.builder.finalize(), backend=options.backend, config=scene.config)  # type: ignore[arg-type]
    if options.start_pose() is not None:
        sim.reset(pose=options.start_pose())
    sim.runtime.falls.stop()  # ``fallen`` reports falling bodies
    found, steps, start = Run(dt=sim.config.dt), round(SECONDS / sim.config.dt), time.perf_counter()
    try:
        check_plots(scene.plots, sim.signals())
        while found.steps < steps and time.perf_counter() - start < _WALL and sim.health().all():
            if scene.schedule is not None:
                scene.schedule(sim, sim.time)
            sim.step()
            found.steps += 1
    except GpusimError as error:
        found.failures.append(str(error))
    found.time = sim.time
    found.gap, found.tilt = (float(sim.read(f"sim.joint_{e}_peak", numpy=True).max()) for e in ("drift", "tilt"))
    if not sim.health().all():
        found.failures += sim.health_report().splitlines()[:1]
    elif wrong := joint_failure(found.gap, found.tilt):
        found.failures.append(f"{wrong}, or see lint above")
    return found, fallen(scene.builder, sim, lint)


def _lines(result: CheckResult) -> list[str]:
    """Return the result as text: the verdict, then a section for each part of the check."""
    lines = [f"{result.target}: {result.verdict}"]
    if result.report is not None:
        lines += _section("import", result.imported, "nothing was lost")
    lines += _section("lint", result.lint, "nothing suspicious")
    run = result.run
    verdict = "failed" if run.failures else "fine"
    what = f"{run.time:.4g} s in {run.steps} steps of {run.dt:g} s"
    lines.append(f"run: {verdict}, {what}, joints within {run.gap:.2g} m and {run.tilt:.2g} rad")
    lines += [f"  {text}" for text in [*run.failures, *run.warnings][:_MAX_LINES]]
    if result.comparison is not None:
        lines += _compared(result.comparison)
    return lines


def _section(name: str, findings: Sequence[Finding], empty: str) -> list[str]:
    from gpusim.importers.report import SEVERITIES, merge_similar_sentences

    if not findings:
        return [f"{name}: {empty}"]
    counts = {s: sum(f.severity == s for f in findings) for s in SEVERITIES}
    words = {"motion": "act on the motion", "contact": "on contacts", "look": "on looks", "info": "for information"}
    lines = [f"{name}: " + ", ".join(f"{count} {words[s]}" for s, count in counts.items() if count)]
    for severity in SEVERITIES:
        sentences = merge_similar_sentences(f.sentence for f in findings if f.severity == severity)
        lines += [f"  {severity}: {sentence}" for sentence in sentences[:_MAX_LINES]]
        if len(sentences) > _MAX_LINES:
            lines.append(f"  {severity}: and {len(sentences) - _MAX_LINES} more; --json lists all")
    return lines


def _compared(found: Comparison) -> list[str]:
    parts = [("poses", found.poses), ("mass matrix", found.mass_matrix), ("motion", found.motion)]
    numbers = [f"{name} within {value:.2g}" for name, value in parts if value is not None]
    verdict = "different" if found.failures else "equal" if numbers else "not compared"
    lines = [f"against mujoco: {verdict}, {', '.join([f'{found.bodies} bodies', *numbers])}"]
    return [*lines, *(f"  {text}" for text in found.failures), *(f"  skipped {text}" for text in found.skipped)]


def _json(content: Any) -> str:
    return json.dumps(finite_json(content), indent=2)


def _content(result: CheckResult) -> dict[str, Any]:
    return {
        "target": result.target,
        "verdict": result.verdict,
        "failures": result.failures,
        "import": None if result.report is None else json.loads(result.report.json()),
        "lint": [dataclasses.asdict(finding) for finding in result.lint],
        "run": dataclasses.asdict(result.run),
        "against": None if result.comparison is None else dataclasses.asdict(result.comparison),
    }
