"""Rollouts: many steps with given commands and recorded signals."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import is_on_device
from gpusim.description.step_plan import StepPlan
from gpusim.signals.observe import Command, Observation, chosen_commands
from gpusim.signals.program_loop import samplings
from gpusim.signals.runtime import Runtime

_FUNCTION = "Simulation.rollout"


class Rollouts(ABC):
    """Part of Simulation that runs many steps in one call."""

    runtime: Runtime

    @abstractmethod
    def step(self, n: int = 1, dt: float | None = None) -> None:
        """Advance all worlds by ``n`` steps."""

    def rollout(
        self, steps: int, commands: Mapping[str, Any] | None = None, *, record: str | Sequence[str], every: int = 1
    ) -> Any:
        """Advance all worlds by ``steps`` steps, and return recorded signals.

        The results are bit-identical to a loop that writes the commands and calls :meth:`step`. The native backend runs
        the whole rollout in one call. The CUDA backend does not wait for the device between the steps.

        Args:
            steps: number of steps of ``config.dt``.
            commands: dict that maps labels or wildcards of commands to their values before each step. Values are a
                :class:`Schedule`, a number, or an array (steps,) or (steps, num_worlds). For a wildcard that matches n
                commands, give an array (steps, n) or (steps, num_worlds, n). All other commands keep their values.
            record: signals or wildcards to record, as in :meth:`observe`.
            every: number of steps between two samples.

        Returns:
            Samples of ``observe(record)`` after every ``every`` steps, (steps // every, num_worlds, n), with n columns.
            With the CUDA backend, the array is on the device.

        Raises:
            UnknownNameError: a command or signal does not exist.
            ModelError: a number or an array shape is invalid, or a diagram sets one of the commands.
        """
        rollout = _Rollout(self.runtime, steps, commands, record, every)
        return rollout.run(self.step)

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Let a CUDA graph of PyTorch or CuPy capture calls of the simulation (``backend="cuda"``).

        Inside this context manager, you can call :meth:`step`, ``read`` of observations, and ``write`` of commands with
        device arrays. Make all these calls once before the capture, so that all kernels are compiled. Enter this
        context before ``torch.cuda.graph``.

        A replay of the graph runs without the host. After replays, call ``sim.invalidate()`` before you read on the
        host. Between replays, you can write and reset as usual. After a capture, the simulation no longer warns about
        falling bodies.

        Raises:
            ModelError: the backend or the launch mode does not support a capture, or a captured call needs the host.
        """
        backend: Any = self.runtime.backend
        if backend.name != "cuda":
            rule = f"backend '{backend.name}' launches no CUDA kernels"
            raise validate.fail("Simulation.capture", rule, "give Simulation(backend='cuda')")
        self.runtime.falls.stop()
        with backend.capture():
            yield
        self.runtime.forget()


class _Rollout:
    """Single rollout: steps, commands and recorded signals."""

    def __init__(
        self, runtime: Runtime, steps: Any, commands: Mapping[str, Any] | None, record: str | Sequence[str], every: Any
    ) -> None:
        self._runtime, self._steps = runtime, validate.count(_FUNCTION, "steps", steps, 0, 10**15)
        self._every = validate.count(_FUNCTION, "every", every, 1, 10**15)
        self._observation = Observation(runtime, runtime.signal_list(record))
        if commands is not None and not isinstance(commands, Mapping):
            raise validate.fail(_FUNCTION, f"commands = {commands!r:.80} is not a dict", "give {'lift': values}")
        self._tables = [self._table(name, value) for name, value in (commands or {}).items()]

    def _table(self, name: str, value: Any) -> tuple[Command, Any]:
        """Return the n commands that match ``name``, and their values (steps, 1 or num_worlds, n)."""
        command = Command(self._runtime, chosen_commands(self._runtime, name))
        if hasattr(value, "value") and hasattr(value, "mean"):  # a Schedule
            size, start = self._runtime.config.dt, float(self._runtime.read_state()["time"][0])
            value = [value.mean(start + k * size, start + (k + 1) * size) for k in range(self._steps)]
        element, count, worlds = f"commands '{name}'", len(command.names), self._runtime.num_worlds
        values = (
            self._runtime.backend.memory.to_device(value) if is_on_device(value) else validate.array(element, value)
        )
        if values.ndim == 2:
            values = values[:, :, None] if count == 1 else values[:, None, :]
        elif values.ndim == 1:
            values = values[:, None, None]
        try:
            values = np.broadcast_to(values, (self._steps, 1 if values.shape[1:2] == (1,) else worlds, count))
        except ValueError:
            rule = f"values of shape {np.shape(value)} do not fit {self._steps} steps, {worlds} worlds"
            shapes = "(steps,), (steps, num_worlds), or for n commands (steps, n) or (steps, num_worlds, n)"
            raise validate.fail(element, f"{rule} and {count} commands", f"give {shapes}") from None
        if not is_on_device(value) and not math.isfinite(float(values.sum())):
            raise validate.fail(element, "a value is not finite", "give finite numbers")
        return command, values

    def run(self, advance: Callable[[int], None]) -> Any:
        """Run the steps, and return the samples."""
        runtime, plan = self._runtime, self._plan()
        run = None if plan is None else runtime.backend.step_loop(plan)
        if plan is None or plan.record is None or run is None:
            return self._one_by_one(advance)
        runtime.count(self._steps)
        with runtime.alone:
            failed = run(0, self._steps, runtime.config.dt)
        if failed:
            runtime.quarantine.check()
        runtime.warn()
        return plan.record.array

    def _plan(self) -> StepPlan | None:
        """Return the plan for a single backend call, or None if Python code must run between steps."""
        programs, record = samplings(self._runtime), self._observation.reading(self._steps // self._every)
        if programs is None or record is None or self._runtime.samplers:
            return None
        if not self._tables:
            return StepPlan(programs, record=record, every=self._every)
        worlds = max(values.shape[1] for _, values in self._tables)
        parts = [np.broadcast_to(x, (self._steps, worlds, x.shape[2])) for _, x in self._tables]
        columns = [self._runtime.model.controls[name] for command, _ in self._tables for name in command.names]
        return StepPlan(programs, np.concatenate(parts, axis=2), np.array(columns), record, self._every)

    def _one_by_one(self, advance: Callable[[int], None]) -> Any:
        """Run the rollout in parts. Each part ends at the next change of commands or the next sample."""
        backend, every = self._runtime.backend, self._every
        shape = self._steps // every, *self._observation.array.shape
        out, done = backend.memory.to_device(np.zeros(shape)), 0
        whole = (self._steps, self._runtime.num_worlds)
        tables = [
            (command, backend.memory.to_device(np.array(np.broadcast_to(x, (*whole, x.shape[2])))))
            for command, x in self._tables
        ]
        while done < self._steps:
            for command, values in tables:
                command.write(values[done])
            count = 1 if tables else min(self._steps - done, every - done % every)
            advance(count)
            done += count
            if done % every == 0:
                out[done // every - 1] = self._observation.read()
        return out
