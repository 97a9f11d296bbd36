"""The Hub as this package uses it: where it is, what may come from it, and what its errors mean.

Address, cache, token and offline mode are huggingface_hub's own (``HF_ENDPOINT``, ``HF_HUB_CACHE``,
``HF_TOKEN``, ``HF_HUB_OFFLINE``, ``hf auth login``); two limits are added here.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
from dataclasses import dataclass
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, constants, errors

from transformer.storage.files import CheckpointError

LIMIT_VARIABLE, ALLOWED_VARIABLE = "TRANSFORMER_HUB_GB", "TRANSFORMER_HUB_ALLOWED"
MOST_BYTES = 1_500_000_000
COMMIT = re.compile(r"[0-9a-f]{40}")
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{3,96}}\Z)(?!.*(?:--|\.\.|\.git\Z)){_PART}/{_PART}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")


class HubError(CheckpointError):
    """A model of the Hub cannot be had; the message says why in one sentence."""


class UnreachableError(HubError):
    """The Hub does not answer; what is in the cache can still be used."""


class StoppedError(HubError):
    """A download was stopped by the one who asked for it."""


@dataclass(frozen=True, kw_only=True)
class Hub:
    """Where models come from, and what may come.

    Attributes:
        endpoint: Address of the Hub or a mirror; None for huggingface_hub's own.
        cache_dir: Folder of the downloaded files; None for huggingface_hub's own.
        token: A token, False for none, None for huggingface_hub's own.
        most_bytes: Most bytes of a model's files.
        allowed: Patterns of the names that may be opened, such as ``Helsinki-NLP/*``; None for all.
        timeout: Seconds to wait for an answer.
    """

    endpoint: str | None = None
    cache_dir: Path | None = None
    token: str | bool | None = None
    most_bytes: int = MOST_BYTES
    allowed: tuple[str, ...] | None = None
    timeout: float = 10.0

    @classmethod
    def from_environment(cls) -> Hub:
        """The Hub as the environment describes it.

        Raises:
            HubError: ``TRANSFORMER_HUB_GB`` is no number.
        """
        limit, allowed = os.environ.get(LIMIT_VARIABLE), os.environ.get(ALLOWED_VARIABLE)
        patterns = None if allowed is None else tuple(filter(None, re.split(r"[,\s]+", allowed)))
        try:
            most_bytes = int(float(limit) * 1e9) if limit else MOST_BYTES
        except (ValueError, OverflowError):
            most_bytes = -1
        if most_bytes < 0:
            raise HubError(f"{LIMIT_VARIABLE} is {limit!r:.40}; it must be a number of gigabytes.")
        return cls(most_bytes=most_bytes, allowed=patterns)

    @property
    def address(self) -> str:
        """The address that is asked."""
        return (self.endpoint or constants.ENDPOINT).rstrip("/")

    @property
    def cache(self) -> Path:
        """The folder that holds the downloaded files of all models."""
        return Path(self.cache_dir or constants.HF_HUB_CACHE).expanduser().resolve()

    def folder(self, name: str) -> Path:
        """The folder that holds a model's files of all revisions."""
        return self.cache / f"models--{name.replace('/', '--')}"

    def api(self) -> HfApi:
        """The client."""
        return HfApi(endpoint=self.endpoint, token=self.token, library_name="attention-explorer")

    def check_allowed(self, name: str) -> None:
        """Refuses a name that this installation does not open.

        Raises:
            HubError: It is not among the allowed ones.
        """
        if self.allowed is not None and not any(fnmatch.fnmatchcase(name, each) for each in self.allowed):
            names = " or ".join(self.allowed[:4]) or "no model at all"
            raise HubError(f"{name} may not be opened here; {ALLOWED_VARIABLE} allows {names}.")


def is_name(text: str) -> bool:
    """Whether a text has the form of a name on the Hub, ``owner/model``."""
    return _NAME.fullmatch(text) is not None


def check_name(name: str) -> None:
    """Refuses what is no name on the Hub: a path never is one.

    Raises:
        HubError: It is none.
    """
    if not _NAME.fullmatch(name):
        raise HubError(f"{name!r:.120} is no name of a model on the Hub; those read owner/model.")


def check_revision(revision: str) -> None:
    """Refuses what is no branch, tag or commit.

    Raises:
        HubError: It is none.
    """
    if not _REVISION.fullmatch(revision) or ".." in revision or "//" in revision or revision.endswith("/"):
        raise HubError(f"{revision!r:.120} is no revision; give a branch, a tag or a commit.")


def explained(error: BaseException, name: str, hub: Hub, revision: str | None = None) -> HubError:
    """What an error of huggingface_hub means for a model, in one sentence."""
    cause = error.__cause__
    if isinstance(error, errors.LocalEntryNotFoundError) and cause is not None:
        return explained(cause, name, hub, revision)
    if isinstance(error, HubError):
        return error
    if isinstance(error, errors.OfflineModeIsEnabled):
        return UnreachableError("The network is switched off (HF_HUB_OFFLINE).")
    if isinstance(error, errors.HfHubHTTPError):
        return _answer(error, name, hub, revision)
    if isinstance(error, httpx2.TransportError):
        return UnreachableError(f"The Hub at {hub.address} cannot be reached ({type(error).__name__}).")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HubError(f"{name} does not fit on the disk of {hub.cache}.")
    if isinstance(error, OSError) and error.errno is not None:
        return HubError(f"{name} cannot be kept in {hub.cache}: {error.strerror}.")
    if isinstance(error, errors.LocalTokenNotFoundError):
        return HubError("There is no token of the Hub here; log in with `hf auth login`.")
    return HubError(f"{name}: what answers at {hub.address} is not the Hub.")


def _answer(error: errors.HfHubHTTPError, name: str, hub: Hub, revision: str | None) -> HubError:
    """What an answer of the Hub other than success means."""
    status = error.response.status_code
    if isinstance(error, errors.GatedRepoError):
        return HubError(
            f"{name} is open to those who accepted its terms only: accept them at {hub.address}/{name}, "
            "and log in with `hf auth login`."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return HubError(f"{name} has no revision {revision!r:.120} on the Hub.")
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return HubError(f"{name} lacks a file on the Hub that it lists; its upload was not finished.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return HubError(
            f"There is no model {name} on the Hub, or it is private: check the spelling, or log in with "
            "`hf auth login`."
        )
    if isinstance(error, errors.DisabledRepoError):
        return HubError(f"{name} is switched off on the Hub.")
    if status in (401, 403):
        return HubError(f"The Hub refuses {name}: this token may not; log in with `hf auth login`.")
    if status == 429 or status >= 500:
        return UnreachableError(f"The Hub at {hub.address} answers with an error ({status}).")
    return HubError(f"The Hub at {hub.address} refuses {name} ({status}).")
