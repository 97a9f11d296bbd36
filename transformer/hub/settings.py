"""Settings for the Hub: its address, and which models may be opened.

huggingface_hub sets the address, cache, token and offline mode (``HF_ENDPOINT``, ``HF_HUB_CACHE``,
``HF_TOKEN``, ``HF_HUB_OFFLINE``, ``hf auth login``). This package adds two limits.
"""

from __future__ import annotations

import fnmatch
import os
import re
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants

from transformer.storage.files import CheckpointError

LIMIT_VARIABLE, ALLOWED_VARIABLE = "TRANSFORMER_HUB_GB", "TRANSFORMER_HUB_ALLOWED"
HOSTED_VARIABLE = "TRANSFORMER_HOSTED"
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
    """The Hub to fetch models from, and limits on what may be fetched."""

    endpoint: str | None = None  # address of the Hub or a mirror; None for huggingface_hub's default
    cache_dir: Path | None = None  # folder of the downloaded files; None for huggingface_hub's default
    token: str | bool | None = None  # a token; False for none; None for huggingface_hub's default
    most_bytes: int = MOST_BYTES  # largest total size of a model's files in bytes
    # patterns of the names that may be opened, such as ``Helsinki-NLP/*``; None for all
    allowed: tuple[str, ...] | None = None
    timeout: float = 10.0  # seconds to wait for an answer

    @classmethod
    def from_environment(cls) -> Hub:
        """The Hub as the environment describes it; HubError if ``TRANSFORMER_HUB_GB`` is not a number."""
        limit, allowed = os.environ.get(LIMIT_VARIABLE), os.environ.get(ALLOWED_VARIABLE)
        if allowed is None and is_hosted():
            allowed = ""
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

    def asked(self, name: str, revision: str | None) -> str:
        """The revision that is asked for; HubError if it or the name is not valid, or not allowed here."""
        check_name(name)
        check_revision(revision or "main")
        self.check_allowed(name)
        return revision or "main"

    def check_allowed(self, name: str) -> None:
        """HubError if this installation does not open a model of this name."""
        if self.allowed is not None and not any(fnmatch.fnmatchcase(name, each) for each in self.allowed):
            names = " or ".join(self.allowed[:4]) or "no model at all"
            raise HubError(f"{name} may not be opened here; {ALLOWED_VARIABLE} allows {names}.")


def is_hosted() -> bool:
    """True if anybody may come to this installation, so that it is bounded; a strange value bounds it too."""
    return os.environ.get(HOSTED_VARIABLE, "").strip().lower() not in ("", "off", "no", "false", "0")


def is_name(text: str) -> bool:
    """True if a text has the form of a model name on the Hub, ``owner/model``."""
    return _NAME.fullmatch(text) is not None


def check_name(name: str) -> None:
    """HubError if a text is not a model name on the Hub, such as a path."""
    if not _NAME.fullmatch(name):
        raise HubError(f"{name!r:.120} is not a model name on the Hub; names have the form owner/model.")


def check_revision(revision: str) -> None:
    """HubError if a text cannot be a branch, tag or commit."""
    if not _REVISION.fullmatch(revision) or ".." in revision or "//" in revision or revision.endswith("/"):
        raise HubError(f"{revision!r:.120} is not a revision; give a branch, a tag or a commit.")
