"""The operator: all inputs of a simulation, who set them last, the emergency stop, recording and replay."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim.errors import ModelError, UnknownNameError
from gpusim.model import validate
from gpusim.model.operator_names import STOP_KEY
from gpusim.viewer.operator.channels import Channels
from gpusim.viewer.operator.devices import Devices
from gpusim.viewer.operator.gamepad import Gamepad
from gpusim.viewer.operator.inputs import Input, command_inputs, held_value
from gpusim.viewer.operator.key_list import KeyGroup, KeyLine, window_key
from gpusim.viewer.operator.keys import NAMES, window_name
from gpusim.viewer.operator.mapping import InputMapping
from gpusim.viewer.operator.operator_log import Player, Taker
from gpusim.viewer.operator.patterns import choose_mapping
from gpusim.viewer.operator.recording import OperatorRecording, solver_of

if TYPE_CHECKING:
    from gpusim.scene import Scene
    from gpusim.simulation import Simulation

PANEL, REPLAY, STOP = "panel", "replay", "stop"
"""Sources of a value besides keyboard and gamepad; "" is nobody: the scene's schedule, or the first value."""
_MANY = 1 << 20


class Operator:
    """Holds what people, keyboards, gamepads and recordings set; the last touch wins.

    An input that nobody has touched follows the scene's schedule. Call :meth:`before_steps` before the simulation's
    steps, in place of the schedule, and :meth:`poll` once a frame.

    Args:
        sim: the simulation; all of its worlds get the same values.
        scene: its scene, for the schedule and for recordings.
        mapping: see :func:`choose_mapping`.
        gamepad: None for none.
        parameters: those of the scene that were changed, for recordings.

    Attributes:
        sim, scene: as given.
        devices: keyboard and gamepad.
        mapping: what keys and sticks do.
        stopped: whether the emergency stop is latched.
        note: one line for the user about the last event, or empty.
        recorded: file of the last recording that was written; None before the first.

    Raises:
        ModelError, UnknownNameError: the mapping is bad.
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
        self._taker: Taker | None = None
        self._player: Player | None = None
        self._played = ""
        self._own_keys: dict[tuple[str, bool], tuple[str, Callable[[], None]]] = {
            (STOP_KEY, False): ("emergency stop", lambda: self.emergency_stop("keyboard")),
            (STOP_KEY, True): ("release the stop", self.release_stop),
        }
        self._adopt(sim, scene, parameters)
        self.use_mapping(mapping)
        self.reset()

    def attach(self, sim: Simulation, scene: Scene | None = None, parameters: Mapping[str, Any] | None = None) -> None:
        """Go on with another simulation: after a restart. A latched emergency stop stays, added inputs too.

        A mapping that does not fit its commands gives way to the automatic one; ``note`` tells.
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

    # Inputs and their values.

    @property
    def inputs(self) -> dict[str, Input]:
        """All inputs by name: the commands of the simulation, then those that were added."""
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
        """Make one more input, beside the commands: for whoever computes commands from it, such as a block diagram.

        It is on the panel, can be bound to keys and sticks, and is recorded; :meth:`value` tells it.

        Args:
            name: unique.
            lower, upper, initial, safe, unit, switch, springs, doc: see :class:`Input`.

        Raises:
            ModelError: the name is taken, or the range is bad.
        """
        if name in self._channels:
            raise validate.fail(f"input '{name}'", "there is one of this name already", "give another name")
        item = Input(lower, upper, safe, unit, switch, springs, name=name, initial=initial, doc=doc)
        self._added[name] = item
        self._channels.add(item)
        self.use_mapping(self._wish)
        if self.stopped:
            self._channels.take(name, safe, STOP)
        return item

    def value(self, name: str, world: int = 0) -> float:
        """Value of an input now, in its unit.

        Raises:
            UnknownNameError: no such input.
        """
        channel = self._channels[name]
        if not channel.source and not channel.released and name in self.sim.control:
            return float(self.sim.control.array[world, self.sim.model.controls[name]])
        return channel.value[world] if isinstance(channel.value, tuple) else channel.value

    def source(self, name: str) -> str:
        """Who set an input last: "panel", "keyboard", "gamepad", "replay", "stop"; "" for nobody."""
        return self._channels[name].source

    def scheduled(self) -> bool:
        """Whether the scene drives what nobody has touched."""
        return self.scene is not None and self.scene.schedule is not None

    def set(self, name: str, value: float, source: str = PANEL) -> None:
        """Touch an input; values beyond its range become the nearest one. Does nothing while stopped.

        Raises:
            UnknownNameError: no such input.
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
        """Give an input back to the scene's schedule, or to its first value where it has none."""
        if not self.stopped:
            self.stop_replay("replay ended")
            self._channels.release(name)

    # Emergency stop.

    def emergency_stop(self, source: str = PANEL) -> None:
        """Latch: every input and command goes to its safe value and stays there until :meth:`release_stop`."""
        if self.stopped and self._player is None:  # a held key must not measure anew where position servos are to stay
            return
        self.stop_replay()
        self.note = f"emergency stop ({source})"
        self._latch()

    def _latch(self) -> None:
        self.stopped = True
        self.devices.disarm()
        for name, channel in self._channels.items():
            self._channels.take(name, held_value(channel.input, self.sim), STOP)
        self.sim.emergency_stop()
        self._note_stop(True)

    def release_stop(self) -> None:
        """Let inputs through again; they keep their safe values until they are touched. Held sticks must be let go."""
        if self.stopped:
            self.stop_replay()
            self.note = "emergency stop released"
            self._unlatch()
        self.devices.disarm()

    def _unlatch(self) -> None:
        self.stopped = False
        self.sim.release_stop()
        self._note_stop(False)

    def _note_stop(self, stopped: bool) -> None:
        if self._taker is not None:
            self._taker.note_stop(stopped)

    # Keyboard and gamepad.

    def use_mapping(self, wish: str) -> None:
        """Change what keys and sticks do; see :func:`choose_mapping`.

        Raises:
            ModelError, UnknownNameError: the mapping is bad; the old one stays.
        """
        self.mapping: InputMapping = choose_mapping(self.inputs, wish)
        self._wish = wish
        self.devices.use(self.mapping, self.inputs)

    def key(self, code: int, down: bool, shift: bool = False) -> bool:
        """A key went down (or repeats) or up; glfw's code.

        Returns:
            Whether it means something to the operator; all others are the window's.
        """
        name = NAMES.get(code, "")
        if own := self._own_keys.get((name, shift)):
            if down:
                own[1]()
            return True
        return self.devices.key(name, down)

    def key_groups(self) -> list[KeyGroup]:
        """What keys, sticks and buttons drive, with the commands' names."""
        own = [KeyLine(window_key(window_name(key), shift), what) for (key, shift), (what, _) in self._own_keys.items()]
        pad = KeyLine(f"gamepad {self.mapping.stop_button}", own[0].what)
        drives = [KeyLine(binding.moved_by, binding.command) for binding in self.mapping.bindings]
        title = f"Commands ({self.mapping.name}, {'gamepad connected' if self.devices.connected else 'no gamepad'})"
        return [KeyGroup("Operator", [*own, pad]), *([KeyGroup(title, drives)] if drives else [])]

    def taken_keys(self) -> Collection[str]:
        """Names (the window's) of the keys that are the operator's; with Ctrl they are the window's."""
        driving = {key for binding in self.mapping.bindings for key in binding.keys}
        return {window_name(key) for key in driving | {key for key, _ in self._own_keys}}

    def let_go(self) -> None:
        """Take all keys for released: the window has lost the keyboard."""
        self.devices.let_go()

    def poll(self, seconds: float) -> None:
        """Look at keyboard and gamepad; once a frame.

        Args:
            seconds: of real time since the last call; rate limits and speeds go by it.
        """
        for name, value, source in self.devices.poll(max(seconds, 0.0), self.value, self.emergency_stop):
            self.set(name, value, source)

    # Steps.

    def free_steps(self) -> int:
        """How many steps may be done at once: until the next at which the operator or the schedule may want something.

        At least 1.
        """
        if self.scheduled():
            return 1
        return max(1, self._player.wait()) if self._player is not None else _MANY

    def before_steps(self, time: float, count: int = 1) -> None:
        """Command the next ``count`` steps: the scene's schedule first, then what was touched.

        Args:
            time: of the simulation, s.
            count: at most :meth:`free_steps`.
        """
        if self._player is not None:
            self._play(self._player)
        self._channels.write_released(self.sim.control)
        if self.scene is not None and self.scene.schedule is not None:
            self.scene.schedule(self.sim, time)
        self._channels.write_taken(self.sim.control, everything=self.scheduled())
        self._note_changes()
        self._channels.settle()
        for log in (self._taker, self._player):
            if log is not None:
                log.step += count

    def _note_changes(self) -> None:
        if self._taker is not None:
            for name in self._channels.changed:
                channel = self._channels[name]
                self._taker.note(name, channel.value if channel.source else None)

    def _play(self, player: Player) -> None:
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
        """After the simulation was reset: all inputs as at first; a latched emergency stop stays.

        Ends a recording; where its file cannot be written, ``note`` tells.
        """
        self._end_recording()
        self.stop_replay("")
        self._channels.reset()
        if self.stopped:
            self._latch()

    # Recording and replay.

    @property
    def recording(self) -> bool:
        """Whether changes are recorded."""
        return self._taker is not None

    @property
    def replaying(self) -> bool:
        """Whether a recording is replayed."""
        return self._player is not None

    @property
    def log(self) -> str:
        """Name of the file that is recorded or replayed; empty for none."""
        return self._taker.path.name if self._taker is not None else self._played if self._player is not None else ""

    def record(self, path: str | os.PathLike[str], *, keep: bool = False) -> None:
        """Record every change from here on. A run that is to be repeated exactly begins with a reset.

        Args:
            path: of the file.
            keep: where there is such a file it stays: the recording gets the next free name, e.g. drive-2.jsonl.

        Raises:
            ModelError: the file cannot be written there.
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
        self._taker = Taker(head, path, keep)
        if self.stopped:
            self._note_stop(True)
        self._channels.changed |= {name for name, channel in self._channels.items() if channel.source}

    def stop_recording(self) -> OperatorRecording | None:
        """End a recording and write its file; None where none runs.

        Raises:
            ModelError: the file cannot be written; the recording goes on, so that it may be tried again.
        """
        if self._taker is None:
            return None
        recording = self._taker.finish()
        self.recorded = self._taker.path
        self.note = f"recorded {self.recorded}"
        self._taker = None
        return recording

    def _end_recording(self) -> None:
        """Where time goes back, nothing can go on."""
        try:
            self.stop_recording()
        except ModelError as error:
            self.note = str(error)
        self._taker = None

    def replay(self, source: str | os.PathLike[str] | OperatorRecording) -> None:
        """Do again what was recorded; any touch ends it.

        Same simulation, same first state: same bits.

        Raises:
            ModelError: the file is bad, or simulation and recording do not fit.
        """
        recording = source if isinstance(source, OperatorRecording) else OperatorRecording.load(source)
        if self.stopped:
            raise validate.fail("replay", "the emergency stop is latched", "release it first")
        self._player = Player(recording, self.sim, self.inputs)
        self._played = "" if isinstance(source, OperatorRecording) else Path(source).name
        self.note = ""

    def stop_replay(self, why: str = "replay ended") -> None:
        """End a replay; the inputs keep their values."""
        if self._player is not None:
            self._player = None
            self.note = why
