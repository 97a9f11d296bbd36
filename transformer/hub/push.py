"""Publishes a model on the Hub: checks it, completes the header of its card, and uploads one commit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx2
from huggingface_hub import CommitOperationAdd, ModelCardData
from huggingface_hub.errors import RepositoryNotFoundError

from transformer.families.registry import family_of
from transformer.hub.client import client, explained
from transformer.hub.files import needed
from transformer.hub.settings import Hub, HubError, check_name
from transformer.hub.sources import open_model
from transformer.storage.card import opened
from transformer.storage.description import CARD_FILE, read_card
from transformer.storage.directory import whole
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.header import CardError
from transformer.storage.shared import SHARED_FILE

TAGS = ("translation", "transformer", "attention", "interpretability", "attention-explorer")
_USE = """
## Use

```python
from transformer import load_translator

translation = load_translator("{name}").translate("…")
print(translation.text, translation.head("cross", 0, 0).weights)
```
"""


@dataclass(frozen=True)
class Pushed:
    """The result of publishing a model."""

    name: str  # name on the Hub
    commit: str  # hash of the new commit
    url: str  # address of the model's page


def push_to_hub(
    directory: str | Path,  # the model directory; nothing in it is changed
    name: str,  # ``owner/model``; the repository is created if it does not exist
    private: bool = False,  # whether only the owner can see a new repository
    *,
    # the license of the weights, such as ``cc-by-4.0``; not needed if the card names it
    license: str | None = None,
    languages: Sequence[str] = (),  # language codes of source and target; not needed if the card names them
    hub: Hub | None = None,  # the Hub to publish on
) -> Pushed:
    """Publishes a model directory after opening it without errors.

    CheckpointError if it holds no usable model, its card lacks a license or languages, or the Hub refuses it.
    """
    hub = hub or Hub.from_environment()
    check_name(name)
    source = Path(directory)
    if not source.is_dir():
        raise CheckpointError(f"There is no model directory {directory}.")
    names = {path.name for path in source.iterdir() if path.is_file()}
    named = read_json(source / SHARED_FILE) if SHARED_FILE in names else {}
    files = needed({*names, *named}, str(directory))
    open_model(source)
    card = published_card(read_card(source), name, license, languages, family_of(source).library)
    parts = {each: whole(source, each) if each in named else source / each for each in files}
    operations = [CommitOperationAdd(each, part) for each, part in parts.items() if each != CARD_FILE] + [
        CommitOperationAdd(CARD_FILE, card.encode())
    ]
    with _explained(name, hub):
        api = client(hub)
        api.create_repo(name, private=private or None, exist_ok=True)
        done = api.create_commit(name, operations, commit_message=f"Add {source.resolve().name}")
    return Pushed(name, done.oid, f"{hub.address}/{name}")


@contextlib.contextmanager
def _explained(name: str, hub: Hub) -> Iterator[None]:
    try:
        yield
    except RepositoryNotFoundError as error:
        raise HubError(
            f"The Hub does not let you write to {name}: log in with `hf auth login`, "
            "and use the name of your own account."
        ) from error
    except (httpx2.HTTPError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ else error
        raise explained(cause, name, hub) from error


def published_card(
    card: str,  # text of the model card; may be empty
    name: str,  # name on the Hub
    license: str | None,  # license of the weights; None if the card names it
    languages: Iterable[str],  # language codes; empty if the card names them
    library: str,  # who can open the model
) -> str:
    """Completes the YAML header of a card, by which the Hub finds models; existing entries stay.

    HubError if the header is damaged, or license or languages are missing.
    """
    text = card if card.lstrip().startswith("---") else f"---\n{{}}\n---\n{card}"
    try:
        published = opened(text)
    except CardError as error:
        raise HubError(f"{CARD_FILE}: {error}") from error
    data = cast(ModelCardData, published.data)
    data.license = license or data.license
    data.language = list(languages) or data.language
    for what, value in (("license", data.license), ("language", data.language)):
        if not value:
            raise HubError(f"{CARD_FILE} names no {what}; add one to the card, or pass --{what}.")
    data.library_name = library
    data.pipeline_tag = "translation"
    data.tags = list(dict.fromkeys((*(data.tags or ()), *TAGS)))
    measured = [result.metric_type for result in data.eval_results or []]
    data.metrics = list(dict.fromkeys((*(data.metrics or ()), *measured))) or None
    body = published.text if published.text.strip() else f"\n# {name.partition('/')[2]}\n"
    published.text = body if "load_translator(" in body else body.rstrip() + "\n" + _USE.format(name=name)
    return str(published)
