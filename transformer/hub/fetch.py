"""Downloads models from the Hub by name, and checks them.

A download goes to huggingface_hub's cache, file by file, at one commit. Every file is compared with the hash
that the Hub gives for it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, cast

import httpx2
from huggingface_hub import constants, hf_hub_download
from huggingface_hub.hf_api import ModelInfo, RepoSibling

from transformer.hub.cache import Snapshot, cached, check, in_words_of
from transformer.hub.client import client, explained
from transformer.hub.files import Offer, RemoteFile, check_config, check_sizes, needed, size
from transformer.hub.settings import (
    COMMIT,
    LIMIT_VARIABLE,
    Hub,
    HubError,
    StoppedError,
    UnreachableError,
    check_name,
)
from transformer.storage.description import CONFIG_FILE
from transformer.storage.files import write_atomically

# Use plain HTTP: the Xet client ignores a request to stop, and waits minutes for a lost connection.
constants.HF_HUB_DISABLE_XET = True

Progress = Callable[[int, int], None]
"""Called with the bytes received and the bytes in total; an exception from it stops the download."""

_FOREIGN = (httpx2.HTTPError, OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError)
"""Errors that huggingface_hub raises: its own, and others if an answer is not as it expects."""


def find(
    name: str, revision: str | None = None, hub: Hub | None = None, progress: Progress | None = None
) -> Snapshot:
    """A model's newest state on the Hub or, without a network, that in the cache; HubError if neither."""
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

    UnreachableError if the Hub does not answer; HubError if the model does not exist, is not allowed here, is
    too large, or is of an unsupported kind.
    """
    hub = hub or Hub.from_environment()
    revision = hub.asked(name, revision)
    try:
        info = client(hub).model_info(name, revision=revision, files_metadata=True, timeout=hub.timeout)
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
    """Name, commit and files in an answer of the Hub; ValueError if the answer lacks one of them."""
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

    UnreachableError if the Hub stops answering; HubError if a file is damaged or missing, or does not fit on
    the disk.
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
            f"{name} needs {size(nbytes)} on the disk, but only {size(free)} is free in {hub.cache}."
        )


class _Meter:
    """Stands in for huggingface_hub's progress bar: counts bytes, and stops a file that is too large."""

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
    """Gets a file from the cache or the Hub, or HubError; one with the wrong hash is deleted."""
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
                f"{name}: the download of {file.name} was cut off; download the model again."
            ) from error
        raise explained(error, name, hub, commit) from error
    check(path, file.hash, hub.folder(name), file.name)
    meter.end()
    return path
