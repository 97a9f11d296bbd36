"""Downloads models of the Hub by name, checks them, and finds them again in the cache without a network.

A download goes to huggingface_hub's cache, file by file, at one commit. Every file is compared with the hash
that the Hub gives for it. The branch is recorded (`refs/main`) only after all files have arrived, so an
interrupted download never looks like a complete model.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import httpx2
from huggingface_hub import constants, hf_hub_download
from huggingface_hub.hf_api import ModelInfo, RepoSibling

from transformer.hub.files import HASH, RemoteFile, check_config, check_sizes, matches, needed, size
from transformer.hub.settings import (
    COMMIT,
    LIMIT_VARIABLE,
    Hub,
    HubError,
    StoppedError,
    UnreachableError,
    check_name,
    check_revision,
    explained,
)
from transformer.model.config import TransformerConfig
from transformer.storage.directory import CONFIG_FILE, parameter_count
from transformer.storage.files import CheckpointError, write_atomically

# Use plain HTTP: the Xet client ignores a request to stop, and waits minutes for a lost connection.
constants.HF_HUB_DISABLE_XET = True

Progress = Callable[[int, int], None]
"""Called with the bytes received and the bytes in total; an exception from it stops the download."""

_FOREIGN = (httpx2.HTTPError, OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError)
"""Errors that huggingface_hub raises: its own, and others if an answer is not as it expects."""


@dataclass(frozen=True)
class Snapshot:
    """A complete model in the cache.

    Attributes:
        name: Name on the Hub.
        commit: Commit hash of the files.
        directory: Directory that holds the files.
    """

    name: str
    commit: str
    directory: Path

    @property
    def title(self) -> str:
        """Name and commit, as captions show them."""
        return f"{self.name}@{self.commit[:8]}"


@dataclass(frozen=True)
class Offer:
    """A model on the Hub that can be downloaded.

    Attributes:
        name: Name that was asked for.
        present_name: Present name of the model; differs from ``name`` if the model was renamed.
        revision: Branch, tag or commit that was asked for.
        commit: Commit that the revision points to.
        files: Files to download.
        config: Config of the model.
    """

    name: str
    present_name: str
    revision: str
    commit: str
    files: tuple[RemoteFile, ...]
    config: TransformerConfig

    @property
    def nbytes(self) -> int:
        """Total size of the files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def loaded_nbytes(self) -> int:
        """Bytes of the model's weights in float32."""
        return 4 * parameter_count(self.config)


def find(
    name: str, revision: str | None = None, hub: Hub | None = None, progress: Progress | None = None
) -> Snapshot:
    """Gets a model: the newest state on the Hub or, without a network, the one in the cache.

    Raises:
        HubError: The model cannot be downloaded and is not in the cache.
    """
    hub = hub or Hub.from_environment()
    if revision is not None and COMMIT.fullmatch(revision) and (known := cached(name, revision, hub)):
        return known
    try:
        return fetch(look(name, revision, hub), progress, hub)
    except UnreachableError as error:
        kept = cached(name, revision, hub)
        if kept is None:
            reason, which = str(error).removesuffix("."), f" at {revision!r:.120}" if revision else ""
            raise HubError(f"{reason}, and {name}{which} is not in the cache at {hub.cache}.") from error
        return kept


def look(name: str, revision: str | None = None, hub: Hub | None = None) -> Offer:
    """Asks the Hub about a model; only the config is downloaded.

    Raises:
        UnreachableError: The Hub does not answer.
        HubError: The model does not exist, is not allowed here, is too large, or is of an unsupported kind.
    """
    hub = hub or Hub.from_environment()
    revision = revision or "main"
    check_name(name)
    check_revision(revision)
    hub.check_allowed(name)
    try:
        info = hub.api().model_info(name, revision=revision, files_metadata=True, timeout=hub.timeout)
        present_name, commit, files = _described(info)
    except (*_FOREIGN, RecursionError) as error:
        raise explained(error, name, hub, revision) from error
    hub.check_allowed(present_name)
    chosen = tuple(files[each] for each in needed(files, name))
    check_sizes(name, chosen, hub.most_bytes, LIMIT_VARIABLE)
    config_file = next(file for file in chosen if file.name == CONFIG_FILE)
    path = _download(name, commit, config_file, hub, _Meter(config_file.size))
    with in_words_of(f"{name}@{commit[:8]}", path.parent):
        config = check_config(path.parent)
    return Offer(name, present_name, revision, commit, chosen, config)


