"""The choice of a model: the list in the sidebar, memory needs, target languages, and models on the
Hub."""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

import streamlit as st

from explorer.app.address import State, session, sitemap
from explorer.app.address.change_list import Listed, parted
from explorer.app.address.kinds import Moves
from explorer.app.controls import plain, refusal
from explorer.app.controls.pickers import choose
from explorer.app.server import models
from explorer.app.server.hub_models import suggest
from explorer.app.server.models import ModelHandle, OpenFile
from explorer.app.server.source import Source
from explorer.app.shell import changed, hub_picker, menu
from explorer.app.shell.fitting import fit_model
from explorer.lenses.words.languages import language_name
from explorer.linked.living.beside import in_words
from transformer.config import Head
from transformer.hub.files import size
from transformer.hub.settings import is_name
from transformer.interventions.request import carries_over

MOST_LEFT_OUT = 3
"""Folders that are named as left out."""


def pick_model(now: State, page: str = sitemap.HOME) -> Source | None:
    """Draws the sidebar, with the model picker above the menu; `page` as `sitemap` names it.

    Returns:
        The chosen model or file; None if there are no models.
    """
    with st.sidebar:
        place = st.container()
        menu.draw()
    known = models.available()
    names = [*models.grouped(known), *session.visit().files]
    if not names:
        st.error(
            "There is no model here. Put one into assets/models, or train one with "
            "`python -m transformer train`."
        )
        return None
    name = now.model or ""
    if name not in names:
        if is_name(name):
            suggest(name)
            away = f"{name} is not on this machine, so {names[0]} is shown."
            session.notice(f"{away} Download {name} from the Hub, on the left.")
            name = names[0]
        else:
            name = fit_listed(now.model, names)
        session.resolve(model=name)
    with place:
        texts = {name: known[name].label if name in known else name for name in names}
        choose("model", "Model", texts, name, take_model, labelled=True)
    source = known.get(name) or models.opened(name)
    # a model whose files alone do not say which languages it knows is loaded; errors are reported
    # later
    with suppress(KeyError, ValueError, OSError):
        if isinstance(source, ModelHandle) and source.description is None and not source.resident:
            with st.spinner(plain(source.waits)):
                _ = source.default_heads
    with place:
        if drawn := sitemap.PLACES[sitemap.at(page, now.view)].draws:
            st.caption(f"Drawn here: {drawn}.")
        elif isinstance(source, ModelHandle):
            line, more = _about(source)
            st.caption(plain(line or more), help=plain(more) if line else None)
            for note in source.notes:
                st.caption(plain(note))
        if source.pieces:
            _pick_language(source, now)
        left_out()
        hub_picker.suggest_language_model(known.values())
        hub_picker.draw(take_model)
    return source


def fit_listed(wanted: str | None, names: Iterable[str]) -> str:
    """The model to open; a notice says why it is not the one that the address names."""
    reason = models.unlisted().get(wanted or "")
    say = (
        session.notice
        if reason is None
        else lambda sentence: session.notice(f"{reason} {sentence}")
    )
    return fit_model(wanted, names, say)


def left_out() -> None:
    """Draws which folders the list leaves out, and why."""
    reasons = list(models.unlisted().values())
    if len(reasons) > MOST_LEFT_OUT:
        reasons[MOST_LEFT_OUT:] = [
            f"{len(reasons) - MOST_LEFT_OUT} more folders hold no model of this list."
        ]
    for reason in reasons:
        st.caption(f":material/warning: {refusal(reason)}")


def _about(source: ModelHandle) -> tuple[str, str]:
    """What a model is good at, as far as its card says so.

    And its size, its licence, where it runs.
    """
    if source.problem:
        return "", source.problem
    card = source.header
    disk = f"{size(source.nbytes)} on disk" if source.nbytes else ""
    short = source.lacks_memory
    if source.keeper is not None:
        text = f"A language model, kept by {source.keeper}: {disk}, {size(source.needs)} of memory."
        return f"{text} {short}".strip(), source.runs
    if not card.license or not card.good_at:
        return short or card.trouble, source.runs
    licence = card.license_name or card.license.upper().replace("-", " ")
    languages = "" if source.title == source.languages else source.languages
    text = " · ".join(filter(None, (languages, card.good_at, card.trouble, short)))
    return text, " · ".join(filter(None, (disk, licence, source.runs)))


def take_model(name: str) -> None:
    """Opens another model.

    Keeps the sentence, the step, the view, and heads that the visitor chose.
    """
    if isinstance(found := models.known(name), OpenFile):
        nowhere = dict.fromkeys(("step", "source", *models.KINDS))
        session.change(model=name, **nowhere, **found.selection)
        return
    now = session.current()
    if now.source is not None:
        session.notice(
            "The source token is no longer chosen, because each model splits texts in its own way."
        )
    opens = dict[str, Head]()
    heads = {kind: getattr(now, kind) for kind in models.KINDS}
    with suppress(KeyError, ValueError, OSError):
        opens = models.find(now.model or next(iter(models.available()))).default_heads
    chosen = {kind: None if head == opens.get(kind) else head for kind, head in heads.items()}
    session.change(model=name, source=None, **chosen, **_changes_for(name, now))


def _changes_for(name: str, now: State) -> Moves:
    """The state's changes with another model: those that do not carry over are switched off."""
    items = changed.all_of(now)
    with suppress(KeyError, ValueError, OSError):
        known = models.available()
        model = known[name]
        before = known.get(now.model or models.DEFAULT)
        same_vocabulary = before is not None and before.reads_alike(model)
        fits = partial(carries_over, config=model.config, same_vocabulary=same_vocabulary)
        unfit = [change for change, on in items if on and not fits(change)]
        if not unfit:
            return {}
        changes = "; ".join(map(in_words, unfit))
        reason = f"{model.title} has no such place, or numbers its tokens otherwise"
        session.notice(f"Switched off, because {reason}: {changes}.")
        return parted(Listed(change, on and change not in unfit) for change, on in items)
    return {}


def _pick_language(source: Source, now: State) -> None:
    """Lets the visitor choose among several target languages.

    A sentence may name its language itself.
    """
    named = source.named_in(now.text or "")
    chosen = named or source.language_of(now.language)
    names = {piece: language_name(piece) for piece in source.pieces}
    in_order = dict(sorted(names.items(), key=lambda item: item[1]))
    if not source.names_pair:
        choose(
            "language",
            "Translate into",
            in_order,
            chosen,
            partial(_take_language, [], 0),
            labelled=True,
            disabled=named is not None,
            help="This model translates into several languages, so each text starts with the one "
            "you choose.",
        )
        return
    sides = chosen.split()
    for side, label in enumerate(("Translate from", "Into")):
        choose(
            f"language.{side}",
            label,
            in_order,
            sides[side],
            partial(_take_language, sides, side),
            labelled=True,
            disabled=named is not None,
            help="This model is told both languages: the text begins with its own, the output with "
            "the other.",
        )


def _take_language(sides: list[str], side: int, language: str) -> None:
    """Takes a language in the place of one of those that the model is told."""
    language_pair = " ".join([*sides[:side], language, *sides[side + 1 :]])
    session.change(language=language_pair, **session.FRESH)
