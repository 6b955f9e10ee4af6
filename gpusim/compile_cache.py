"""Cache of compiled kernels. This module also defines the exceptions for compile errors."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock

from gpusim.errors import GpusimError

ERRORS_SHOWN = 5
OWN_FOLDER = "own"  # folder of the generated kernel sources of custom actuator kinds
_SYSTEM = (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)  # out of memory, processes or open files
STALE_AFTER = 86400.0  # seconds after which a scratch folder belongs to a killed build
SCRATCH_PREFIX = "build-"
REPORT_AFTER = 1.0  # seconds

# g++ and clang: "rows.cuh:12:3: error: ...". NVRTC: "rows.cuh(12): error: ...". Errors of ptxas etc. have no line.
_LINE_ERROR = re.compile(r"^(?P<file>[^\s:(][^:(\n]*)[:(](?P<line>\d+)[):][\d: ]*(?:\w+ )?error[^:\n]*: (?P<text>.*)$")
_BARE_ERROR = re.compile(r"^\s*\S+ ?(?:fatal|error)\s*: .*$|^\S+: (?:fatal )?error: .*$")
_OWN_SOURCE = re.compile(rf"\b{OWN_FOLDER}/(\w+)\.cuh\b")


class CompileError(GpusimError):
    """Kernels cannot be compiled, for example because there is no compiler or a source has an error."""


class BrokenCompilerError(CompileError):
    """The compiler cannot compile any source, for example because it is broken or the cache folder is not writable."""


def cache_folder() -> Path:
    r"""Return the folder of the compiled kernels. The folder may not exist yet.

    The folder is ``$GPUSIM_CACHE``. Without this variable, the folder is ``$XDG_CACHE_HOME/gpusim``. Without both
    variables, the folder is ``~/.cache/gpusim``, ``~/Library/Caches/gpusim`` (macOS) or ``%LOCALAPPDATA%\gpusim\cache``
    (Windows).

    Raises:
        CompileError: the user has no home folder.
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
    """Check that the cache is writable.

    Raises:
        CompileError: the cache is not writable.
    """
    folder = cache_folder()
    with _writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def digest(parts: Iterable[str]) -> str:
    """Return a digest (32 hexadecimal digits) of a sequence of texts."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8")
        whole.update(b"%d:" % len(data))  # without the lengths, ("ab", "c") would equal ("a", "bc")
        whole.update(data)
    return whole.hexdigest()[:32]


def found(name: str) -> Path | None:
    """Return the path of the cached file ``name``, or None if it is missing or damaged.

    Raises:
        CompileError: the folder is not readable.
    """
    target = cache_folder() / name
    with _writable(target.parent):
        return target if _there(target) else None


def cached(name: str, make: Callable[[Path], bytes | Path], what: str = "") -> Path:
    """Return the path of the cached file ``name``. If the file is missing or damaged, call ``make`` to build it.

    If several processes need the same file, one process builds it, and the others wait. ``name`` never refers to an
    incomplete file.

    Args:
        name: path within ``cache_folder()``.
        make: function that builds the file. The argument of ``make`` is an empty scratch folder. ``make`` returns the
            content of the file, or the path of a file in this folder.
        what: description of the file for the progress message, or an empty text for no message.

    Raises:
        CompileError: the folder is not writable, the disk is full, or ``make`` raised an OSError. All other errors of
            ``make`` propagate unchanged.
    """
    target = cache_folder() / name
    with _writable(target.parent):
        if _there(target):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        with _reported(what), _alone(target):
            if not _there(target):
                _build(target, make)
    return target


def _build(target: Path, make: Callable[[Path], bytes | Path]) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=target.parent))
    try:
        _publish(make(scratch), target, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold the lock of ``target`` during a ``with`` block. Wait while another process holds the lock.

    If the file system has no locks or the folder is not writable, the block runs without a lock.
    """
    lock = Path(f"{target}.lock")
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(FileLock(lock))
            # FileLock does not accept a removed file: a process that waits for the file makes a new one.
            stack.callback(forget, lock)
        yield


