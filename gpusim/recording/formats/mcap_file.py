"""MCAP files for Foxglove: Protobuf messages with the simulated time as timestamp (ns).

Each message has one sample of all signals of one model element. For example, the signal ``joint.rail.position`` is the
field ``position`` of the topic ``/joint/rail``. A field contains one number, or a list with all components for all
recorded worlds. The topic ``/tf`` contains the body poses, and ``/scene`` contains the meshes. The topic ``/spans``
contains a cylinder for each element between two bodies (spring, rope, rod). The topics ``/tf``, ``/scene`` and
``/spans`` show the first recorded world. If the dtype of the recording is float32, poses also have single precision.
Each block of samples is one MCAP chunk. During the recording, NAME.mcap.part is an MCAP file without the end section.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.output_files import atomic_file
from gpusim.recording.formats.mcap_scene import McapScene, rounded, transforms
from gpusim.recording.formats.npz_file import recording
from gpusim.recording.formats.writer import Writer
from gpusim.recording.layout import Block, Layout, require
from gpusim.recording.samples import Recording
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.model.model import Model

_PACKAGES = "mcap and foxglove-schemas-protobuf"
_MAGIC = b"\x89MCAP0\r\n"
_WHOLE = 1 << 40
"""Chunk size limit (bytes), larger than any block, so that each block becomes one chunk."""
_NS = 1e9
_LENGTH, _FIXED64, _FIXED32 = 2, 1, 5
"""Wire types (binary encodings) of Protobuf."""


class McapWriter(Writer):
    """Writer of MCAP files, based on the library mcap and Foxglove's schemas."""

    poses = True

    @classmethod
    def prepare(cls) -> None:
        """Check that the libraries are installed."""
        require("mcap.writer", ".mcap", _PACKAGES)
        require("foxglove_schemas_protobuf", ".mcap", _PACKAGES)

    def __init__(self, part: Path | str, layout: Layout, model: Model | None) -> None:
        self._stream = open(part, "wb")  # noqa: SIM115 (open until close)
        self._writer, self._layout = _writer(self._stream), layout
        self._scene = None if model is None or not layout.bodies else McapScene(model)
        self._spans: int | None = None
        self._writer.add_metadata("gpusim", {"layout": layout.to_json()})
        self._stream.flush()
        self._topics = [(topic, self._channel(topic.path, *topic.schema())) for topic in topics(layout)]
        self._transforms: int | None = None

    def _channel(self, path: str, name: str, schema: bytes) -> int:
        number = self._writer.register_schema(name=name, encoding="protobuf", data=schema)
        return int(self._writer.register_channel(topic=path, message_encoding="protobuf", schema_id=number))

    def write(self, block: Block) -> None:
        """Append a block of samples."""
        times = np.rint(block.time * _NS).astype(np.int64).tolist()
        messages = [(channel, topic.messages(block.values)) for topic, channel in self._topics]
        if self._layout.bodies:
            if self._transforms is None:
                self._add_scene(times[0])
                self._transforms = self._channel("/tf", *_schema("FrameTransforms"))
            poses = rounded(block.poses, self._layout.dtype)
            messages.append((self._transforms, transforms(poses, self._layout.bodies, times)))
            if self._spans is not None and self._scene is not None:
                messages.append((self._spans, self._scene.spans(poses, self._layout.dtype)))
        for k, time in enumerate(times):
            for channel, data in messages:
                self._writer.add_message(channel_id=channel, log_time=time, publish_time=time, data=data[k])
        self._writer.flush()

    def _add_scene(self, time: int) -> None:
        if self._scene is None:
            return
        channel = self._channel("/scene", *_schema("SceneUpdate"))
        self._writer.add_message(channel_id=channel, log_time=time, publish_time=time, data=self._scene.meshes())
        if not self._scene.stage.fixed.all():
            self._spans = self._channel("/spans", *_schema("SceneUpdate"))

    def close(self) -> None:
        """Write the end section of the file."""
        if not self._stream.closed:
            with self._stream:
                self._writer.finish()

    @staticmethod
    def finish(part: Path, path: Path) -> None:
        """Rename the ``.part`` file if it is complete.

        If the recording was interrupted, write a new file with the complete chunks.
        """
        with open(part, "rb") as stream:
            stream.seek(max(part.stat().st_size - len(_MAGIC), 0))
            complete = stream.read() == _MAGIC and part.stat().st_size > 2 * len(_MAGIC)
        if complete:
            part.replace(path)
            return
        with atomic_file(path) as copy:
            _copy(part, _writer(copy))
        part.unlink()

    @staticmethod
    def read(path: Path) -> Recording:
        """Read the signals of a complete file or a ``.part`` file."""
        require("mcap.writer", ".mcap", _PACKAGES)
        from mcap.records import Channel, Message, Metadata

        layout, channels = None, dict[int, str]()
        times: list[int] = []
        found: dict[str, list[bytes]] = {}
        for record in _records(path):
            if isinstance(record, Metadata) and record.name == "gpusim":
                layout = Layout.from_json(record.metadata["layout"])
                found = {topic.path: [] for topic in topics(layout)}
            elif isinstance(record, Channel):
                channels[record.id] = record.topic
            elif isinstance(record, Message) and channels[record.channel_id] in found:
                path_of_topic = channels[record.channel_id]
                found[path_of_topic].append(record.data)
                if path_of_topic == next(iter(found)):
                    times.append(record.log_time)
        if layout is None:
            raise ValueError("it contains no signals of gpusim")
        values = np.empty((len(times), len(layout.worlds), layout.width), layout.dtype)
        for topic in topics(layout):
            topic.read(found[topic.path], values)
        return recording([(np.array(times, float) / _NS, values)], layout)


