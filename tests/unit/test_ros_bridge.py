from __future__ import annotations

import queue
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import zenoh
from rosbags.typesys import Stores, get_typestore
from zenoh.ext import Int64, z_deserialize

import gpusim
from gpusim.cosim import RosBridge
from gpusim.cosim.ros_wire import PUBLISHER, Node, Topic
from tests.backends import FASTEST
from tests.message_snapshot import naming

TYPES = get_typestore(Stores.ROS2_JAZZY)
STRING = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
JOINTS = "sensor_msgs::msg::dds_::JointState_/RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e"
COMMANDS, TICK = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/Empty"


def until(done: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(12000):
        if done():
            return
        pause.wait(0.005)
    raise AssertionError("it did not happen")


def matched(publisher: Any) -> None:
    """Wait until a subscriber of the other session is known, since Zenoh drops other messages."""
    until(lambda: publisher.matching_status.matching)


class Ros:
    def __init__(self, session: Any) -> None:
        self.session, self.samples = session, queue.Queue[Any]()
        self.publishers: dict[str, Any] = {}
        self._heard = session.declare_subscriber("0/**", self.samples.put)

    def next(self, topic: str) -> Any:
        """The next sample of a topic. Earlier samples of other topics are dropped."""
        while True:
            sample = self.samples.get(timeout=60.0)
            if str(sample.key_expr).startswith(f"0/{topic}/"):
                return sample

    def message(self, topic: str, kind: str) -> Any:
        return TYPES.deserialize_cdr(self.next(topic).payload.to_bytes(), kind)

    def send(self, topic: str, kind: str, *values: Any) -> None:
        key = Topic(topic, kind, TYPES.hash_rihs01(kind)).key(0)
        if key not in self.publishers:
            # this session hears the whole domain and would match its own publishers
            self.publishers[key] = self.session.declare_publisher(key, allowed_destination=zenoh.Locality.REMOTE)
            matched(self.publishers[key])
        self.publishers[key].put(bytes(TYPES.serialize_cdr(TYPES.types[kind](*values), kind)))

    def command(self, *values: float, topic: str = "/commands") -> None:
        layout = TYPES.types["std_msgs/msg/MultiArrayLayout"]([], 0)
        self.send(topic, COMMANDS, layout, np.array(values))


def opened(**endpoints: str) -> Any:
    config = zenoh.Config()
    config.insert_json5("scouting/multicast/enabled", "false")
    for name, endpoint in endpoints.items():
        config.insert_json5(f"{name}/endpoints", f'["{endpoint}"]')
    return zenoh.open(config)


@pytest.fixture
def sessions() -> Iterator[tuple[Any, Ros]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"tcp/127.0.0.1:{free.getsockname()[1]}"
    with opened(listen=endpoint) as ours, opened(connect=endpoint) as theirs:
        ros = Ros(theirs)
        matched(ours.declare_publisher("0/probe"))
        yield ours, ros


def cart() -> gpusim.Simulation:
    builder = gpusim.ModelBuilder()
    cart = builder.add_body(mass=2.0, inertia=(0.1, 0.1, 0.1), label="cart")
    rail = builder.add_joint_prismatic(-1, cart, axis=(1, 0, 0), label="rail")
    arm = builder.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), xform=gpusim.Transform((0, 0, -1)), label="arm")
    builder.add_joint_revolute(cart, arm, at=(0, 0, 0), axis=(0, 1, 0), label="hinge")
    builder.add_joint_force(rail, label="push")
    return gpusim.Simulation(builder.finalize(), backend=FASTEST, config=gpusim.SolverConfig(dt=1e-3))


