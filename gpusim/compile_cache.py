"""Where compiled kernels are kept, and the error that every way of compiling raises."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpusim.errors import GpusimError

ERRORS_SHOWN = 5
OWN_FOLDER = "own"  # among the generated sources: kernels from outside the package, each by its kind's name
STALE_AFTER = 86400.0  # seconds after which a scratch folder must be a killed build's
SCRATCH_PREFIX = "build-"
TOLD_AFTER = 1.0  # seconds

# g++ and clang: "rows.cuh:12:3: error: ..."; NVRTC: "rows.cuh(12): error: ..."; ptxas and others name no line
_LINE_ERROR = re.compile(r"^(?P<file>[^\s:(][^:(\n]*)[:(](?P<line>\d+)[):][\d: ]*(?:\w+ )?error[^:\n]*: (?P<text>.*)$")
_BARE_ERROR = re.compile(r"^\s*\S+ ?(?:fatal|error)\s*: .*$|^\S+: (?:fatal )?error: .*$")
_OWN_SOURCE = re.compile(rf"\b{OWN_FOLDER}/(\w+)\.cuh\b")


class CompileError(GpusimError):
    """Kernels can't be compiled: no compiler, a cache that can't be written, or an error in a source."""


class BrokenCompilerError(CompileError):
    """Nothing can be compiled here, whatever the source: the compiler, its memory or the folder for kernels fails."""


def cache_folder() -> Path:
    """Folder of the compiled kernels; it need not exist yet.

    ``$GPUSIM_CACHE``, else ``$XDG_CACHE_HOME/gpusim``, else the platform's usual place: ``~/.cache/gpusim``,
    ``~/Library/Caches/gpusim`` on macOS, ``%LOCALAPPDATA%\\gpusim\\cache`` on Windows.

    Raises:
        CompileError: there is no home folder to put it in.
    """
    own = os.environ.get("GPUSIM_CACHE")
    if own:
        return _absolute(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared:
        return _absolute(shared) / "gpusim"
    local = os.environ.get("LOCALAPPDATA")
    if sys.platform == "win32" and local:
        return Path(local) / "gpusim" / "cache"
    usual = "~/Library/Caches/gpusim" if sys.platform == "darwin" else "~/.cache/gpusim"
    return _absolute(usual)


def check_cache() -> None:
    """Try whether the cache can be written.

    Raises:
        CompileError: it can't.
    """
    folder = cache_folder()
    with _writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def digest(parts: Iterable[str]) -> str:
    """Name for whatever depends on just these texts, in this order: 32 hexadecimal digits."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8")
        whole.update(b"%d:" % len(data))  # with its length, or ("ab", "c") would be ("a", "bc")
        whole.update(data)
    return whole.hexdigest()[:32]


def found(name: str) -> Path | None:
    """The cached file ``name``; None where it is missing or damaged.

    Raises:
        CompileError: the folder can't be read.
    """
    target = cache_folder() / name
    with _writable(target.parent):
        return target if _there(target) else None


