"""Option ``--replay``: replay an operator recording."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions
from gpusim.cli.targets import target_parameters
from gpusim.errors import GpusimError
from gpusim.scene import Scene, scene_values

if TYPE_CHECKING:
    from gpusim.simulation import Simulation
    from gpusim.viewer.operator import Operator, OperatorRecording
    from gpusim.viewer.operator.recording import Value


@dataclass(frozen=True)
class Replay:
    """Recorded operator inputs that ``--replay`` repeats.

    Attributes:
        path: path of the file.
        recording: contents of the file.
    """

    path: Path
    recording: OperatorRecording

    @property
    def duration(self) -> float:
        """Simulated duration of the recording (s)."""
        return self.recording.steps * self.recording.dt

    def check(self, options: RunOptions, scene: Scene) -> None:
        """Raise an error if the run cannot replay the recording.

        Raises:
            OptionError: the recording does not fit the command line.
        """
        recording, element = self.recording, f"--replay: {str(self.path)!r}"
        if recording.scene != scene.name:
            made = f"scene {recording.scene!r}" if recording.scene else "a model without a scene"
            raise OptionError(f"{element} was recorded with {made}, and this is {scene.name!r}; give the same scene")
        if recording.time > 0.5 * recording.dt:
            raise OptionError(
                f"{element} begins at {recording.time:g} s, so earlier commands are missing; record again from a reset"
            )
        if not recording.steps:
            raise OptionError(f"{element} ends before its first step; record it again")
        worlds = {len(value) for change in recording.changes.values() for value in change.values() if _is_many(value)}
        if worlds - {options.num_worlds}:
            raise OptionError(f"{element} was recorded with {max(worlds)} worlds; give --num-worlds {max(worlds)}")
        if options.is_file():
            self._check_options(options)
        else:
            self._check_parameters(options)

    def _check_options(self, options: RunOptions) -> None:
        """Check that the options for model files are equal to the options in the recording."""
        here = {name: str(value) for name, value in target_parameters(options).items()}
        then = {name: str(value) for name, value in self.recording.parameters.items()}
        other = [f"{name} {then.get(name)} (here {here.get(name)})" for name in then if then[name] != here.get(name)]
        if other:
            raise OptionError(
                f"--replay: {str(self.path)!r} was recorded with {', '.join(other)}; give the same options"
            )

    def _check_parameters(self, options: RunOptions) -> None:
        try:
            recorded = scene_values(options.target, **self.recording.parameters)
        except GpusimError as error:
            raise OptionError(f"--replay: {str(self.path)!r} does not fit this version of the scene: {error}") from None
        values = scene_values(options.target, **target_parameters(options))
        other = [f"{name}={_word(value)}" for name, value in recorded.items() if value != values[name]]
        if other:
            raise OptionError(
                f"--replay: {str(self.path)!r} was recorded with other parameters; give --set {' --set '.join(other)}"
            )

    def operator(self, sim: Simulation, scene: Scene) -> Operator:
        """Return an operator that replays the recording from the initial state of a simulation.

        Raises:
            ModelError: the step size or the inputs of the simulation differ from the recording.
        """
        from gpusim.viewer.operator import Operator

        operator = Operator(sim, scene)
        operator.replay(self.recording)
        self.compare_solver(sim)
        return operator

    def compare_solver(self, sim: Simulation) -> None:
        """Print a note if solver settings differ from the recording. The replay is then not bit-identical."""
        from gpusim.viewer.operator.recording import solver_of

        here, then = solver_of(sim), self.recording.solver
        other = [name for name, value in here.items() if then.get(name, value) != value]
        if other:
            reported = ", ".join(f"{name} {then[name]} (here {here[name]})" for name in other)
            note(f"--replay: {str(self.path)!r} was recorded with {reported}; this run will not be bit-identical")


def load_replay(options: RunOptions) -> Replay | None:
    """Load the recording of ``--replay``. Return None if the option is not given.

    Raises:
        ModelError: the file cannot be read or is not an operator recording.
    """
    if options.replay is None:
        return None
    from gpusim.viewer.operator import OperatorRecording

    return Replay(options.replay, OperatorRecording.load(options.replay))


def _is_many(value: Value | None) -> TypeGuard[tuple[float, ...]]:
    """Return whether ``value`` has one value per world."""
    return isinstance(value, tuple)


def _word(value: Any) -> str:
    return "none" if value is None else str(value)
