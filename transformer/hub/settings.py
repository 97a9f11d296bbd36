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
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{3,96}}\Z)(?!.*(?:--|\.\.|\.git\Z)){_PART}/{_PART}")
_REVISION = re.compile(r"(?!.*(?:\.\.|//|/\Z))[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")


class HubError(CheckpointError):
    """A model cannot be fetched from the Hub; the message says why in one sentence."""


class UnreachableError(HubError):
    """The Hub does not answer; models in the cache can still be used."""


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
        limit = os.environ.get(LIMIT_VARIABLE)
        allowed = os.environ.get(ALLOWED_VARIABLE, "" if is_hosted() else None)
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

    def allows(self, name: str) -> bool:
        """Whether this installation opens a model of this name."""
        return self.allowed is None or any(fnmatch.fnmatchcase(name, each) for each in self.allowed)

    def revision(self, name: str, revision: str | None = None) -> str:
        """The revision to open, ``main`` if none is named; HubError if it or the name may not be opened."""
        if not is_name(name):
            raise HubError(f"{name!r:.120} is not a model name on the Hub; names have the form owner/model.")
        if not _REVISION.fullmatch(revision or "main"):
            raise HubError(f"{revision!r:.120} is not a revision; give a branch, a tag or a commit.")
        if not self.allows(name):
            names = " or ".join((self.allowed or ())[:4]) or "no model at all"
            raise HubError(f"{name} may not be opened here; {ALLOWED_VARIABLE} allows {names}.")
        return revision or "main"


def is_hosted() -> bool:
    """True if anybody may come to this installation, so that it is bounded; a strange value bounds it too."""
    return os.environ.get(HOSTED_VARIABLE, "").strip().lower() not in ("", "off", "no", "false", "0")


def is_name(text: str) -> bool:
    """True if a text has the form of a model name on the Hub, ``owner/model``, as a path does not."""
    return _NAME.fullmatch(text) is not None