def cached(name: str, make: Callable[[Path], bytes | Path], what: str = "") -> Path:
    """The cached file ``name``; where it is missing, what ``make`` makes of it.

    Several processes may ask at once and no lock is needed: each builds in a folder of its own and the file appears
    whole, under its final name, or not at all.

    Args:
        name: path within ``cache_folder()``.
        make: called with an empty scratch folder; returns the content, or a file in that folder.
        what: is made, in words, for those who wait; nothing is told where empty.

    Raises:
        CompileError: the folder can't be written; and what ``make`` raises.
    """
    target = cache_folder() / name
    with _writable(target.parent):
        if _there(target):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=target.parent))
    try:
        with _writable(target.parent):
            with _told(what):
                product = make(scratch)
            _publish(product, target, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def compile_error(main: str, tool: str, output: str) -> CompileError:
    """The error for a source that does not compile: the first errors of the compiler, by file and line.

    Args:
        main: the source that was compiled.
        tool: the compiler, in words.
        output: what the compiler wrote, its file names relative to the sources' folder.
    """
    found = _errors_of(output)
    shown = [f"  {line}" for line in found[:ERRORS_SHOWN]]
    if len(found) > ERRORS_SHOWN:
        shown.append(f"  ... and {len(found) - ERRORS_SHOWN} more errors")
    own = sorted(set(_OWN_SOURCE.findall(output)))
    mend = (
        f"the fault is in the kernel text of actuator kind {' or '.join(own)}: correct its kernel_source; "
        if own
        else "the fault is gpusim's or the compiler's, not your model's: report it with this message; "
    )
    return CompileError(
        f"{main} does not compile with {tool}:\n" + "\n".join(shown) + f"\n{mend}backend='numpy' needs no compiler"
    )


def _errors_of(output: str) -> list[str]:
    found = []
    for line in output.splitlines():
        match = _LINE_ERROR.match(line)
        if match:
            found.append(f"{match['file'].removeprefix('./')}:{match['line']}: error: {match['text']}")
        elif _BARE_ERROR.match(line) and not line.startswith("collect2"):  # which only says that ld has failed
            found.append(line.strip())
    # a compiler that dies, or a linker, leaves no line that looks like an error: then its last words
    return found or [line for line in output.splitlines() if line.strip()][-10:] or ["(the compiler said nothing)"]


def _absolute(path: str) -> Path:
    try:
        return Path(path).expanduser().absolute()  # compilers run in another folder
    except RuntimeError as error:
        raise CompileError(
            f"no folder for compiled kernels: {error}; set GPUSIM_CACHE to a folder that can be written"
        ) from error


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Tell people at a terminal what they wait for, once it takes its time."""
    if not what or not sys.stderr.isatty():
        yield
        return
    line = f"gpusim: compiling {what}; it is kept in {cache_folder()}\n"
    timer = threading.Timer(TOLD_AFTER, lambda: sys.stderr.write(line))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise no_room(folder, error.strerror or str(error)) from error


def no_room(folder: Path, reason: str) -> BrokenCompilerError:
    """The error for a folder that takes no compiled kernels."""
    return BrokenCompilerError(
        f"compiled kernels can't be kept in {folder}: {reason}; set GPUSIM_CACHE to a folder that can be written"
    )


def forget(target: Path) -> None:
    """Take a file that turned out to be useless out of the cache."""
    with suppress(OSError):
        target.unlink()


def kept_like(pattern: str) -> Path | None:
    """The newest whole file of the cache whose path within it matches; None where there is none."""
    with suppress(OSError, CompileError):
        files = sorted(cache_folder().glob(pattern), key=lambda file: file.stat().st_mtime, reverse=True)
        return next((file for file in files if _there(file)), None)
    return None


def _there(target: Path) -> bool:
    """Whether the file is in the cache, as it was written: a damaged one (a power cut, a full disk) does not count."""
    try:
        return _checksum_file(target).read_text(encoding="ascii") == _checksum(target)
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return False


def _checksum_file(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _publish(product: bytes | Path, target: Path, scratch: Path) -> None:
    if isinstance(product, bytes):
        made = scratch / target.name
        made.write_bytes(product)
    else:
        made = product
    if _there(target):
        return  # another process was faster: a file that may be in use already stays
    checksum = scratch / "checksum"
    checksum.write_text(_checksum(made), encoding="ascii")
    try:
        os.replace(made, target)
        os.replace(checksum, _checksum_file(target))
    except OSError:
        # Windows does not replace a library that another process has loaded in the meantime
        if not _there(target):
            raise


def _sweep(folder: Path) -> None:
    """Remove what killed builds left behind."""
    for old in folder.glob(SCRATCH_PREFIX + "*"):
        try:
            stale = time.time() - old.stat().st_mtime > STALE_AFTER
        except OSError:
            continue  # its own process has just removed it
        if stale:
            shutil.rmtree(old, ignore_errors=True)
