"""``gpusim run --udp``."""

from __future__ import annotations

import socket


def test_a_run_sends_poses(cli) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5.0)
        address = f"127.0.0.1:{receiver.getsockname()[1]}"
        arguments = ("run", "double_pendulum", "--duration", 0.1, "--backend", "numpy")
        result = cli(*arguments, "--udp", f"{address},unity")
        assert result.exit_code == 0, result.output
        packets = [receiver.recv(2000) for _ in range(8)]
        assert all(packet[:4] == b"GPSM" and packet[6] == 1 for packet in packets)
        assert [packet[5] for packet in packets] == [1] + 7 * [0]
    for bad, words in (("localhost", "HOST:PORT"), ("127.0.0.1:9000,godot", "'godot'")):
        result = cli(*arguments, "--udp", bad)
        assert result.exit_code == 2 and words in result.stderr, result.output
