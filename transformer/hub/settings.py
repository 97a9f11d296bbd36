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
from urllib.parse import urlsplit

from huggingface_hub import constants

from transformer.storage.files import CheckpointError

LIMIT_VARIABLE, ALLOWED_VARIABLE = "TRANSFORMER_HUB_GB", "TRANSFORMER_HUB_ALLOWED"
HOSTED_VARIABLE = "TRANSFORMER_HOSTED"
MOST_BYTES = 1_500_000_000
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{3,96}}\Z)(?!.*(?:--|\.\.|\.git\Z)){_PART}/{_PART}")
_REVISION = re.compile(r"(?!.*(?:\.\.|//|/\Z))[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")


HOSTS = frozenset({"huggingface.co", "hf.co"})
"""Names of the Hub's own host."""
_PAGES = frozenset({"tree", "blob", "resolve", "discussions", "commits"})
"""What may stand after the name of a model in the address of one of its pages."""
_OTHERS = frozenset({"datasets", "spaces"})
"""What stands before the names of what is no model."""


class HubError(CheckpointError):
    """A model cannot be fetched from the Hub; the message says why in one sentence."""


class UnreachableError(HubError):
    """The Hub does not answer; models in the cache can still be used."""


@dataclass(frozen=True, kw_only=True)
class Hub:
    """The Hub to fetch models from, and limits on what may be fetched."""

    endpoint: str | None = (
        None  # address of the Hub or a mirror; None for huggingface_hub's default
    )
    cache_dir: Path | None = (
        None  # folder of the downloaded files; None for huggingface_hub's default
    )
    token: str | bool | None = None  # a token; False for none; None for huggingface_hub's default
    most_bytes: int = MOST_BYTES  # largest total size of a model's files in bytes
    # patterns of the names that may be opened, such as ``Helsinki-NLP/*``; None for all
    allowed: tuple[str, ...] | None = None
    timeout: float = 10.0  # seconds to wait for an answer

    @classmethod
    def from_environment(cls) -> Hub:
        """The Hub as the environment describes it; HubError if ``TRANSFORMER_HUB_GB`` is not a
        number."""
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
        if self.allowed is None:
            return True
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.allowed)

    def revision(self, name: str, revision: str | None = None) -> str:
        """The revision to open, ``main`` if none is named; HubError if it or the name may not be
        opened."""
        if not is_name(name):
            raise HubError(
                f"{name!r:.120} is not a model name on the Hub; names have the form owner/model."
            )
        if not _REVISION.fullmatch(revision or "main"):
            raise HubError(
                f"{revision!r:.120} is not a revision; give a branch, a tag or a commit."
            )
        if not self.allows(name):
            names = " or ".join((self.allowed or ())[:4]) or "no model at all"
            raise HubError(f"{name} may not be opened here; {ALLOWED_VARIABLE} allows {names}.")
        return revision or "main"


def is_hosted() -> bool:
    """True if anybody may come to this installation, so that it is bounded; a strange value bounds
    it too."""
    return os.environ.get(HOSTED_VARIABLE, "").strip().lower() not in (
        "",
        "off",
        "no",
        "false",
        "0",
    )


def pasted_name(text: str, hub: Hub | None = None) -> str | None:
    """The model that a text names which was copied from the Hub: its name, or the address of a page
    of its.

    None for an address of another host than the Hub or its mirror (``HF_ENDPOINT``), and for any
    other text.
    """
    text = text.strip()
    hosts = {*HOSTS, urlsplit((hub or Hub.from_environment()).address).netloc.lower()}
    is_address = "://" in text
    if not is_address:  # an address without its scheme
        is_address = text.partition("/")[0].lower().removeprefix("www.") in hosts
        text = f"https://{text}" if is_address else text
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    if is_address and (
        parts.scheme not in ("http", "https")
        or parts.netloc.lower().removeprefix("www.") not in hosts
    ):
        return None
    if is_address:
        names = parts.path.strip("/").split("/")
    else:
        names = re.split(r"[?#]", text)[0].split("/")
        if names[-1:] == [""]:
            names.pop()
    is_page = len(names) == 2 or (len(names) > 2 and names[2] in _PAGES)
    name = "/".join(names[:2])
    is_model = is_name(name) and not (is_address and names[0] in _OTHERS)
    if is_page and is_model:
        return name
    return None


def is_name(text: str) -> bool:
    """True if a text has the form of a model name on the Hub, ``owner/model``, as a path does
    not."""
    return _NAME.fullmatch(text) is not None
