"""Write files and directories that appear whole or not at all, and lock what another process must
not touch."""

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .errors import InputError, NonFiniteError

# bytes in a file's name: the limit of every usual file system, 255, less what temporary names add
LONGEST = 230
_PATIENCE = 0.5  # seconds to retry a lock that another process holds
_NO_LOCKS = {errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL}  # a file system without locks


def write(file: Path, content: str | bytes) -> Path:
    """Write a file under a temporary name and rename it, so that a reader sees either the old or
    the whole new one.

    The temporary name is random, so processes on any machines may write the same file; the last one
    wins. A writer that is killed may leave a hidden `.NAME.….partial`, which nothing reads.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{secrets.token_hex(4)}.partial")
    try:
        with _named(partial, file):
            partial.write_bytes(content.encode() if isinstance(content, str) else content)
            os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)
    return file


@contextlib.contextmanager
def _named(partial: Path, target: Path) -> Iterator[None]:
    """Inside the context, errors name the target, not the temporary path, which nobody finds
    afterwards."""
    try:
        yield
    except Exception as error:
        error.args = tuple(
            value.replace(str(partial), str(target)) if isinstance(value, str) else value
            for value in error.args
        )
        for name in ("filename", "filename2"):  # of an OSError
            if path := getattr(error, name, None):
                setattr(error, name, str(path).replace(str(partial), str(target)))
        raise


def write_json(file: Path, content: object) -> Path:
    """Write indented JSON in one piece.

    Raises:
        NonFiniteError: the content holds NaN or an infinity, which :func:`read_json` would refuse.
    """
    try:
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise NonFiniteError(f"{file} would hold a number that is not finite") from error
    return write(file, text + "\n")


def read_json(file: Path, remedy: str, kind: type | tuple[type, ...] = dict) -> Any:
    """The JSON object in a file.

    Args:
        remedy: what to do about a broken file; it ends the sentence of the error.
        kind: the type that the file must hold; (dict, list) for either.

    Raises:
        InputError: the file is missing or not JSON, holds another type, or holds a number that is
            not finite.
    """

    def finite(number: str) -> float:
        if not math.isfinite(
            value := float(number)
        ):  # such as NaN, or 1e999, which float64 cannot hold
            raise ValueError(f"it holds {number}")
        return value

    def whole(number: str) -> int:
        finite(number)
        return int(number)

    try:
        text = Path(file).read_text(encoding="utf-8")
        content = json.loads(text, parse_constant=finite, parse_float=finite, parse_int=whole)
        if not isinstance(content, kind):
            raise ValueError("it is not an object")
        if r"\ud" in text.lower():  # what stands for half of a surrogate pair, or for a whole one
            json.dumps(content, ensure_ascii=False).encode()
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {file} ({error}); {remedy}.") from error
    return content


@contextlib.contextmanager
def new(target: Path) -> Iterator[Path]:
    """A temporary path to write a file or a directory to, which is renamed to `target` at the end
    of the context.

    An interruption leaves nothing at `target`. What a killed call left beside it is removed by the
    next.

    Raises:
        InputError: `target` exists, or another process is making it.
    """
    target = Path(target)
    check_new(target)  # of the current directory, which has no name to lock
    with lock(target):
        check_new(target)
        partial = target.with_name(f".{target.name}.partial")
        remove(partial)
        try:
            with _named(partial, target):
                yield partial
                os.rename(partial, target)
        finally:
            remove(partial)


def check_new(path: str | os.PathLike) -> None:
    """Raise InputError if `path` exists."""
    if os.path.lexists(path):
        raise InputError(f"{path} exists already; give a new path, or remove it first.")


def remove(path: Path) -> None:
    """Remove a file or a directory, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def lock(target: Path, wait: bool = False) -> Iterator[None]:
    """Inside the context, only this process works on `target`. On a file system without locks,
    nothing is locked.

    The lock is the operating system's, so a killed process holds none. A process that it started
    may hold the lock for a moment, so a held lock is retried for half a second. A file `.NAME.lock`
    beside the target names the holder.

    Args:
        wait: wait for the other process, and say so, instead of raising.

    Raises:
        InputError: another process holds the lock; the message names it.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    file = target.with_name(f".{target.name}.lock")
    process = os.getpid()
    work = FileLock(file, thread_local=False, fallback_to_soft=False)
    try:
        work.acquire(timeout=_PATIENCE, poll_interval=0.02)
    except Timeout:
        holder = "another process"
        with contextlib.suppress(OSError):  # it may just have let go
            holder = file.read_text(encoding="utf-8", errors="replace") or holder
        if not wait:
            raise InputError(f"{holder} is at work on {target}; wait for it, or stop it.") from None
        print(f"waiting for {holder}, which is at work on {target}", file=sys.stderr, flush=True)
        work.acquire()
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    try:
        with contextlib.suppress(OSError):  # a full disk has no room for a name
            file.write_text(f"process {process} on {socket.gethostname()}", encoding="utf-8")
        yield
    finally:
        if os.getpid() == process:  # a fork of the process that locked it holds nothing
            file.unlink(
                missing_ok=True
            )  # before the release, so that nobody locks a file that is about to go
            work.release()


def component(name: str) -> str:
    """The name, if it can be a single component of a path.

    Raises:
        InputError: the name is empty, hidden, holds a slash, or is longer than a file's name may
            be.
    """
    if (
        not isinstance(name, str)
        or not name.strip()
        or name.startswith(".")
        or set(name) & {"/", "\\", "\0"}
    ):
        raise InputError(
            f"{name!r} cannot name a file or a directory; give a name without a slash or a "
            f"leading dot."
        )
    _check_short(name)
    return name


def _check_short(name: str) -> None:
    """Raise InputError if no file can have so long a name."""
    if len(os.fsencode(name)) > LONGEST:
        raise InputError(
            f"the name {name[:40]!r}… has more than {LONGEST} bytes; give a shorter one."
        )


def check_writable(directory: Path) -> None:
    """Check, before any work, that a directory can be written to; creates nothing.

    Raises:
        InputError: it is a file, or its nearest existing parent is not writable.
    """
    path = Path(directory).absolute()
    for name in path.parts:
        _check_short(name)
    existing = next(parent for parent in (path, *path.parents) if os.path.lexists(parent))
    if not existing.is_dir():
        raise InputError(f"{existing} is not a directory; give another path.")
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write to {directory} ({error.strerror}); give another directory."
        ) from error


def sha256(file: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
