"""Poses over UDP: packets, rates, axes of other programs."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import numpy as np
import pytest

import gpusim
from gpusim.cosim import UdpPoses
from gpusim.cosim.pose_packets import FRAMES
from gpusim.rotations import matrix_from_quaternion
from tests.backends import FASTEST
from tests.message_snapshot import naming

HEADER = struct.Struct("<4sBBBBIHHHHId")


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        made.settimeout(5.0)
        yield made


def address(receiver: socket.socket) -> str:
    return f"127.0.0.1:{receiver.getsockname()[1]}"


def boxes(count: int = 2, num_worlds: int = 1) -> gpusim.Simulation:
    builder = gpusim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for k in range(count):
        place = gpusim.Transform.from_axis_angle((k, 2.0, 3.0), axis=(0.0, 0.6, 0.8), angle=0.1 * k)
        body = builder.add_body(mass=1.0, xform=place, label=f"box{k}", linear_velocity=(0.0, 0.0, 1.0))
        builder.add_shape_box(body, half_extents=(0.1, 0.1, 0.1))
    return gpusim.Simulation(builder.finalize(), num_worlds, backend=FASTEST, config=gpusim.SolverConfig(dt=1e-3))


def received(receiver: socket.socket) -> tuple[dict[str, float], bytes]:
    names = (
        "magic",
        "version",
        "kind",
        "frame",
        "size",
        "sequence",
        "first",
        "count",
        "total",
        "world",
        "zero",
        "time",
    )
    data = receiver.recv(65536)
    return dict(zip(names, HEADER.unpack_from(data), strict=True)), data[HEADER.size :]


def labels(rest: bytes) -> list[str]:
    found = []
    while rest:
        size = int.from_bytes(rest[:2], "little")
        found.append(rest[2 : 2 + size].decode())
        rest = rest[2 + size :]
    return found


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("float64", 8)])
def test_packets_hold_labels_and_poses(receiver: socket.socket, dtype: str, size: int) -> None:
    sim = boxes(num_worlds=2)
    with UdpPoses(sim, address(receiver), "box*", rate=100.0, dtype=dtype, world=1) as sender:
        header, rest = received(receiver)
        assert (header["magic"], header["version"], header["kind"]) == (b"GPSM", 1, 1)
        assert labels(rest) == sender.labels == ["box0", "box1"]
        sim.step(25)
        for sequence, time in enumerate((0.0, 0.01, 0.02)):
            header, rest = received(receiver)
            assert [header[n] for n in ("kind", "frame", "size", "sequence", "first", "count", "total", "world")] == [
                0, 0, size, sequence, 0, 2, 2, 1,
            ]  # fmt: skip
            assert header["time"] == pytest.approx(time)
            poses = np.frombuffer(rest, f"<f{size}").reshape(2, 7)
        sim.step(5)
        assert sender.sent == 4 and sender.dropped == 0
    np.testing.assert_allclose(poses[1, :3], (1.0, 2.0, 3.02), rtol=1e-6)
    np.testing.assert_allclose(poses[1, 3:], (0.0, 0.6 * np.sin(0.05), 0.8 * np.sin(0.05), np.cos(0.05)), atol=1e-7)
    sim.step(100)  # closed
    assert sender.sent == 4 and not sim.runtime.samplers


def test_labels_are_sent_again_each_second(receiver: socket.socket) -> None:
    sim = boxes()
    with UdpPoses(sim, address(receiver), rate=10.0):
        sim.step(2100)
        kinds = [received(receiver)[0]["kind"] for _ in range(3 + 22)]
    assert [k for k, kind in enumerate(kinds) if kind == 1] == [0, 11, 22]


def test_many_bodies_are_split_into_packets(receiver: socket.socket) -> None:
    sim = boxes(300)
    with UdpPoses(sim, address(receiver)) as sender:
        names, poses = {}, np.zeros((300, 7))
        while len(names) < 300 or not poses.any(axis=1).all():
            header, rest = received(receiver)
            assert len(rest) + HEADER.size <= 1400 and header["total"] == 300
            part = range(int(header["first"]), int(header["first"] + header["count"]))
            if header["kind"]:
                names |= dict(zip(part, labels(rest), strict=True))
            else:
                poses[part.start : part.stop] = np.frombuffer(rest, "<f4").reshape(-1, 7)
    assert [names[k] for k in range(300)] == sender.labels
    np.testing.assert_allclose(poses[:, 0], range(300))


@pytest.mark.parametrize(
    ("program", "forward", "up", "left", "quarter_about_up"),
    [
        ("gpusim", (1, 0, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1, 1)),
        ("unity", (0, 0, 1), (0, 1, 0), (-1, 0, 0), (0, -1, 0, 1)),
        ("unreal", (100, 0, 0), (0, 0, 100), (0, -100, 0), (0, 0, -1, 1)),
    ],
)
def test_axes_of_other_programs(program: str, forward, up, left, quarter_about_up) -> None:
    frame = FRAMES[program]
    half = np.sqrt(0.5)
    known = np.zeros((4, 7))
    known[:3, :3], known[:, 6] = [(1, 0, 0), (0, 0, 1), (0, 1, 0)], 1.0
    known[3, 3:] = (0.0, 0.0, half, half)
    found = frame.converted(known)
    np.testing.assert_allclose(found[:3, :3], (forward, up, left), atol=1e-12)
    np.testing.assert_allclose(found[3, 3:], half * np.array(quarter_about_up), atol=1e-12)
    draws = np.random.default_rng(5).normal(size=(20, 7))
    draws[:, 3:] /= np.linalg.norm(draws[:, 3:], axis=1, keepdims=True)
    turned = draws.copy()
    turned[:, :3] = np.einsum("nij,nj->ni", matrix_from_quaternion(draws[:, 3:]), draws[:, :3])
    theirs, expected = frame.converted(draws), frame.converted(turned)
    rotated = np.einsum("nij,nj->ni", matrix_from_quaternion(theirs[:, 3:]), theirs[:, :3])
    np.testing.assert_allclose(rotated, expected[:, :3], atol=1e-9)


def test_a_network_that_refuses_does_not_stop_the_run(receiver: socket.socket) -> None:
    sim = boxes()
    sender = UdpPoses(sim, address(receiver), rate=None)
    sender._socket.close()
    sim.step(3)
    assert (sender.sent, sender.dropped) == (4, 3)
    sender.close()


def test_bad_arguments_are_refused() -> None:
    sim = boxes()
    for bad in ("localhost", "localhost:0", ":9000", "localhost:port"):
        with pytest.raises(gpusim.ModelError, match=naming("HOST:PORT")):
            UdpPoses(sim, bad)
    with pytest.raises(gpusim.UnknownNameError, match=naming("'box7' 'box0'")):
        UdpPoses(sim, "localhost:9000", "box7")
    with pytest.raises(gpusim.UnknownNameError, match=naming("'unity3d' 'unity'")):
        UdpPoses(sim, "localhost:9000", frame="unity3d")
    with pytest.raises(gpusim.ModelError, match=naming("rate 1000")):
        UdpPoses(sim, "localhost:9000", rate=5000.0)
    with pytest.raises(gpusim.ModelError, match=naming("3")):
        UdpPoses(sim, "localhost:9000", world=3)
    assert not sim.runtime.samplers
