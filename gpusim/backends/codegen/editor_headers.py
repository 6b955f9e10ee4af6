"""Generated sources and compile commands for editors: ``gpusim doctor --headers``."""

from __future__ import annotations

import json
import os
import tempfile
from importlib import resources
from pathlib import Path

import numpy as np

from gpusim.actuators import PACKAGE_KINDS
from gpusim.backends.codegen.kernel_sources import define_flags
from gpusim.backends.codegen.variants import Variant, generated_headers, make_variant, rays_variant, signals_variant
from gpusim.backends.kinds import Kinds, check_kernels, kinds_of
from gpusim.errors import ModelError
from gpusim.model.model import Model

COMMANDS = "compile_commands.json"
_KERNELS = Path(str(resources.files("gpusim.cuda_kernels"))).resolve()


def write_headers(folder: str | os.PathLike[str], model: Model | None = None) -> list[Path]:
    """Write the generated sources of the kernels, and ``compile_commands.json``.

    Args:
        folder: target folder. The function creates the folder if it is missing.
        model: model with custom actuator kinds to include. By default, the headers contain the built-in kinds.

    Returns:
        The paths of the files.

    Raises:
        ModelError: the folder is not writable, or the kernels of a custom actuator kind are invalid.
    """
    target = Path(folder).absolute()
    texts = _texts(target, kinds_of(model) if model else PACKAGE_KINDS)
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=".headers-") as scratch:
            for root in (Path(scratch), target):
                for name in texts:
                    (root / name).parent.mkdir(exist_ok=True)
            for name, text in texts.items():
                (Path(scratch) / name).write_text(text, encoding="utf-8")
            for name in texts:
                os.replace(Path(scratch) / name, target / name)
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"headers: {str(target)!r} can't be written ({reason}); name another folder") from error
    return [target / name for name in texts]


def _texts(folder: Path, kinds: Kinds) -> dict[str, str]:
    check_kernels(kinds)
    double = np.dtype(np.float64)
    builds = [make_variant(main, double, double, True, shapes=2, kinds=kinds) for main in ("fused.cu", "staged.cu")]
    builds += [signals_variant(double, double, kinds), rays_variant(kinds)]
    commands = json.dumps([_command(folder, build) for build in builds], indent=2) + "\n"
    made = {name: text for build in reversed(builds) for name, text in build.generated.items()}
    return made | generated_headers(double, kinds) | {COMMANDS: commands}


def _command(folder: Path, build: Variant) -> dict[str, object]:
    source = str(_KERNELS / build.main)
    flags = ["-x", "c++", "-std=c++17", "-fsyntax-only", "-I", str(folder), "-I", str(_KERNELS)]
    return {
        "directory": str(folder),
        "file": source,
        "arguments": ["c++", *flags, *define_flags(build.defines), source],
    }
