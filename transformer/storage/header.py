"""The YAML header of a model card, which anybody may have written: plain values within limits. No PyTorch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]

from transformer.storage.files import check_values

MOST_CHARACTERS = 2**16
"""The longest header that is read; one of 64 KiB takes half a second."""
_TEXTS = {"license": 100, "license_name": 200, "good_at": 200, "guided_alignment": 500}
"""The most characters of the texts that readers of a card rely on."""
_LISTS = ("language", "tags", "metrics", "datasets")
_MOST_ITEMS, _MOST_ITEM = 1_000, 200
_BLOCK = re.compile(r"\A\s*---[ \t]*(?:\r\n|\r|\n)(.*?)(?:\r\n|\r|\n)---[ \t]*(?:\r|\n|\Z)", re.DOTALL)
_NULLS = ("", "~", "null")


class CardError(ValueError):
    """A header cannot be read; the message says why in one sentence."""


@dataclass(frozen=True)
class Header:
    """Texts of a card's header that the package and the app read; empty where the card does not say."""

    language: tuple[str, ...] = ()  # codes of languages, such as ("en", "de")
    license: str = ""
    license_name: str = ""
    good_at: str = ""  # the kind of text that the model translates well
    guided_alignment: str = ""  # how given alignments shaped the attention
    trouble: str = ""  # what could not be read, in one sentence

    @classmethod
    def of(cls, card: str) -> Header:
        """The header of a card; what cannot be read is left out, and `trouble` says so."""
        try:
            found = parse(card)
        except CardError as error:
            return cls(trouble=str(error))
        wrong = wrong_fields(found)
        read = {name: found.get(name, "") for name in _TEXTS if name not in wrong}
        texts = {name: "" if text in _NULLS else text for name, text in read.items()}
        codes = () if "language" in wrong else tuple(_items(found.get("language", ())))
        trouble = "The card’s {} cannot be read: not of the kind or length that it should be."
        return cls(codes, **texts, trouble=trouble.format(" and ".join(wrong)) if wrong else "")


class _Plain(yaml.BaseLoader):  # type: ignore[misc]
    """Reads every scalar as text, and no aliases: nine of them in nine of them grow to gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise CardError("The card’s header uses YAML aliases, so it is not read.")
        return super().compose_node(parent, index)


def parse(card: str) -> dict[str, Any]:
    """Texts, lists and objects of a card's header by name; empty if the card has no header.

    CardError if it is too long, uses aliases, or is not valid YAML with named values.
    """
    block = _BLOCK.match(card)
    if block is None:
        return {}
    if len(block[1]) > MOST_CHARACTERS:
        raise CardError(f"The card’s header has more than {MOST_CHARACTERS:,} characters, so it is not read.")
    try:
        found = yaml.load(block[1], Loader=_Plain)
        check_values(found)
    except CardError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CardError("The card’s header, between the two --- lines, is not valid YAML.") from error
    if not isinstance(found or {}, dict):
        raise CardError("The card’s header, between the two --- lines, is not valid YAML with named values.")
    return found or {}


def wrong_fields(found: dict[str, Any]) -> list[str]:
    """Names of fields that are of another kind, or longer, than readers take them to be."""
    texts = [name for name, most in _TEXTS.items() if not _is_text(found.get(name, ""), most)]
    lists = [_items(found.get(name, ())) for name in _LISTS]
    return texts + [
        name
        for name, items in zip(_LISTS, lists, strict=True)
        if len(items) > _MOST_ITEMS or not all(_is_text(each, _MOST_ITEM) for each in items)
    ]


def _items(value: Any) -> list[Any]:
    """The items of a list; a text alone is a list of one."""
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value in _NULLS else [value]


def _is_text(value: Any, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most