def _writer(stream: Any) -> Any:
    from mcap.writer import Writer as Mcap

    writer = Mcap(stream, chunk_size=_WHOLE)
    writer.start(library="gpusim")
    return writer


def _records(path: Path) -> Iterator[Any]:
    """Yield the records in the complete chunks of a file."""
    from mcap.exceptions import McapError
    from mcap.stream_reader import StreamReader
    from zstandard import ZstdError

    with open(path, "rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it is not an MCAP file")
        stream.seek(0)
        records = StreamReader(stream, record_size_limit=path.stat().st_size).records
        while True:
            try:
                yield next(records)
            except (StopIteration, McapError, ZstdError, struct.error):
                return


def _copy(part: Path, writer: Any) -> None:
    from mcap.records import Channel, Message, MessageIndex, Metadata, Schema

    for record in _records(part):
        if isinstance(record, Metadata):
            writer.add_metadata(record.name, record.metadata)
        elif isinstance(record, Schema):
            writer.register_schema(record.name, record.encoding, record.data)
        elif isinstance(record, Channel):
            writer.register_channel(record.topic, record.message_encoding, record.schema_id, record.metadata)
        elif isinstance(record, Message):
            writer.add_message(record.channel_id, record.log_time, record.data, record.publish_time)
        elif isinstance(record, MessageIndex):
            writer.flush()
    writer.finish()


class Topic:
    """Signals of one model element, encoded as a Protobuf message with fixed byte offsets.

    Attributes:
        path: path of the topic, such as ``/joint/rail``.
    """

    def __init__(self, path: str, name: str, layout: Layout) -> None:
        self.path, self._name, self._layout = path, name, layout
        self._fields: list[tuple[str, str, int]] = []

    def add(self, signal: str) -> None:
        """Add a signal as a field."""
        at = self._layout.slices[signal]
        name, taken = _identifier(signal.rpartition(".")[2]), [field for field, _, _ in self._fields]
        name = name if name not in taken else f"{name}_{len(taken)}"
        self._fields.append((name, signal, (at.stop - at.start) * len(self._layout.worlds)))

    def schema(self) -> tuple[str, bytes]:
        """Return the name of the message type and its serialized descriptor."""
        from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

        described = FileDescriptorSet()
        file = described.file.add(name=f"gpusim/{self._name}.proto", package="gpusim", syntax="proto3")
        message = file.message_type.add(name=self._name)
        kind = FieldDescriptorProto.TYPE_FLOAT if self._layout.dtype == "float32" else FieldDescriptorProto.TYPE_DOUBLE
        for number, (name, _, size) in enumerate(self._fields, 1):
            label = FieldDescriptorProto.LABEL_OPTIONAL if size == 1 else FieldDescriptorProto.LABEL_REPEATED
            message.field.add(name=name, number=number, type=kind, label=label)
        return f"gpusim.{self._name}", bytes(described.SerializeToString())

    def _record(self) -> tuple[np.dtype[Any], bytes]:
        """Return the NumPy data type of a message, and the bytes of a message with zeros."""
        dtype, parts, zeros = np.dtype(self._layout.dtype).newbyteorder("<"), list[Any](), b""
        for number, (_, signal, size) in enumerate(self._fields, 1):
            if size == 1:
                tag = _varint(number << 3 | (_FIXED32 if dtype.itemsize == 4 else _FIXED64))
            else:
                tag = _varint(number << 3 | _LENGTH) + _varint(size * dtype.itemsize)
            parts += [(f"tag {signal}", np.void, len(tag)), (signal, dtype, (size,))]
            zeros += tag + bytes(size * dtype.itemsize)
        return np.dtype(parts), zeros

    def messages(self, values: Array) -> list[bytes]:
        """Return one message per sample. The shape of ``values`` is (samples, worlds, width)."""
        dtype, zeros = self._record()
        found = np.frombuffer(bytearray(zeros * len(values)), dtype)
        for _, signal, _ in self._fields:
            found[signal] = values[:, :, self._layout.slices[signal]].reshape(len(values), -1)
        data = found.tobytes()
        return [data[k : k + dtype.itemsize] for k in range(0, len(data), dtype.itemsize)]

    def read(self, messages: list[bytes], values: Array) -> None:
        """Copy this topic's signals from messages into ``values``."""
        found = np.frombuffer(b"".join(messages), self._record()[0])
        for _, signal, _ in self._fields:
            at = self._layout.slices[signal]
            values[:, :, at] = found[signal].reshape(*values.shape[:2], at.stop - at.start)


def topics(layout: Layout) -> list[Topic]:
    """Return the topics of a recording. Each topic contains the signals of one model element."""
    found: dict[str, Topic] = {}
    names: set[str] = set()
    for signal in layout.shapes:
        path = "/" + signal.rpartition(".")[0].replace(".", "/")
        if path not in found:
            name = _identifier(path[1:])
            while name in names:
                name += "_"
            names.add(name)
            found[path] = Topic(path, name, layout)
        found[path].add(signal)
    return list(found.values())


def _identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return name if name and not name[0].isdigit() else f"_{name}"


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _schema(message: str) -> tuple[str, bytes]:
    """Return the name and the serialized descriptor of a Foxglove message type."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    module = require(f"foxglove_schemas_protobuf.{message}_pb2", ".mcap", _PACKAGES)
    described, seen = FileDescriptorSet(), set[str]()

    def add(file: Any) -> None:
        if file.name not in seen:
            seen.add(file.name)
            for needed in file.dependencies:
                add(needed)
            file.CopyToProto(described.file.add())

    add(module.DESCRIPTOR)
    return f"foxglove.{message}", described.SerializeToString()
