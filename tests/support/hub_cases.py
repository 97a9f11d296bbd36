"""A small model on a Hub of one process, how it changes, and how an error must read."""

from collections.abc import Callable
from typing import Any

import pytest
from hub_server import HubServer

from transformer.storage.files import CheckpointError

NAME = "user/tiny"


def change(server: HubServer, **files: bytes | None) -> str:
    """A new state of the model: ``__`` in a name stands for a dot, None drops a file; gives the
    commit."""
    repository = server.repositories[NAME]
    before = repository.commits[repository.branches["main"]]
    merged = before | {name.replace("__", "."): content for name, content in files.items()}
    return repository.commit(
        {name: content for name, content in merged.items() if content is not None}
    )


def refused(message: str, action: Callable[..., Any], *arguments: Any) -> None:
    """One sentence, short, about the right thing."""
    with pytest.raises(CheckpointError, match=message) as caught:
        action(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 300
