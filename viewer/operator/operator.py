"""Operator: inputs of a simulation with their sources, emergency stop, recording and replay."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim import validate
from gpusim.description.operator_names import STOP_KEY
from gpusim.errors import ModelError, UnknownNameError
from gpusim.viewer.operator.channels import Channels
from gpusim.viewer.operator.devices import Devices
from gpusim.viewer.operator.gamepad import Gamepad
from gpusim.viewer.operator.inputs import Input, command_inputs, stop_value
from gpusim.viewer.operator.key_list import KeyGroup, KeyLine, window_key
from gpusim.viewer.operator.keys import NAMES, window_name
from gpusim.viewer.operator.mapping import InputMapping
from gpusim.viewer.operator.operator_log import LogPlayer, LogWriter
from gpusim.viewer.operator.patterns import choose_mapping
from gpusim.viewer.operator.recording import OperatorRecording, solver_of

if TYPE_CHECKING:
    from gpusim.scene import Scene
    from gpusim.simulation import Simulation

PANEL, REPLAY, STOP = "panel", "replay", "stop"
"""Names of sources, in addition to keyboard and gamepad. The source "" means the schedule or the initial value."""
_MANY = 1 << 20


class Operator:
    """State of all operator inputs. The most recent value from panel, keyboard, gamepad or recording is active.

    Without a value from the operator, an input follows the scene's schedule. Call :meth:`poll` once per frame. Before
    the simulation's steps, call :meth:`before_steps` instead of the schedule.

    Args:
        sim: the simulation. All worlds get the same values.
        scene: scene of the simulation, for the schedule and for recordings.
        mapping: see :func:`choose_mapping`.
        gamepad: the gamepad, or None.
        parameters: scene parameters to store in recordings.

    Attributes:
        sim, scene: as given.
        devices: keyboard and gamepad.
        mapping: bindings of keys and sticks.
        stopped: True if the emergency stop is latched.
        note: message for the user about the last event, or empty.
        recorded: file of the last recording, or None before the first recording.

    Raises:
        ModelError, UnknownNameError: the mapping is invalid.
    """

    def __init__(
        self,
        sim: Simulation,
        scene: Scene | None = None,
        *,
        mapping: str = "auto",
        gamepad: Gamepad | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.devices = Devices(gamepad)
        self.stopped = False
        self.note = ""
        self._wish = mapping
        self._added: dict[str, Input] = {}
        self.recorded: Path | None = None
        self._writer: LogWriter | None = None
        self._player: LogPlayer | None = None
        self._played = ""
        self._operator_keys: dict[tuple[str, bool], tuple[str, Callable[[], None]]] = {
            (STOP_KEY, False): ("emergency stop", lambda: self.emergency_stop("keyboard")),
            (STOP_KEY, True): ("release the stop", self.release_stop),
        }
        self._adopt(sim, scene, parameters)
        self.use_mapping(mapping)
        self.reset()

    def attach(self, sim: Simulation, scene: Scene | None = None, parameters: Mapping[str, Any] | None = None) -> None:
        """Switch to the new simulation after a restart.

        A latched emergency stop stays latched, and inputs from :meth:`add_input` are kept.
        """
        self._end_recording()
        self._adopt(sim, scene, parameters)
        why = ""
        try:
            self.use_mapping(self._wish)
        except (ModelError, UnknownNameError) as error:
            why = str(error)
            self.use_mapping("auto")
        self.reset()
        self.note = why

    def _adopt(self, sim: Simulation, scene: Scene | None, parameters: Mapping[str, Any] | None) -> None:
        self.sim, self.scene, self._parameters = sim, scene, dict(parameters or {})
        self._channels = Channels(command_inputs(sim.model) | self._added)

    @property
    def inputs(self) -> dict[str, Input]:
        """All inputs by name: commands of the simulation, then added inputs."""
        return {name: channel.input for name, channel in self._channels.items()}

    def add_input(
        self,
        name: str,
        lower: float = -1.0,
        upper: float = 1.0,
        *,
        initial: float = 0.0,
        safe: float = 0.0,
        unit: str = "-",
        switch: bool = False,
        springs: bool = True,
        doc: str = "",
    ) -> Input:
        """Add an input that is not a command.

        The input appears on the panel and in recordings. :meth:`value` returns its value.

        Args:
            name: unique name of the input.
            lower, upper, initial, safe, unit, switch, springs, doc: see :class:`Input`.

        Raises:
            ModelError: the name exists already, or the range is invalid.
        """
        if name in self._channels:
            raise validate.fail(f"input '{name}'", "this name is already in use", "give another name")
        item = Input(lower, upper, safe, unit, switch, springs, name=name, initial=initial, doc=doc)
        self._added[name] = item
        self._channels.add(item)
        self.use_mapping(self._wish)
        if self.stopped:
            self._channels.take(name, safe, STOP)
        return item

    def value(self, name: str, world: int = 0) -> float:
        """Return the current value of an input, in its unit.

        Raises:
            UnknownNameError: the input is unknown.
        """
        channel = self._channels[name]
        if not channel.source and not channel.released and name in self.sim.control:
            return float(self.sim.control.array[world, self.sim.model.controls[name]])
        return channel.value[world] if isinstance(channel.value, tuple) else channel.value

    def source(self, name: str) -> str:
        """Return the last source of an input: "panel", "keyboard", "gamepad", "replay", "stop", or "" (no source)."""
        return self._channels[name].source

    def scheduled(self) -> bool:
        """Return whether the scene has a schedule that writes commands."""
        return self.scene is not None and self.scene.schedule is not None

    def set(self, name: str, value: float, source: str = PANEL) -> None:
        """Set an input to a value, clamped to the range. During an emergency stop, the method has no effect.

        Raises:
            UnknownNameError: the input is unknown.
            ModelError: the value is not finite.
        """
        item = self._channels[name].input
        number = item.clamp(validate.number(f"input '{name}'", "value", value))
        if self.stopped:
            return
        if self._player is not None and source != REPLAY:
            self.stop_replay(f"{source} took over")
        self._channels.take(name, number, source)

    def release(self, name: str) -> None:
        """Release an input.

        A released input follows the scene's schedule, or gets the initial value without a schedule.
        """
        if not self.stopped:
            self.stop_replay("replay ended")
            self._channels.release(name)

    def emergency_stop(self, source: str = PANEL) -> None:
        """Latch the emergency stop. All inputs and commands keep their safe values until :meth:`release_stop`."""
        if self.stopped and self._player is None:  # a repeated stop must not change the positions that servos hold
            return
        self.stop_replay()
        self.note = f"emergency stop ({source})"
        self._latch()

    def _latch(self) -> None:
        self.stopped = True
        self.devices.disarm()
        for name, channel in self._channels.items():
            self._channels.take(name, stop_value(channel.input, self.sim), STOP)
        self.sim.override()
        self._note_stop(True)

    def release_stop(self) -> None:
        """Release the emergency stop. Each input keeps its safe value until the operator moves it."""
        if self.stopped:
            self.stop_replay()
            self.note = "emergency stop released"
            self._unlatch()
        self.devices.disarm()

    def _unlatch(self) -> None:
        self.stopped = False
        self.sim.release()
        self._note_stop(False)

    def _note_stop(self, stopped: bool) -> None:
        if self._writer is not None:
            self._writer.note_stop(stopped)

    def use_mapping(self, wish: str) -> None:
        """Set the mapping of keys and sticks, see :func:`choose_mapping`.

        Raises:
            ModelError, UnknownNameError: the mapping is invalid. After an error, the old mapping stays active.
        """
        self.mapping: InputMapping = choose_mapping(self.inputs, wish)
        self._wish = wish
        self.devices.use(self.mapping, self.inputs)

    def key(self, code: int, down: bool, shift: bool = False) -> bool:
        """Handle a key event. ``code`` is glfw's key code.

        Returns:
            True if the operator uses the key.
        """
        name = NAMES.get(code, "")
        if entry := self._operator_keys.get((name, shift)):
            if down:
                entry[1]()
            return True
        return self.devices.key(name, down)

    def key_groups(self) -> list[KeyGroup]:
        """Return help texts for keys, sticks and buttons, with the names of their commands."""
        keys = self._operator_keys.items()
        lines = [KeyLine(window_key(window_name(key), shift), what) for (key, shift), (what, _) in keys]
        pad = KeyLine(f"gamepad {self.mapping.stop_button}", lines[0].what)
        drives = [KeyLine(binding.moved_by, binding.command) for binding in self.mapping.bindings]
        title = f"Commands ({self.mapping.name}, {'gamepad connected' if self.devices.connected else 'no gamepad'})"
        return [KeyGroup("Operator", [*lines, pad]), *([KeyGroup(title, drives)] if drives else [])]

    def used_keys(self) -> Collection[str]:
        """Return the keys that the operator uses, with the window's key names."""
        driving = {key for binding in self.mapping.bindings for key in binding.keys}
        return {window_name(key) for key in driving | {key for key, _ in self._operator_keys}}

    def let_go(self) -> None:
        """Mark all keys as released, after the window has lost the keyboard focus."""
        self.devices.let_go()

    def poll(self, seconds: float) -> None:
        """Set the inputs that the user moves by keyboard or gamepad. Call this method once per frame.

        Args:
            seconds: real time since the last call (s), for rate limits and speeds.
        """
        for name, value, source in self.devices.poll(max(seconds, 0.0), self.value, self.emergency_stop):
            self.set(name, value, source)

    def free_steps(self) -> int:
        """Return the number of steps (at least 1) before the next possible change of a command."""
        if self.scheduled():
            return 1
        return max(1, self._player.wait()) if self._player is not None else _MANY

    def before_steps(self, time: float, count: int = 1) -> None:
        """Write the commands of the next ``count`` steps: the scene's schedule first, then operator inputs.

        Args:
            time: simulation time (s).
            count: number of steps, at most :meth:`free_steps`.
        """
        if self._player is not None:
            self._play(self._player)
        self._channels.write_released(self.sim.control)
        if self.scene is not None and self.scene.schedule is not None:
            self.scene.schedule(self.sim, time)
        self._channels.write_changed(self.sim.control, everything=self.scheduled())
        self._note_changes()
        self._channels.settle()
        for log in (self._writer, self._player):
            if log is not None:
                log.step += count

    def _note_changes(self) -> None:
        if self._writer is not None:
            for name in self._channels.changed:
                channel = self._channels[name]
                self._writer.note(name, channel.value if channel.source else None)

    def _play(self, player: LogPlayer) -> None:
        if (stop := player.due_stop()) is not None:
            if stop:
                self._latch()
            else:
                self._unlatch()
        for name, value in player.due().items():
            if value is None:
                self._channels.release(name)
            else:
                self._channels.take(name, value, REPLAY)
        if player.finished:
            self.stop_replay("replay finished")

    def reset(self) -> None:
        """Reset all inputs after a reset of the simulation. A latched emergency stop stays latched.

        A running recording ends.
        """
        self._end_recording()
        self.stop_replay("")
        self._channels.reset()
        if self.stopped:
            self._latch()

    @property
    def recording(self) -> bool:
        """True during a recording."""
        return self._writer is not None

    @property
    def replaying(self) -> bool:
        """True during a replay."""
        return self._player is not None

    @property
    def log(self) -> str:
        """Name of the file that is recorded or replayed, or an empty string."""
        return self._writer.path.name if self._writer is not None else self._played if self._player is not None else ""

    def record(self, path: str | os.PathLike[str], *, keep: bool = False) -> None:
        """Start a recording of all changes. For an exact replay, reset the simulation before the recording.

        Args:
            path: path of the file.
            keep: with True, keep an existing file and use the next free name, e.g. drive-2.jsonl.

        Raises:
            ModelError: the file cannot be written at this path.
        """
        self.stop_recording()
        head = OperatorRecording(
            tuple(self._channels),
            self.sim.config.dt,
            self.scene.name if self.scene is not None else "",
            self._parameters,
            self.sim.time,
            solver_of(self.sim),
        )
        self._writer = LogWriter(head, path, keep)
        if self.stopped:
            self._note_stop(True)
        self._channels.changed |= {name for name, channel in self._channels.items() if channel.source}

    def stop_recording(self) -> OperatorRecording | None:
        """End a recording and write its file.

        Raises:
            ModelError: the file cannot be written. After this error, the recording continues, and you can try again.
        """
        if self._writer is None:
            return None
        recording = self._writer.finish()
        self.recorded = self._writer.path
        self.note = f"recorded {self.recorded}"
        self._writer = None
        return recording

    def _end_recording(self) -> None:
        """End a recording before the simulation time jumps back."""
        try:
            self.stop_recording()
        except ModelError as error:
            self.note = str(error)
        self._writer = None

    def replay(self, source: str | os.PathLike[str] | OperatorRecording) -> None:
        """Replay a recording. Any operator input ends the replay.

        Replays with the same simulation and initial state give bit-identical results.

        Raises:
            ModelError: the file is invalid, or the recording does not match the simulation.
        """
        recording = source if isinstance(source, OperatorRecording) else OperatorRecording.load(source)
        if self.stopped:
            raise validate.fail("replay", "the emergency stop is latched", "release it first")
        self._player = LogPlayer(recording, self.sim, self.inputs)
        self._played = "" if isinstance(source, OperatorRecording) else Path(source).name
        self.note = ""

    def stop_replay(self, why: str = "replay ended") -> None:
        """End a replay. The inputs keep their current values."""
        if self._player is not None:
            self._player = None
            self.note = why
