"""Names and message attachments of rmw_zenoh, the ROS 2 middleware on Zenoh.

A topic is a Zenoh key ``domain/topic/type/hash``. Zenoh liveliness tokens under ``@ros2_lv`` make nodes and topics
visible to ``ros2 topic list``. See https://github.com/ros2/rmw_zenoh/blob/rolling/docs/design.md.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from gpusim import validate

PUBLISHER, SUBSCRIPTION = "MP", "MS"
_QOS = "::,10:,:,:,,"
"""Quality of service: reliable, volatile, keep last 10."""
_NAMES = re.compile(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True)
class Topic:
    """A ROS 2 topic.

    Attributes:
        name: name with a leading slash.
        type: type of the messages, such as "sensor_msgs/msg/JointState".
        hash: hash of the type, "RIHS01_...".
    """

    name: str
    type: str
    hash: str

    @property
    def dds_type(self) -> str:
        """Return the DDS name of the type, such as ``sensor_msgs::msg::dds_::JointState_``."""
        package, kind, name = self.type.split("/")
        return f"{package}::{kind}::dds_::{name}_"

    def key(self, domain: int, any_hash: bool = False) -> str:
        """Return the Zenoh key of the topic.

        With ``any_hash``, the key matches all versions of the message type.
        """
        return f"{domain}/{self.name.strip('/')}/{self.dds_type}/{'*' if any_hash else self.hash}"


@dataclass(frozen=True)
class Node:
    """A ROS 2 node that belongs to a Zenoh session.

    Attributes:
        domain: value of ROS_DOMAIN_ID.
        session: id of the Zenoh session.
        namespace: namespace of the node, such as "/robot", or "".
        name: name of the node.
    """

    domain: int
    session: str
    namespace: str
    name: str

    def token(self) -> str:
        """Return the liveliness token of the node."""
        return f"{self._token_prefix(0, 'NN')}"

    def endpoint(self, number: int, kind: str, topic: Topic) -> str:
        """Return the liveliness token of a publisher or subscription. ``number`` must be unique in the session."""
        return f"{self._token_prefix(number, kind)}/{_escape(topic.name)}/{topic.dds_type}/{topic.hash}/{_QOS}"

    def _token_prefix(self, number: int, kind: str) -> str:
        return f"@ros2_lv/{self.domain}/{self.session}/0/{number}/{kind}/%/{_escape(self.namespace)}/{self.name}"


def _escape(name: str) -> str:
    return name.replace("/", "%") or "%"


def gid_of(token: str) -> bytes:
    """Return the 16-byte id of a publisher for message attachments."""
    return hashlib.blake2b(token.encode(), digest_size=16).digest()


def attachment(sequence: int, time: int, gid: bytes) -> Any:
    """Return a message attachment: sequence number, time (ns) and publisher, as in rmw_zenoh_cpp 0.2.4 or later."""
    from zenoh.ext import Int64, z_serialize

    return z_serialize((Int64(sequence), Int64(time), gid))


def checked_namespace(namespace: str) -> str:
    """Return a namespace with a leading slash, or "".

    Raises:
        ModelError: ROS 2 does not allow this name.
    """
    if namespace in ("", "/"):
        return ""
    if not isinstance(namespace, str) or not _NAMES.fullmatch(namespace):
        rule = f"namespace = {namespace!r} is not a ROS 2 name of letters, digits, _ and /"
        raise validate.fail("RosBridge", rule, "give e.g. '/robot'")
    return "/" + namespace.strip("/")
