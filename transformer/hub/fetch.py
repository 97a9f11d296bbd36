"""Downloads models from the Hub by name, and checks them.

A download goes to huggingface_hub's cache, file by file, at one commit. Every file is compared with
the hash that the Hub gives for it.
"""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, cast

import httpx2
from huggingface_hub import HfApi, constants, errors, hf_hub_download
from huggingface_hub.hf_api import RepoSibling

from transformer.families.pieces import WHOLE_FILE
from transformer.families.registry import config_in
from transformer.hub.files import (
    Offer,
    RemoteFile,
    Snapshot,
    cached,
    check,
    in_words_of,
    needed,
    size,
)
from transformer.hub.settings import LIMIT_VARIABLE, Hub, HubError, UnreachableError
from transformer.storage.description import CONFIG_FILE
from transformer.storage.files import MAX_JSON_BYTES, MAX_TOKENIZER_BYTES, write_atomically

# Use plain HTTP: the Xet client ignores a request to stop, and waits minutes for a lost connection.
constants.HF_HUB_DISABLE_XET = True

Progress = Callable[[int, int], None]
"""Called with the bytes received and the bytes in total; an exception from it stops the
download."""

_FOREIGN = (
    httpx2.HTTPError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    AssertionError,
)
"""Errors that huggingface_hub raises: its own, and others if an answer is not as it expects."""
_UNREACHABLE = (errors.OfflineModeIsEnabled, httpx2.TransportError)
_LOG_IN = "log in with `hf auth login`."
_SENTENCES: dict[type[BaseException], str] = {
    errors.OfflineModeIsEnabled: "The network is switched off (HF_HUB_OFFLINE).",
    errors.GatedRepoError: "{name} is open only to users who accept its terms: accept them at "
    f"{{address}}/{{name}}, and {_LOG_IN}",
    errors.RevisionNotFoundError: "{name} has no revision {revision!r:.120} on the Hub.",
    errors.RemoteEntryNotFoundError: (
        "{name} lists a file that the Hub does not have; its upload was not finished."
    ),
    errors.RepositoryNotFoundError: (
        f"There is no model {{name}} on the Hub, or it is private: check the spelling, or {_LOG_IN}"
    ),
    errors.DisabledRepoError: "{name} is switched off on the Hub.",
    httpx2.TransportError: "The Hub at {address} cannot be reached ({kind}).",
    errors.LocalTokenNotFoundError: f"No token for the Hub was found; {_LOG_IN}",
}
"""What the errors of huggingface_hub mean, first those that are kinds of others."""


def find(
    name: str, revision: str | None = None, hub: Hub | None = None, progress: Progress | None = None
) -> Snapshot:
    """A model's newest state on the Hub or, without a network, that in the cache; HubError if
    neither."""
    hub = hub or Hub.from_environment()
    known = cached(name, revision, hub)
    if known is not None and known.commit == revision:
        return known
    try:
        return fetch(look(name, revision, hub), progress, hub)
    except UnreachableError as error:
        if known is None:
            reason = str(error).removesuffix(".")
            which = f" at {revision!r:.120}" if revision else ""
            raise HubError(
                f"{reason}, and {name}{which} is not in the cache at {hub.cache}."
            ) from error
        note = f"{str(error).removesuffix('.')}; {known.title} was opened from the cache."
        return replace(known, note=note)


def look(name: str, revision: str | None = None, hub: Hub | None = None) -> Offer:
    """Asks the Hub about a model; only the config is downloaded.

    UnreachableError if the Hub does not answer; HubError if the model does not exist, is not
    allowed here, is too large, or is of an unsupported kind.
    """
    hub = hub or Hub.from_environment()
    revision = hub.revision(name, revision)
    api = HfApi(endpoint=hub.endpoint, token=hub.token, library_name="attention-explorer")
    try:
        info = api.model_info(name, revision=revision, files_metadata=True, timeout=hub.timeout)
        files = {entry.rfilename: _remote_file(entry) for entry in info.siblings or []}
        commit = info.sha or ""
        if not re.fullmatch("[0-9a-f]{40}", commit) or not isinstance(info.id, str):
            raise ValueError("no commit or no name")
    except (*_FOREIGN, RecursionError) as error:
        raise _explained(error, name, hub, revision) from error
    hub.revision(info.id)
    chosen = tuple(files[file] for file in needed(files, name))
    for file in chosen:
        most = MAX_TOKENIZER_BYTES if file.name == WHOLE_FILE else MAX_JSON_BYTES
        if file.size > most and not file.name.endswith((".safetensors", ".bin")):
            raise HubError(
                f"{name}: {file.name} has {size(file.size)}, which is too large for this file."
            )
    total = sum(file.size for file in chosen)
    if total > hub.most_bytes:
        limit = f"downloads are limited to {size(hub.most_bytes)}"
        raise HubError(
            f"{name} has {size(total)}, but {limit}; {LIMIT_VARIABLE} changes the limit."
        )
    config_file = next(file for file in chosen if file.name == CONFIG_FILE)
    directory = _download(name, commit, config_file, hub).parent
    with in_words_of(f"{name}@{commit[:8]}", directory):
        return Offer(
            name=name,
            present_name=info.id,
            revision=revision,
            commit=commit,
            files=chosen,
            config=config_in(directory),
        )


