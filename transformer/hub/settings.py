"""Settings for the Hub: its address, which models may be opened, and what its errors mean.

huggingface_hub sets the address, cache, token and offline mode (``HF_ENDPOINT``, ``HF_HUB_CACHE``,
``HF_TOKEN``, ``HF_HUB_OFFLINE``, ``hf auth login``). This package adds two limits.
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
    """A model cannot be fetched from the Hub; the message says why in one sentence."""


class UnreachableError(HubError):
    """The Hub does not answer; models in the cache can still be used."""


class StoppedError(HubError):
    """The user stopped a download."""


@dataclass(frozen=True, kw_only=True)
class Hub:
    """The Hub to fetch models from, and limits on what may be fetched.

    Attributes:
        endpoint: Address of the Hub or a mirror; None for huggingface_hub's default.
        cache_dir: Folder of the downloaded files; None for huggingface_hub's default.
        token: A token; False for none; None for huggingface_hub's default.
        most_bytes: Largest total size of a model's files in bytes.
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
            HubError: ``TRANSFORMER_HUB_GB`` is not a number.
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
        """The address of the Hub or mirror."""
        return (self.endpoint or constants.ENDPOINT).rstrip("/")

    @property
    def cache(self) -> Path:
        """The folder that holds the downloaded files of all models."""
        return Path(self.cache_dir or constants.HF_HUB_CACHE).expanduser().resolve()

    def folder(self, name: str) -> Path:
        """The folder that holds the files of all revisions of a model."""
        return self.cache / f"models--{name.replace('/', '--')}"

    def api(self) -> HfApi:
        """A client of huggingface_hub."""
        return HfApi(endpoint=self.endpoint, token=self.token, library_name="attention-explorer")

    def check_allowed(self, name: str) -> None:
        """Refuses a name that this installation does not open.

        Raises:
            HubError: The name is not among the allowed ones.
        """
        if self.allowed is not None and not any(fnmatch.fnmatchcase(name, each) for each in self.allowed):
            names = " or ".join(self.allowed[:4]) or "no model at all"
            raise HubError(f"{name} may not be opened here; {ALLOWED_VARIABLE} allows {names}.")


def is_name(text: str) -> bool:
    """Whether a text has the form of a model name on the Hub, ``owner/model``."""
    return _NAME.fullmatch(text) is not None


def check_name(name: str) -> None:
    """Refuses a text that is not a model name on the Hub, such as a path.

    Raises:
        HubError: The text is not a valid name.
    """
    if not _NAME.fullmatch(name):
        raise HubError(f"{name!r:.120} is not a model name on the Hub; names have the form owner/model.")


def check_revision(revision: str) -> None:
    """Refuses a text that cannot be a branch, tag or commit.

    Raises:
        HubError: The text is not a valid revision.
    """
    if not _REVISION.fullmatch(revision) or ".." in revision or "//" in revision or revision.endswith("/"):
        raise HubError(f"{revision!r:.120} is not a revision; give a branch, a tag or a commit.")


def explained(error: BaseException, name: str, hub: Hub, revision: str | None = None) -> HubError:
    """Explains an error of huggingface_hub in one sentence."""
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
        return HubError(f"{name} cannot be saved in {hub.cache}: {error.strerror}.")
    if isinstance(error, errors.LocalTokenNotFoundError):
        return HubError("No token for the Hub was found; log in with `hf auth login`.")
    return HubError(f"{name}: the server at {hub.address} is not the Hub; check HF_ENDPOINT.")


def _answer(error: errors.HfHubHTTPError, name: str, hub: Hub, revision: str | None) -> HubError:
    """Explains an error status of the Hub in one sentence."""
    status = error.response.status_code
    if isinstance(error, errors.GatedRepoError):
        return HubError(
            f"{name} is open only to users who accept its terms: accept them at {hub.address}/{name}, "
            "and log in with `hf auth login`."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return HubError(f"{name} has no revision {revision!r:.120} on the Hub.")
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return HubError(f"{name} lists a file that the Hub does not have; its upload was not finished.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return HubError(
            f"There is no model {name} on the Hub, or it is private: check the spelling, or log in with "
            "`hf auth login`."
        )
    if isinstance(error, errors.DisabledRepoError):
        return HubError(f"{name} is switched off on the Hub.")
    if status in (401, 403):
        return HubError(f"The Hub refuses access to {name} with this token; log in with `hf auth login`.")
    if status == 429 or status >= 500:
        return UnreachableError(f"The Hub at {hub.address} answers with an error ({status}).")
    return HubError(f"The Hub at {hub.address} refuses {name} ({status}).")
