"""Models on the Hub in the app: looks up a name, says what the model needs, and fetches the
model."""

from collections.abc import Callable, Iterable

import streamlit as st

from explorer.app.address import session
from explorer.app.controls import part, plain, refusal
from explorer.app.server import hub_models, memory, models
from explorer.app.server.hub_models import HubQuestion
from explorer.app.server.models import ModelHandle
from transformer.families.registry import KNOWN
from transformer.hub.files import Offer, size
from transformer.hub.settings import Hub, is_hosted, pasted_name
from transformer.storage.memory import needed_bytes

_EVERY = 0.5
"""Seconds between two updates of a download's progress."""

Take = Callable[[str], object]
"""A function that opens a model by name."""


def draw(take: Take) -> None:
    """Draws the form, or the progress of a download; opens the model when the download ends."""
    if hub_models.question().download is None:
        _panel()
    else:
        _fetched(take)


def suggest_language_model(known: Iterable[ModelHandle]) -> None:
    """Offers a real language model, until there is one beside those of this project: one click, or
    the command that brings it."""
    model = hub_models.LANGUAGE_MODEL
    if hub_models.question().download or any(map(is_real, known)):
        return
    sizes = f"{size(model.download)} to download, {model.licence}"
    if hub_models.closed() is None and Hub.from_environment().allows(model.name):
        st.button(
            "Try a real language model",
            icon=":material/download:",
            type="tertiary",
            on_click=_take,
            args=(model.name,),
            key="hub.language_model",
            help=f"{model.name}: {sizes}.",
        )
    elif not is_hosted():
        st.caption(
            f"A real language model ({sizes}): `python -m transformer pull {model.name}`, on a "
            "machine with a network, brings it."
        )


def is_real(model: ModelHandle) -> bool:
    """Whether a model continues texts, and is neither bundled nor a small one that was trained
    here."""
    folders = {*model.path.parents}
    small = models.own_models() in folders and model.needs < models.LARGE
    return models.BUNDLED not in folders and not small and model.continues


def _take(name: str) -> None:
    """Begins a download; what is in its way is said on the page, since the form may be closed."""
    hub_models.take(name)
    question = hub_models.question()
    if question.problem:
        session.notice(question.problem)
    elif question.download is None:
        session.notice(f"{name} needs more memory than is free here.")


@part(run_every=_EVERY)
def _fetched(take: Take) -> None:
    """Draws the progress of a download, twice a second.

    Its end opens the model and draws the whole page.
    """
    question = hub_models.question()
    if (download := question.download) is None:
        session.rerun()
        return
    if download.complete:
        name = question.name
        hub_models.ask("")
        take(name)
        session.rerun()
    if download.failed:
        question.problem, question.download = download.failed, None
        session.rerun()
    there = size(download.done)
    total = size(download.total)
    share = min(download.done / max(download.total, 1), 1.0)
    st.progress(share, f"Downloading {plain(question.name)}: {there} of {total}")
    st.button("Cancel", on_click=hub_models.ask, args=("",), key="hub.cancel")


@part()
def _panel() -> None:
    """Draws the form; the start of a download draws the whole page again."""
    question = hub_models.question()
    if question.download is not None:
        session.rerun()
    icon, key = ":material/cloud_download:", "hub.popover"
    with st.popover(
        "Models on the Hub", icon=icon, type="tertiary", key=key, on_change="rerun"
    ) as place:
        if place.open:  # free memory is read and the Hub is asked only then
            _form(question)


def _form(question: HubQuestion) -> None:
    reason = hub_models.closed()
    not_asked = question.pressed and question.offer is None and not question.problem
    if question.name and not_asked and reason is None:
        with st.spinner("Asking the Hub"):
            question.look()
    blocked = reason is not None or question.unreachable
    st.text_input(
        "Name of a model on the Hub",
        question.name,
        placeholder="Helsinki-NLP/opus-mt-en-fr",
        disabled=blocked,
        help=f"Any model of {KNOWN}, or one trained with this package.",
        **session.control(
            "hub.grey" if blocked else "hub", question.name, _ask
        ),  # a disabled field loses its text
    )
    if reason is not None:
        st.caption(plain(reason))
        return
    if patterns := Hub.from_environment().allowed:
        st.caption(f"Allowed here: {plain(', '.join(patterns))}")
    if not question.name:
        st.caption("Type a name and press Enter.")
        _suggest()
        return
    if question.problem:
        st.error(refusal(question.problem), icon=":material/error:")
    elif question.offer is not None:
        _offer(question, question.offer)
        return
    label = "Try again" if question.problem else "Look it up"
    st.button(label, on_click=hub_models.ask, args=(question.name, True), key="hub.again")


def _suggest() -> None:
    """Draws well-known models that fit; a click asks the Hub what it offers."""
    fitting = hub_models.fitting()
    if not fitting:
        return
    st.caption("Known models that fit the memory that is free here:")
    with st.container(gap=None):
        for entry in fitting:
            key = f"hub.suggested.{entry.name}"
            st.button(entry.name, type="tertiary", on_click=_ask, args=(entry.name,), key=key)
            sizes = f"{entry.millions} million parameters, {entry.nbytes / 1e9:.1f} GB"
            st.caption(plain(f"{entry.does} · {sizes} · {entry.licence}"))


def _offer(question: HubQuestion, offer: Offer) -> None:
    free = memory.available()
    config = offer.config
    needs = needed_bytes(config)
    layers = " + ".join(str(stack.n_layers) for stack in config.stacks.values())
    st.markdown(
        f"**{plain(offer.name)}**, {layers} layers of {config.n_heads} heads: {size(offer.nbytes)} "
        f"to download, {size(needs)} of memory needed, {size(free)} free."
    )
    if offer.present_name != offer.name:
        st.caption(f"This model is now called {plain(offer.present_name)}.")
    fits = needs <= free
    if not fits:
        st.caption("This model needs more memory than is free here.")
    st.button(
        "Download it", type="primary", disabled=not fits, on_click=question.fetch, key="hub.fetch"
    )


def _ask(text: str) -> None:
    hub_models.ask(pasted_name(text) or text.strip().strip("/"))