def test_keys_and_tokens_are_those_of_rmw_zenoh() -> None:
    topic = Topic("/chatter", "std_msgs/msg/String", TYPES.hash_rihs01("std_msgs/msg/String"))
    assert topic.key(0) == f"0/chatter/std_msgs::msg::dds_::String_/{STRING}"
    assert topic.key(7, any_hash=True) == "7/chatter/std_msgs::msg::dds_::String_/*"
    node = Node(0, "8b20917502ee955ac4476e0266340d5c", "", "talker")
    assert node.token() == "@ros2_lv/0/8b20917502ee955ac4476e0266340d5c/0/0/NN/%/%/talker"
    assert node.endpoint(10, PUBLISHER, topic) == (
        "@ros2_lv/0/8b20917502ee955ac4476e0266340d5c/0/10/MP/%/%/talker/%chatter/"
        f"std_msgs::msg::dds_::String_/{STRING}/::,10:,:,:,,"
    )
    for store in (Stores.ROS2_KILTED, Stores.ROS2_LYRICAL):
        other = get_typestore(store)
        for kind in ("sensor_msgs/msg/JointState", "tf2_msgs/msg/TFMessage", "rosgraph_msgs/msg/Clock", COMMANDS, TICK):
            assert other.hash_rihs01(kind) == TYPES.hash_rihs01(kind)


def test_messages_hold_the_state(sessions: tuple[Any, Ros]) -> None:
    session, ros = sessions
    sim = cart()
    sim.write_state({"joint.rail.position": 0.3, "joint.hinge.position": 0.4, "joint.hinge.velocity": -2.0})
    with RosBridge(sim, session=session, namespace="robot") as bridge:
        assert (bridge.joints, bridge.bodies, bridge.commands) == (["rail", "hinge"], ["cart", "arm"], ["push"])
        bridge.publish()
        sim.step(250, 0.01)
        bridge.publish()
        clock = [ros.message("clock", "rosgraph_msgs/msg/Clock").clock for _ in range(2)]
        assert [(c.sec, c.nanosec) for c in clock] == [(0, 0), (2, 500_000_000)]
        transforms = ros.message("tf", "tf2_msgs/msg/TFMessage").transforms
        assert [(t.header.frame_id, t.child_frame_id) for t in transforms] == [("world", "cart"), ("world", "arm")]
        moved, turned = transforms[1].transform.translation, transforms[1].transform.rotation
        assert [moved.x, moved.y, moved.z] == sim.read("body.arm.position")[0].tolist()
        assert [turned.x, turned.y, turned.z, turned.w] == sim.read("body.arm.orientation")[0].tolist()
        sample = ros.next("robot/joint_states")
        assert str(sample.key_expr) == f"0/robot/joint_states/{JOINTS}"
        state = TYPES.deserialize_cdr(sample.payload.to_bytes(), "sensor_msgs/msg/JointState")
        assert state.name == ["rail", "hinge"] and state.header.stamp.sec == 2
        for part, values in (("position", state.position), ("velocity", state.velocity)):
            assert values.tolist() == [sim.read(f"joint.{j}.{part}")[0] for j in bridge.joints]
        attached = sample.attachment
        assert len(attached.to_bytes()) == 33
        sequence, time, gid = z_deserialize(tuple[Int64, Int64, bytes], attached)
        assert (int(sequence), len(gid)) == (2, 16) and int(time) > 10**18


def test_the_graph_shows_the_node_and_its_topics(sessions: tuple[Any, Ros]) -> None:
    session, ros = sessions

    def tokens() -> list[str]:
        replies = ros.session.liveliness().get("@ros2_lv/0/**", timeout=60.0)
        return sorted(str(reply.ok.key_expr) for reply in replies)

    with RosBridge(cart(), session=session, namespace="/robot"):
        until(lambda: len(tokens()) == 6)
        found = tokens()
        start = f"@ros2_lv/0/{session.zid()}/0/"
        assert all(token.startswith(start) for token in found)
        kinds = [token.removeprefix(start).split("/") for token in found]
        topics = {(kind[1], kind[5]) for kind in kinds if kind[1] != "NN"}
        assert topics == {
            ("MP", "%clock"), ("MP", "%tf"), ("MP", "%robot%joint_states"), ("MS", "%robot%commands"),
            ("MS", "%robot%tick"),
        }  # fmt: skip
        assert [kind[1:] for kind in kinds if kind[1] == "NN"] == [["NN", "%", "%robot", "gpusim"]]
        assert len({kind[0] for kind in kinds}) == 6
    until(lambda: not tokens())


