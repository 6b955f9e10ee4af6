"""Arguments and options that several commands share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer


class Backend(str, Enum):
    """Backend of a simulation."""

    auto = "auto"
    numpy = "numpy"
    native = "native"
    cuda = "cuda"


class Precision(str, Enum):
    """Type of floating-point numbers."""

    float32 = "float32"
    float64 = "float64"


class JointSolver(str, Enum):
    """Solver of the joint constraints."""

    auto = "auto"
    direct = "direct"
    colored = "colored"


class Scheme(str, Enum):
    """Time-stepping scheme."""

    second_order = "second_order"
    semi_implicit = "semi_implicit"


class Quality(str, Enum):
    """Render quality."""

    auto = "auto"
    high = "high"
    medium = "medium"
    software = "software"


_Options = TypeVar("_Options")


def pick(options: type[_Options], given: Mapping[str, Any], **others: Any) -> _Options:
    """Build a dataclass of type ``options``. Each field gets the command-line argument with the same name.

    If an argument is None, the field keeps its default. Values in ``others`` override command-line arguments.
    """
    fields = {field.name for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    values = {name: _plain(value) for name, value in given.items() if name in fields and value is not None}
    return options(**values | others)


def _plain(value: Any) -> Any:
    """Convert an Enum to its value and a list to a tuple. Return other values unchanged."""
    if isinstance(value, Enum):
        return value.value
    return tuple(value) if isinstance(value, list) else value


_TARGET = (
    "A scene (see 'gpusim list'), a model file (.urdf, .xml, .sdf, .usd), a machine's .yaml file, "
    "machine.py with build(), or module:function."
)
TargetArgument = Annotated[str, typer.Argument(metavar="SCENE|FILE", help=_TARGET)]
TargetsArgument = Annotated[list[str], typer.Argument(metavar="SCENE|FILE...", help=_TARGET)]
DrawnArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENE|FILE|RECORDING",
        help="A scene, a model file, a machine's .yaml or .py file, module:function, or a motion that "
        "'gpusim view --record' wrote.",
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the scene. You can repeat this option."),
]
DtOption = Annotated[float | None, typer.Option(help="Time step, s (default: the scene's).")]
BackendOption = Annotated[Backend, typer.Option(help="Backend. auto selects cuda for many worlds, else native.")]
NumWorldsOption = Annotated[int, typer.Option(help="Number of copies of the scene (worlds).")]
MaxWorldsOption = Annotated[int, typer.Option(help="Maximum number of worlds to draw.")]
WorldOption = Annotated[int | None, typer.Option(help="Draw this world alone.")]
CameraOption = Annotated[
    str | None,
    typer.Option(
        metavar="X,Y,Z,TX,TY,TZ|VIEW|CAMERA",
        help="Eye and target (m), a view (scene, fit, front, back, left, right, top), or a camera of the model.",
    ),
]
FollowOption = Annotated[str | None, typer.Option(metavar="BODY", help="Move the camera with this body.")]
OverlayOption = Annotated[
    list[str] | None,
    typer.Option(
        "--overlay",
        metavar="NAME[,NAME]",
        help="Draw over the scene: contacts, joints, mass, colors, boxes, wireframe, labels, pressure, profile, rays.",
    ),
]
VisualsOption = Annotated[bool, typer.Option(help="Draw the visual shapes of robots, or their collision shapes.")]
DecorationOption = Annotated[
    bool | None,
    typer.Option(
        "--decoration/--no-decoration",
        help="Draw joints, springs, cylinders, and bodies without shapes (default: yes, except for model files).",
    ),
]
QualityOption = Annotated[Quality, typer.Option(help="Render quality; auto depends on the renderer.")]
SeedOption = Annotated[int | None, typer.Option(help="Seed of scenes that draw random numbers.")]
FixedBaseOption = Annotated[
    bool, typer.Option("--fixed-base", help="Model files: fix the base and let the joints swing freely.")
]
FloatingOption = Annotated[bool, typer.Option("--floating", help="Model files: let the base float.")]
PoseOption = Annotated[str | None, typer.Option(metavar="NAME", help="Start in this posture (see 'gpusim list FILE').")]
FloorOption = Annotated[bool, typer.Option("--floor", help="Model files: add a plane below the model.")]
PolicyOption = Annotated[
    Path | None,
    typer.Option(metavar="POLICY.NPZ", help="Let a learned policy write the commands, with the settings of its task."),
]
UdpOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT[,FRAME]", help="Send poses over UDP; FRAME is gpusim, unity or unreal."),
]
ReplayOption = Annotated[
    Path | None,
    typer.Option(metavar="OPERATOR.JSONL", help="Replay the commands of an operator recording."),
]
MaxDtOption = Annotated[
    float | None, typer.Option(metavar="S", help="Maximum step size if the computer is too slow for real time, s.")
]
MotionOption = Annotated[
    Path | None, typer.Option(metavar="MOTION.NPZ", help="Write the motion of all bodies to this file.")
]
MappingOption = Annotated[
    str, typer.Option(metavar="NAME|FILE", help="Mapping of keys and gamepad: auto, iso, sae, wheeled, or a file.")
]
PanelOption = Annotated[bool, typer.Option("--panel/--no-panel", help="Show the operator panel (Tab hides it).")]
WebOption = Annotated[bool, typer.Option("--web", help="Serve a page for browsers instead of opening a window.")]
HostOption = Annotated[
    str, typer.Option(metavar="NAME", help="Address of the page; 0.0.0.0 lets other computers connect.")
]
PortOption = Annotated[int, typer.Option(metavar="N", help="Port of the page; 0 selects a free port.")]
RerunOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Stream to a Rerun viewer instead of a window: rerun+http://127.0.0.1:9876/proxy."
    ),
]
SignalsOption = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Signals to record instead of the scene's; * and ? match many names."),
]
OutOption = Annotated[
    Path | None,
    typer.Option(metavar="RUN.NPZ", help="Record the signals in this .npz, .parquet, .mcap, .csv or .rrd file."),
]
RateOption = Annotated[
    float | None, typer.Option(metavar="HZ", help="Samples per second in this file (default: every step).")
]
SaveOption = Annotated[
    Path | None, typer.Option(metavar="RUN.NPZ", help="Write a checkpoint to this file when the run ends.")
]
ResumeOption = Annotated[
    Path | None, typer.Option(metavar="RUN.NPZ", help="Continue from a checkpoint that --save has written.")
]