def _remote_file(entry: RepoSibling) -> RemoteFile:
    """A file as the Hub lists it; ValueError if its size or its hash is missing."""
    nbytes = entry.lfs.size if entry.lfs else entry.size
    digest = entry.lfs.sha256 if entry.lfs else entry.blob_id
    if type(nbytes) is not int or nbytes < 0 or not isinstance(digest, str):
        raise ValueError("no size or no hash")
    return RemoteFile(entry.rfilename, nbytes, digest)


def fetch(offer: Offer, progress: Progress | None = None, hub: Hub | None = None) -> Snapshot:
    """Downloads the files that are not yet in the cache, and compares every file with its hash.

    UnreachableError if the Hub stops answering; HubError if a file is damaged or missing, or does
    not fit on the disk.
    """
    hub = hub or Hub.from_environment()
    folder = hub.folder(offer.name)
    directory = folder / "snapshots" / offer.commit
    nbytes = sum(file.size for file in offer.files if not (directory / file.name).exists())
    hub.cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(hub.cache).free
    if nbytes > free:
        room = f"only {size(free)} is free in {hub.cache}"
        raise HubError(f"{offer.name} needs {size(nbytes)} on the disk, but {room}.")
    done = 0
    progress = progress or _ignore
    for file in offer.files:
        _download(offer.name, offer.commit, file, hub, partial(_report, progress, offer, done))
        done += file.size
        progress(done, offer.nbytes)
    if offer.revision != offer.commit:
        reference = folder / "refs" / offer.revision
        reference.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(reference, offer.commit.encode())
    return Snapshot(offer.name, offer.commit, directory)


def _ignore(done: int, total: int) -> None:
    """Tells nobody."""


def _report(progress: Progress, offer: Offer, before: int, nbytes: int) -> None:
    """Tells of the bytes of one file, after those of the files before it."""
    progress(before + nbytes, offer.nbytes)


class _Meter:
    """Stands in for huggingface_hub's progress bar: counts bytes, and stops a file that is too
    large."""

    def __init__(self, name: str, file: RemoteFile, count: Callable[[int], None]) -> None:
        self._name = name
        self._file = file
        self._count = count
        self._nbytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """A bar has nothing to close."""

    def update(self, nbytes: float | None = 1) -> None:
        """Counts bytes that arrived; fewer than 0 if they are sent again."""
        self._nbytes += int(nbytes or 0)
        if self._nbytes > self._file.size:
            announced = f"the {size(self._file.size)} that it announced for {self._file.name}"
            raise HubError(f"{self._name}: the Hub sends more than {announced}.")
        self._count(max(self._nbytes, 0))


def _download(
    name: str,
    commit: str,
    file: RemoteFile,
    hub: Hub,
    count: Callable[[int], None] = lambda nbytes: None,  # called with the bytes that have arrived
) -> Path:
    """Gets a file from the cache or the Hub, or HubError; one with the wrong hash is deleted."""
    meter = _Meter(name, file, count)

    def bar(**options: object) -> _Meter:
        """What huggingface_hub calls to make its bar."""
        return meter

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
                tqdm_class=cast("type[_Meter]", bar),  # which is only called
            )
        )
    except HubError:  # of the meter
        raise
    except _FOREIGN as error:
        if "Consistency check failed" in str(error):
            cut_off = f"{name}: the download of {file.name} was cut off; download the model again."
            raise HubError(cut_off) from error
        raise _explained(error, name, hub, commit) from error
    check(path, file.hash, hub.folder(name), file.name)
    return path


def _explained(error: BaseException, name: str, hub: Hub, revision: str) -> HubError:
    """An error of huggingface_hub in one sentence."""
    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        return _explained(error.__cause__, name, hub, revision)
    for foreign, sentence in _SENTENCES.items():
        if isinstance(error, foreign):
            kind = UnreachableError if isinstance(error, _UNREACHABLE) else HubError
            return kind(
                sentence.format(
                    name=name,
                    address=hub.address,
                    revision=revision,
                    kind=type(error).__name__,
                )
            )
    stranger = f"the server at {hub.address} is not the Hub; check the network, and HF_ENDPOINT."
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        # 407 asks to log in to a proxy; the Hub answers no question with a page
        if status == 407 or "html" in error.response.headers.get("content-type", ""):
            return UnreachableError(f"{name}: {stranger}")
        if status in (401, 403):
            return HubError(f"The Hub refuses access to {name} with this token; {_LOG_IN}")
        if status == 429 or status >= 500:
            return UnreachableError(f"The Hub at {hub.address} answers with an error ({status}).")
        return HubError(f"The Hub at {hub.address} refuses {name} ({status}).")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HubError(f"{name} does not fit on the disk of {hub.cache}.")
    if isinstance(error, OSError) and error.errno is not None:
        return HubError(f"{name} cannot be saved in {hub.cache}: {error.strerror}.")
    return UnreachableError(f"{name}: {stranger}")