def test_lockstep_with_a_controller_has_the_bits_of_a_loop(sessions: tuple[Any, Ros]) -> None:
    session, ros = sessions
    expected = cart()
    for _ in range(40):
        hinge, rail = (float(expected.read(f"joint.{j}.position")[0]) for j in ("hinge", "rail"))
        expected.control["push"] = 30.0 * (0.1 - rail) + 5.0 * hinge
        expected.step(5)

    def control(sample: Any) -> None:
        state = TYPES.deserialize_cdr(sample.payload.to_bytes(), "sensor_msgs/msg/JointState")
        position = dict(zip(state.name, state.position.tolist(), strict=True))
        ros.command(30.0 * (0.1 - position["rail"]) + 5.0 * position["hinge"])

    heard = ros.session.declare_subscriber(f"0/joint_states/{JOINTS}", control)
    sim = cart()
    with RosBridge(sim, session=session, lockstep=True) as bridge:
        bridge.run(0.2, rate=200.0)
    heard.undeclare()
    for name, array in sim.read_state().items():
        np.testing.assert_array_equal(array, expected.read_state()[name], err_msg=name)


def test_ticks_step_without_new_commands(sessions: tuple[Any, Ros]) -> None:
    session, ros = sessions
    sim = cart()
    with RosBridge(sim, session=session, lockstep=True) as bridge:
        ros.command(3.0)
        ros.send("/tick", TICK, 0)
        bridge.run(0.002)
        assert sim.time == pytest.approx(0.002) and sim.control["push"][0] == 3.0


def test_lockstep_without_messages_ends_with_an_error(sessions: tuple[Any, Ros]) -> None:
    session, _ = sessions
    with RosBridge(cart(), session=session, lockstep=True, timeout=0.2) as bridge:
        with pytest.raises(gpusim.SimulationError, match=naming("/commands /tick 0.2")):
            bridge.run(0.001)


def test_without_lockstep_the_newest_commands_act(sessions: tuple[Any, Ros]) -> None:
    session, ros = sessions
    sim = cart()
    with RosBridge(sim, session=session) as bridge:
        bridge(sim, 0.0)
        ros.command(1.0)
        ros.command(2.0)
        ros.send("/tick", TICK, 0)
        until(lambda: bridge._received.qsize() == 3)
        assert gpusim.run_clock(sim, bridge, duration=0.005, realtime=False).cycles == 5
        assert sim.control["push"][0] == 2.0


def test_bad_messages_and_arguments_are_refused(sessions: tuple[Any, Ros], monkeypatch: pytest.MonkeyPatch) -> None:
    session, ros = sessions
    sim = cart()
    with RosBridge(sim, session=session, lockstep=True) as bridge:
        ros.command(1.0, 2.0)
        with pytest.raises(gpusim.ModelError, match=naming("2 numbers 1 commands push")):
            bridge.run(0.001)
        ros.command(float("nan"))
        with pytest.raises(gpusim.ModelError, match=naming("'push' finite")):
            bridge.run(0.001)
        with pytest.raises(gpusim.ModelError, match=naming("commands decoded Float64MultiArray")):
            bridge._apply_commands(b"text")
    for wrong, words in (
        ({"namespace": "a b"}, "namespace 'a b'"),
        ({"domain": 233}, "domain 233"),
        ({"timeout": 0.0}, "timeout 0"),
        ({"connect": "localhost"}, "connect 'localhost'"),
    ):
        with pytest.raises(gpusim.ModelError, match=naming(words)):
            RosBridge(sim, **wrong)  # type: ignore[arg-type]
    with pytest.raises(gpusim.UnknownNameError, match=naming("'pusch' 'push'")):
        RosBridge(sim, "pusch", session=session)
    with pytest.warns(UserWarning, match="no Zenoh router at 'tcp/localhost:7461'"):
        RosBridge(sim, connect="tcp/localhost:7461").close()
    monkeypatch.setitem(sys.modules, "rosbags.typesys", None)
    with pytest.raises(gpusim.ModelError, match=naming("rosbags gpusim[ros]")):
        RosBridge(sim, session=session)
