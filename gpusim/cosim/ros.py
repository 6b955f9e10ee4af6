"""Bridge to ROS 2 over Zenoh. The bridge publishes the state and receives commands, without a ROS installation."""

from __future__ import annotations

import json
import queue
import time as wall
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.closing import Closing
from gpusim.cosim.clock import steps_in_cycle
from gpusim.cosim.ros_wire import PUBLISHER, SUBSCRIPTION, Node, Topic, attachment, checked_namespace, gid_of
from gpusim.errors import ModelError, SimulationError, callers_level
from gpusim.signals.writing import chosen_worlds
from gpusim.typing import Array
from gpusim.validate import matching

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

_CLOCK, _TRANSFORMS, _JOINTS = "rosgraph_msgs/msg/Clock", "tf2_msgs/msg/TFMessage", "sensor_msgs/msg/JointState"
_COMMANDS, _TICK = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/Empty"
_NS = 1_000_000_000
_POLL = 1e-3
"""Wall time between two attempts to find a controller or a router, s."""
_CONNECT_TIMEOUT = 1.0
"""Time after which the bridge warns that no router answers, s."""
_MAX_WAITING = 1000
"""Maximum number of messages in the queue."""


class RosBridge(Closing):
    """Bridge of one world to ROS 2 nodes that use ``rmw_zenoh``.

    To exchange messages, call ``bridge(sim, sim.time)`` before each cycle, or call :meth:`run`. You can also pass the
    bridge to :func:`gpusim.run_clock` as the callback. The bridge publishes ``/clock``, ``/tf`` and ``joint_states``,
    and subscribes to ``commands``. Use the bridge in a ``with`` statement, or call :meth:`close`.

    Args:
        sim: the simulation.
        commands: labels or wildcards of commands, or None for all operator commands.
        bodies: labels or wildcards of bodies in ``/tf``.
        namespace: the ROS namespace of ``joint_states``, ``commands`` and ``tick``, such as "/robot".
        domain: value of ROS_DOMAIN_ID.
        lockstep: if True, each cycle waits for a message on ``commands`` or ``tick``.
        timeout: maximum wait in a cycle (s).
        connect: Zenoh endpoint of the router, as in rmw_zenoh. The bridge warns if no router answers within 1 s.
        session: an open ``zenoh.Session`` to use instead of ``connect``. The bridge does not close this session.
        world: index of the world.

    Attributes:
        commands: labels of the commands, in the order of the numbers in messages on ``commands``.
        joints: labels of the joints with one coordinate, in the order of ``joint_states``.
        bodies: labels of the bodies in ``/tf``.

    Raises:
        UnknownNameError: a command or body does not exist.
        ModelError: a library is missing, or an argument is invalid.
    """

    def __init__(
        self,
        sim: Simulation,
        commands: str | Sequence[str] | None = None,
        bodies: str | Sequence[str] = "*",
        *,
        namespace: str = "",
        domain: int = 0,
        lockstep: bool = False,
        timeout: float = 10.0,
        connect: str = "tcp/localhost:7447",
        session: Any = None,
        world: int = 0,
    ) -> None:
        self._types = _message_types()
        validate.simulation("RosBridge", sim)
        validate.flag("RosBridge", "lockstep", lockstep)
        self._sim, self._world = sim, int(chosen_worlds("RosBridge", [world], sim.num_worlds)[0])
        self._is_connected = False
        self._lockstep, self._timeout = lockstep, validate.positive("RosBridge", "timeout", timeout)
        self._select_signals(sim, commands, bodies)
        self._received: queue.Queue[bytes | None] = queue.Queue(_MAX_WAITING)
        namespace = checked_namespace(namespace)
        if isinstance(domain, bool) or not isinstance(domain, int) or not 0 <= domain <= 232:
            raise validate.fail("RosBridge", f"domain = {domain!r} is not within 0 to 232", "give ROS_DOMAIN_ID")
        self._session, self._owned = (_open_session(connect), True) if session is None else (session, False)
        self._node = Node(domain, str(self._session.zid()), namespace, "gpusim")
        self._declared: list[Any] = [self._session.liveliness().declare_token(self._node.token())]
        self._clock, self._tf, self._states = (
            self._publisher(name, kind)
            for name, kind in (("/clock", _CLOCK), ("/tf", _TRANSFORMS), (f"{namespace}/joint_states", _JOINTS))
        )
        self._subscribe(f"{namespace}/commands", _COMMANDS, lambda payload: payload)
        self._subscribe(f"{namespace}/tick", _TICK, lambda payload: None)

    def _select_signals(self, sim: Simulation, commands: Any, bodies: Any) -> None:
        """Select the signals and commands that the messages contain."""
        given = sim.model.operator_commands if commands is None else commands
        chosen = validate.name_list("RosBridge: commands", given)
        self.commands = sim.command(chosen).names if len(chosen) else []
        self.bodies = matching("body", bodies, [body.label for body in sim.model.bodies])
        known = sim.signals()
        positions = {joint.label: f"joint.{joint.label}.position" for joint in sim.model.joints}
        self.joints = [label for label, name in positions.items() if name in known and known[name].shape == ()]
        names = ["sim.time"]
        names += [f"joint.{joint}.{part}" for part in ("position", "velocity") for joint in self.joints]
        names += [f"body.{body}.{part}" for body in self.bodies for part in ("position", "orientation")]
        self._observation = sim.observe(names)

    # Messages.

    def __call__(self, sim: Simulation, time: float) -> None:
        """Publish the current state, then write the received commands. With ``lockstep``, wait for new commands.

        Raises:
            SimulationError: with ``lockstep``, no message arrived in time.
            ModelError: a message cannot be decoded, has the wrong number of commands, or has non-finite values.
        """
        if self._lockstep:
            self._wait_for_controller()
        self.publish()
        if self._lockstep:
            self._apply_commands(self._next_message())
            return
        newest: bytes | None = None
        while not self._received.empty():
            newest = self._received.get_nowait() or newest
        self._apply_commands(newest)

    def run(self, duration: float, rate: float | None = None) -> None:
        """Exchange messages before each cycle, and step. The loop runs as fast as possible, not in real time.

        Args:
            duration: simulated time (s).
            rate: exchanges per second of simulated time, or None for one exchange per step.

        Raises:
            SimulationError: with ``lockstep``, no message arrived in time.
            ModelError: an argument is invalid, or a message has wrong commands.
        """
        steps = steps_in_cycle("RosBridge.run", self._sim, rate)
        period = steps * self._sim.config.dt
        for _ in range(round(validate.positive("RosBridge.run", "duration", duration) / period)):
            self(self._sim, self._sim.time)
            self._sim.step(steps)

    def publish(self) -> None:
        """Publish the current state."""
        state = on_host(self._observation.read())[self._world]
        count, types = len(self.joints), self._types.types
        stamp = self._stamp(float(state[0]))
        self._clock.put(types[_CLOCK](stamp))
        self._tf.put(types[_TRANSFORMS](self._transforms(stamp, state[1 + 2 * count :].reshape(-1, 7))))
        positions, velocities = np.array(state[1 : 1 + 2 * count]).reshape(2, -1)
        header = types["std_msgs/msg/Header"](stamp, "")
        self._states.put(types[_JOINTS](header, self.joints, positions, velocities, np.zeros(0)))

    def _stamp(self, time: float) -> Any:
        ns = round(time * _NS)
        return self._types.types["builtin_interfaces/msg/Time"](ns // _NS, ns % _NS)

    def _transforms(self, stamp: Any, poses: Array) -> list[Any]:
        types = self._types.types
        header = types["std_msgs/msg/Header"](stamp, "world")
        stamped, transform, vector, quaternion = (
            types[f"geometry_msgs/msg/{name}"] for name in ("TransformStamped", "Transform", "Vector3", "Quaternion")
        )
        return [
            stamped(header, body, transform(vector(*pose[:3]), quaternion(*pose[3:])))
            for body, pose in zip(self.bodies, poses.tolist(), strict=True)
        ]

    def _wait_for_controller(self) -> None:
        """In the first cycle, wait until a controller is connected."""
        end = wall.monotonic() + self._timeout
        while not self._is_connected:
            has_subscriber = any(one.declared.matching_status.matching for one in (self._states, self._clock))
            self._is_connected = has_subscriber or not self._received.empty()
            if not self._is_connected and wall.monotonic() > end:
                raise self._timeout_error()
            if not self._is_connected:
                wall.sleep(_POLL)

    def _next_message(self) -> bytes | None:
        """Return the commands of the next message, or None for a message on ``tick``."""
        try:
            return self._received.get(timeout=self._timeout)
        except queue.Empty:
            raise self._timeout_error() from None

    def _timeout_error(self) -> SimulationError:
        topics = f"{self._node.namespace}/commands or {self._node.namespace}/tick"
        rule = f"no message on {topics} for {self._timeout:g} s"
        return SimulationError(f"RosBridge: {rule}; start the controller, and check domain, namespace and router")

    def _apply_commands(self, message: bytes | None) -> None:
        if message is None:
            return
        from rosbags.serde import SerdeError

        try:
            data = self._types.deserialize_cdr(message, _COMMANDS).data
        except SerdeError as error:
            rule = f"a message on commands cannot be decoded ({error})"
            raise validate.fail("RosBridge", rule, f"send {_COMMANDS}") from None
        if len(data) != len(self.commands):
            rule = f"a message on commands has {len(data)} numbers, and there are {len(self.commands)} commands"
            raise validate.fail("RosBridge", rule, f"send them in this order: {', '.join(self.commands)}")
        control = self._sim.control
        for label, value in zip(self.commands, data.tolist(), strict=True):
            values = control[label]
            values[self._world] = value
            control[label] = values

    # Zenoh.

    def _publisher(self, name: str, kind: str) -> _Publisher:
        topic = Topic(name, kind, self._types.hash_rihs01(kind))
        token = self._node.endpoint(len(self._declared), PUBLISHER, topic)
        self._declared.append(self._session.liveliness().declare_token(token))
        publisher = _Publisher(self._session, topic, self._node.domain, gid_of(token), self._types)
        self._declared.append(publisher.declared)
        return publisher

    def _subscribe(self, name: str, kind: str, convert: Any) -> None:
        topic = Topic(name, kind, self._types.hash_rihs01(kind))

        def receive(sample: Any) -> None:
            while True:
                try:
                    return self._received.put_nowait(convert(sample.payload.to_bytes()))
                except queue.Full:
                    self._received.get_nowait()

        self._declared.append(self._session.declare_subscriber(topic.key(self._node.domain, any_hash=True), receive))
        token = self._node.endpoint(len(self._declared), SUBSCRIPTION, topic)
        self._declared.append(self._session.liveliness().declare_token(token))

    def close(self) -> None:
        """Remove the bridge from the ROS graph. A second call does nothing."""
        while self._declared:
            self._declared.pop().undeclare()
        if self._owned:
            self._session.close()
            self._owned = False


class _Publisher:
    """Publisher of one topic in rmw_zenoh's message format."""

    def __init__(self, session: Any, topic: Topic, domain: int, gid: bytes, types: Any) -> None:
        from zenoh import CongestionControl

        key, block = topic.key(domain), CongestionControl.BLOCK
        self.declared = session.declare_publisher(key, congestion_control=block, express=True)
        self._type, self._gid, self._types, self._sequence = topic.type, gid, types, 0

    def put(self, message: Any) -> None:
        self._sequence += 1
        data = bytes(self._types.serialize_cdr(message, self._type))
        self.declared.put(data, attachment=attachment(self._sequence, wall.time_ns(), self._gid))


def _message_types() -> Any:
    """Return the message types of ROS 2 Jazzy and later."""
    try:
        import zenoh.ext  # noqa: F401
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        rule = f"RosBridge needs eclipse-zenoh and rosbags ({error})"
        raise ModelError(f'{rule}; pip install "gpusim[ros]"') from None
    return get_typestore(Stores.ROS2_JAZZY)


def _open_session(connect: str) -> Any:
    """Open a Zenoh session with rmw_zenoh's default settings."""
    import zenoh

    config = zenoh.Config()
    settings = {"mode": "peer", "connect/endpoints": [connect], "scouting/multicast/enabled": False}
    try:
        for name, value in settings.items():
            config.insert_json5(name, json.dumps(value))
        session = zenoh.open(config)
    except zenoh.ZError as error:
        rule = f"connect = {connect!r} is not a Zenoh endpoint ({error})"
        raise validate.fail("RosBridge", rule, "give e.g. 'tcp/localhost:7447'") from None
    end = wall.monotonic() + _CONNECT_TIMEOUT
    while not (session.info.routers_zid() or session.info.peers_zid()):
        if wall.monotonic() > end:
            fix = "start one with 'ros2 run rmw_zenoh_cpp rmw_zenohd'"
            warnings.warn(f"RosBridge: no Zenoh router at {connect!r} yet; {fix}", stacklevel=callers_level())
            break
        wall.sleep(_POLL)
    return session