def _described(info: ModelInfo) -> tuple[str, str, dict[str, RemoteFile]]:
    """Name, commit and files in an answer of the Hub.

    Raises:
        ValueError: The answer lacks one of them.
    """
    if info.sha is None or not COMMIT.fullmatch(info.sha):
        raise ValueError("no commit")
    check_name(info.id)
    return info.id, info.sha, {each.rfilename: _remote_file(each) for each in info.siblings or []}


def _remote_file(file: RepoSibling) -> RemoteFile:
    nbytes, digest = (file.lfs.size, file.lfs.sha256) if file.lfs else (file.size, file.blob_id)
    if type(nbytes) is not int or nbytes < 0 or not isinstance(digest, str):
        raise ValueError("no size or no hash")
    return RemoteFile(file.rfilename, nbytes, digest)


def fetch(offer: Offer, progress: Progress | None = None, hub: Hub | None = None) -> Snapshot:
    """Downloads the files that are not yet in the cache, and compares every file with its hash.

    Args:
        offer: Result of `look`.
        progress: Called as bytes arrive.
        hub: The Hub to download from.

    Raises:
        UnreachableError: The Hub stops answering.
        HubError: A file is damaged or missing, or does not fit on the disk.
    """
    hub = hub or Hub.from_environment()
    folder = hub.folder(offer.name)
    directory = folder / "snapshots" / offer.commit
    absent = [file for file in offer.files if not (directory / file.name).exists()]
    _check_room(offer.name, hub, sum(file.size for file in absent))
    meter = _Meter(offer.nbytes, progress)
    for file in offer.files:
        _download(offer.name, offer.commit, file, hub, meter)
    if offer.revision != offer.commit:
        reference = folder / "refs" / offer.revision
        reference.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(reference, offer.commit.encode())
    return Snapshot(offer.name, offer.commit, directory)


def _check_room(name: str, hub: Hub, nbytes: int) -> None:
    hub.cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(hub.cache).free
    if nbytes > free:
        raise HubError(
            f"{name} needs {size(nbytes)} on the disk, but only {size(free)} are free in {hub.cache}."
        )


class _Meter:
    """Stands in for huggingface_hub's progress bar: counts bytes, and stops a file that is too large.

    Args:
        total: Size of all files in bytes.
        progress: Called as bytes arrive.
    """

    def __init__(self, total: int, progress: Progress | None = None) -> None:
        self.total, self._progress = total, progress
        self._done = self._at = self._most = 0

    def begin(self, nbytes: int) -> None:
        """Starts the next file, which may have at most ``nbytes`` bytes."""
        self._at, self._most = 0, nbytes

    def end(self) -> None:
        """Marks the file as complete."""
        self._done += self._most
        self._at = 0
        self._tell()

    def update(self, nbytes: float | None = 1) -> None:
        """Counts bytes that arrived."""
        self._at += int(nbytes or 0)
        if self._at > self._most:
            raise HubError("more bytes than promised")
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._done + max(self._at, 0), self.total)

    def __call__(self, **options: Any) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update_transfer(self, nbytes: float | None = 1) -> None:
        """Ignored: bytes are counted when they arrive."""

    def set_postfix_str(self, text: str, refresh: bool = False) -> None:
        """Ignored: the speed is not shown."""

    set_transfer_postfix_str = set_postfix_str

    def close(self) -> None:
        """Does nothing; there is nothing to close."""


