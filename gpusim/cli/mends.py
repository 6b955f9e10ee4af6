"""The one command that mends what ``gpusim doctor`` finds missing."""

from __future__ import annotations

import ctypes
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gpusim.backends.link_cuda import LIBRARIES
from gpusim.backends.nvrtc import NvrtcMissingError, load_nvrtc
from gpusim.compile_cache import CompileError, check_cache

CUDA_12, CUDA_13 = 12000, 13000
"""Versions of CUDA as the driver gives them."""

_NVIDIA = "0x10de"
# Package managers in the order in which they are looked for: command, and names of a package where they differ.
_MANAGERS: dict[str, tuple[str, dict[str, str]]] = {
    "apt": (
        "sudo apt install",
        {"compiler": "g++", "openmp": "libgomp1", "egl": "libegl1", "opengl": "libegl1 libgl1 libgl1-mesa-dri"},
    ),
    "dnf": (
        "sudo dnf install",
        {"compiler": "gcc-c++", "openmp": "libgomp", "egl": "mesa-libEGL", "opengl": "mesa-libEGL mesa-dri-drivers"},
    ),
    "pacman": ("sudo pacman -S", {"compiler": "gcc", "openmp": "gcc-libs", "egl": "libglvnd", "opengl": "mesa"}),
    "zypper": (
        "sudo zypper install",
        {"compiler": "gcc-c++", "openmp": "libgomp1", "egl": "Mesa-libEGL1", "opengl": "Mesa Mesa-libEGL1"},
    ),
    "apk": (
        "sudo apk add",
        {"compiler": "g++", "openmp": "libgomp", "egl": "mesa-egl", "opengl": "mesa-egl mesa-gl mesa-dri-gallium"},
    ),
    "brew": ("brew install", {"compiler": "gcc", "openmp": "libomp", "egl": "", "opengl": ""}),
    "winget": ("winget install", {"compiler": "MartinStorsjo.LLVM-MinGW.UCRT", "openmp": "", "egl": "", "opengl": ""}),
}


def install(part: str) -> str:
    """The command that installs a system package; empty if this system's package manager is not known.

    Args:
        part: "compiler", "openmp", "egl" or "opengl".
    """
    if part == "compiler" and sys.platform == "darwin":
        return "xcode-select --install"
    for manager, (command, names) in _MANAGERS.items():
        if names[part] and shutil.which(manager):
            return f"{command} {names[part]}"
    return ""


def driver_cuda_version() -> int:
    """The newest CUDA that the NVIDIA driver serves, e.g. 13000; 0 without a driver."""
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            number = ctypes.c_int(0)
            if library.cuDriverGetVersion(ctypes.byref(number)) == 0:
                return number.value
        except (OSError, AttributeError):
            continue
    return 0


def has_nvidia_card() -> bool:
    """Whether the computer holds an NVIDIA card, with a driver or without (Linux only)."""
    try:
        vendors = [file.read_text().strip() for file in Path("/sys/bus/pci/devices").glob("*/vendor")]
    except OSError:
        return False
    return _NVIDIA in vendors


def mend_cuda(driver: int | None = None) -> str:
    """The command after which the cuda backend works, or is one step nearer; empty if there is no such command.

    Args:
        driver: what ``driver_cuda_version`` gave; asked for where None.
    """
    driver = driver_cuda_version() if driver is None else driver
    if not driver:
        return _install_driver() if has_nvidia_card() else ""
    if driver < CUDA_12:
        return _install_driver()
    wanted = "13" if driver >= CUDA_13 else "12"
    found = cupy_packages()
    pip = f"{_pip()} install"
    if "cupy-cuda13x" in found and wanted == "12":
        return f'{_pip()} uninstall -y cupy-cuda13x && {pip} "gpusim[cuda12]"'
    if not found:
        return f'{pip} "gpusim[cuda{wanted}]"'
    try:
        load_nvrtc()
    except NvrtcMissingError:
        return f"{pip} " + ("nvidia-cuda-nvrtc-cu12" if "cupy-cuda12x" in found else "nvidia-cuda-nvrtc")
    return ""


def mend_backend(name: str) -> str:
    """The command that makes the backend ``name`` work; empty if there is none."""
    if name == "cuda":
        return mend_cuda()
    if name == "native":
        try:
            check_cache()
        except CompileError:
            return ""  # what is wrong with the folder is told by itself
        return install("compiler")
    return f"{_pip()} install --upgrade gpusim"


def cupy_packages() -> list[str]:
    """Installed distributions of CuPy."""
    found = []
    for name in ("cupy-cuda12x", "cupy-cuda13x", "cupy"):
        try:
            version(name)
        except PackageNotFoundError:
            continue
        found.append(name)
    return found


def _install_driver() -> str:
    if shutil.which("ubuntu-drivers"):
        return "sudo ubuntu-drivers install"
    for manager, command in (("apt", "sudo apt install nvidia-driver"), ("dnf", "sudo dnf install akmod-nvidia")):
        if shutil.which(manager):
            return command
    return ""


def _pip() -> str:
    return "pip" if sys.platform != "win32" else "py -m pip"
