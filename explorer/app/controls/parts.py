"""Parts of a page that run alone: the only file that knows Streamlit's fragments."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

import streamlit as st

from explorer.app.controls.text import refusal
from explorer.app.server import models
from transformer.devices import is_full

P = ParamSpec("P")
Draw = Callable[P, None]


@contextmanager
def refusals() -> Iterator[None]:
    """Catches a refusal inside and says it there, in a sentence."""
    try:
        yield
    except (ValueError, OSError) as error:
        st.error(refusal(error), icon=":material/error:")
    except RuntimeError as error:
        if not is_full(error):
            raise
        models.leave_gpu()
        st.info("The GPU has no memory left, so models compute on the CPU from now on: ask again.")


def part(
    *,
    key: str | None = None,  # the name by which the part is run again
    run_every: float | None = None,  # seconds of its clock
) -> Callable[[Draw[P]], Draw[P]]:
    """A function that draws a part of a page; what it refuses is said there, in a sentence.

    A part runs again without the page around it, so nothing outside can catch what it raises.
    """
    return lambda draw: st.fragment(refusals()(draw), key=key, run_every=run_every)