def _download(name: str, commit: str, file: RemoteFile, hub: Hub, meter: _Meter) -> Path:
    """Gets one file from the cache or the Hub; a file with the wrong hash is deleted.

    Raises:
        HubError: The file cannot be downloaded or is damaged.
    """
    meter.begin(file.size)
    try:
        path = Path(
            hf_hub_download(
                name,
                file.name,
                revision=commit,
                cache_dir=hub.cache,
                endpoint=hub.endpoint,
                token=hub.token,
                etag_timeout=hub.timeout,
                tqdm_class=cast(Any, meter),
            )
        )
    except StoppedError:
        raise
    except HubError as error:
        raise HubError(
            f"{name}: the Hub sends more than the {size(file.size)} that it announced for {file.name}."
        ) from error
    except _FOREIGN as error:
        if "Consistency check failed" in str(error):
            raise HubError(
                f"{name}: the download of {file.name} was cut off; fetch the model again."
            ) from error
        raise explained(error, name, hub, commit) from error
    _check(path, file.hash, hub.folder(name), file.name)
    meter.end()
    return path


_checked: dict[str, tuple[int, int]] = {}
"""Size and modification time of the files that this process has compared with their hashes."""
_lock = threading.Lock()


def _check(path: Path, expected: str, folder: Path, name: str) -> None:
    """Compares a file with its hash, once per process, and removes the file if they differ.

    Raises:
        HubError: They differ, or the file lies outside the model's folder.
    """
    real, what = path.resolve(), f"{name} of {folder.name.removeprefix('models--').replace('--', '/')}"
    if not real.is_relative_to(folder):
        raise HubError(f"{what} lies outside the cache of its model, so it is not opened.")
    stamp = (real.stat().st_size, real.stat().st_mtime_ns)
    with _lock:
        if _checked.get(f"{real} {expected}") == stamp:
            return
    if not matches(real, expected):
        path.unlink()
        real.unlink(missing_ok=True)
        raise HubError(
            f"{what} does not match its hash: the file was damaged and is now removed; fetch the model again."
        )
    with _lock:
        _checked[f"{real} {expected}"] = stamp


def cached(name: str, revision: str | None = None, hub: Hub | None = None) -> Snapshot | None:
    """A complete model in the cache, or None; no network is used.

    Raises:
        HubError: The name or the revision is not valid, or the name is not allowed here.
    """
    hub = hub or Hub.from_environment()
    revision = revision or "main"
    check_name(name)
    check_revision(revision)
    hub.check_allowed(name)
    commit = revision if COMMIT.fullmatch(revision) else _recorded(hub.folder(name) / "refs" / revision)
    directory = hub.folder(name) / "snapshots" / commit
    if not commit or not directory.is_dir():
        return None
    try:
        needed([path.name for path in directory.iterdir() if path.is_file()], name)
        check_config(directory)
    except (CheckpointError, OSError):
        return None
    return Snapshot(name, commit, directory)


def _recorded(reference: Path) -> str:
    try:
        commit = reference.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return commit if COMMIT.fullmatch(commit) else ""


def cached_models(hub: Hub | None = None) -> list[Snapshot]:
    """All models in the cache that this package can open and that are allowed here, sorted by name."""
    hub = hub or Hub.from_environment()
    return sorted(_cached_models(hub), key=lambda snapshot: snapshot.name.lower())


def _cached_models(hub: Hub) -> Iterator[Snapshot]:
    for folder in hub.cache.glob("models--*--*"):
        name = folder.name.removeprefix("models--").replace("--", "/")
        try:
            snapshot = cached(name, None, hub)
        except HubError:
            continue
        if snapshot is not None:
            yield snapshot


def verify(directory: Path) -> None:
    """Compares the files of a snapshot with the hashes under which the cache keeps them.

    Raises:
        HubError: A file differs. The file is removed, so that the next download fetches it again.
    """
    folder = directory.resolve().parents[1]
    for name in needed([path.name for path in directory.iterdir()], folder.name):
        path = directory / name
        if path.is_symlink() and HASH.fullmatch(digest := path.resolve().name):
            _check(path, digest, folder, name)


@contextmanager
def in_words_of(title: str, directory: Path) -> Iterator[None]:
    """Makes errors about a model's directory name the model instead of a path in the cache."""
    try:
        yield
    except CheckpointError as error:
        raise HubError(str(error).replace(str(directory), title)) from error
