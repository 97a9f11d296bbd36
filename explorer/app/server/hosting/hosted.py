"""A hosted instance, where anybody may come: one variable switches all of its bounds on.

``TRANSFORMER_HOSTED=on`` closes the Hub unless ``TRANSFORMER_HUB_ALLOWED`` names models
(`transformer/hub/settings.py`), and training unless ``TRANSFORMER_TRAIN_HERE`` is on
(`explorer/app/server/workshop/limits.py`). Texts and searches are bounded here, and each run of a page is
logged.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from explorer.app.address.kinds import BEAM
from explorer.app.server.hosting.bounds import Bounds
from transformer.hub.settings import is_hosted

ON, OFF = ("on", "yes", "true", "1"), ("off", "no", "false", "0")


TIMES = 10
"""How much longer a text of several sentences may be than a sentence."""


def check_texts(*texts: str | None, times: int = 1) -> None:
    """Refuses texts that are too long for this instance: longer than so many times its bound.

    Raises:
        ValueError: one of them is.
    """
    most, longest = (
        times * Bounds.from_environment().characters,
        max((len(text or "") for text in texts), default=0),
    )
    if longest > most:
        log("refused", why="length")
        raise ValueError(
            f"This text has {longest:,} characters; this server takes at most {most:g}. "
            "Your own copy of the app takes more."
        )


def check_search(decode: str) -> None:
    """Refuses a way of decoding whose beam is too large for this instance.

    Raises:
        ValueError: it is.
    """
    most = Bounds.from_environment().beam
    if decode.startswith(BEAM) and int(decode.removeprefix(BEAM)) > most:
        log("refused", why="beam")
        raise ValueError(f"This server searches with at most {most:g} hypotheses; choose fewer.")


def check_draws(count: int) -> None:
    """Refuses more samples than this instance draws at once.

    Raises:
        ValueError: there are more.
    """
    most = Bounds.from_environment().draws
    if count > most:
        log("refused", why="draws")
        raise ValueError(f"This server draws at most {most:g} samples at once; choose fewer.")


def log(event: str, **values: object) -> None:
    """Writes one line of JSON on a hosted instance; never a text, an address or a name of a visitor."""
    if is_hosted():
        told = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **values}
        print(json.dumps(told), flush=True)