def compile_error(main: str, tool: str, output: str) -> CompileError:
    """Return the error for a source that does not compile.

    The message lists the first errors of the compiler with file and line.

    Args:
        main: the compiled source.
        tool: name of the compiler.
        output: output of the compiler. File names in ``output`` are relative to the source folder.
    """
    found = _errors_of(output)
    shown = [f"  {line}" for line in found[:ERRORS_SHOWN]]
    if len(found) > ERRORS_SHOWN:
        shown.append(f"  ... and {len(found) - ERRORS_SHOWN} more errors")
    own = sorted(set(_OWN_SOURCE.findall(output)))
    hint = (
        f"the fault is in the kernel text of actuator kind {' or '.join(own)}: correct its kernel_source; "
        if own
        else "the fault is gpusim's or the compiler's, not your model's: report it with this message; "
    )
    return CompileError(
        f"{main} does not compile with {tool}:\n" + "\n".join(shown) + f"\n{hint}backend='numpy' needs no compiler"
    )


def _errors_of(output: str) -> list[str]:
    found = []
    for line in output.splitlines():
        match = _LINE_ERROR.match(line)
        if match:
            found.append(f"{match['file'].removeprefix('./')}:{match['line']}: error: {match['text']}")
        elif _BARE_ERROR.match(line) and not line.startswith("collect2"):  # it only reports that ld failed
            found.append(line.strip())
    # A crashed compiler or a linker prints no line that looks like an error. Then use the last lines of its output.
    return found or [line for line in output.splitlines() if line.strip()][-10:] or ["(the compiler said nothing)"]


def _absolute(path: str) -> Path:
    try:
        return Path(path).expanduser().absolute()  # the compiler runs in another folder
    except RuntimeError as error:
        raise CompileError(
            f"no folder for compiled kernels: {error}; set GPUSIM_CACHE to a folder that can be written"
        ) from error


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """Print a message if the compilation takes longer than REPORT_AFTER and stderr is a terminal."""
    if not what or not sys.stderr.isatty():
        yield
        return
    line = f"gpusim: compiling {what}; it is kept in {cache_folder()}\n"
    timer = threading.Timer(REPORT_AFTER, lambda: sys.stderr.write(line))
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
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise no_room(folder, reason) from error
        if error.errno in _SYSTEM or not _concerns(error, folder):
            hint = "correct this, or use backend='numpy', which compiles nothing"
            raise BrokenCompilerError(f"kernels can't be compiled: {error}; {hint}") from error
        hint = "set GPUSIM_CACHE to a folder that can be written"
        raise BrokenCompilerError(f"compiled kernels can't be kept in {folder}: {reason}; {hint}") from error


def _concerns(error: OSError, folder: Path) -> bool:
    """Return True if the file of the error is unknown, inside ``folder``, or a parent of ``folder``."""
    if not isinstance(error.filename, str | os.PathLike):
        return True
    file = Path(error.filename).absolute()
    return file.is_relative_to(folder) or folder.is_relative_to(file)


def no_room(folder: Path, reason: str) -> BrokenCompilerError:
    """Return the error for a full disk."""
    hint = "free some space, or set GPUSIM_CACHE to a folder on another disk"
    return BrokenCompilerError(f"compiled kernels can't be kept in {folder}: {reason}; {hint}")


def forget(target: Path) -> None:
    """Remove a file from the cache, for example an unusable one."""
    with suppress(OSError):
        target.unlink()


def kept_like(pattern: str) -> Path | None:
    """Return the newest complete file in the cache that matches the glob ``pattern``, or None."""
    with suppress(OSError, CompileError):
        files = sorted(cache_folder().glob(pattern), key=lambda file: file.stat().st_mtime, reverse=True)
        return next((file for file in files if _there(file)), None)
    return None


def _there(target: Path) -> bool:
    """Return whether the cached file ``target`` exists and matches its checksum."""
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
        return  # another process was faster, and its file may be in use
    checksum = scratch / "checksum"
    checksum.write_text(_checksum(made), encoding="ascii")
    try:
        os.replace(made, target)
        os.replace(checksum, _checksum_file(target))
    except OSError:
        # Windows does not replace a library that another process has loaded.
        if not _there(target):
            raise


def _sweep(folder: Path) -> None:
    """Remove the scratch folders of killed builds."""
    for old in folder.glob(SCRATCH_PREFIX + "*"):
        try:
            stale = time.time() - old.stat().st_mtime > STALE_AFTER
        except OSError:
            continue  # another process has just removed this folder
        if stale:
            shutil.rmtree(old, ignore_errors=True)
