"""A linked view and its feeders: the part that all pages with a cursor share.

The outer fragment holds the head controls and the feeders; the inner fragment holds the view. A
step runs only the inner fragment. Another head, or a step that leaves the drawn window, runs the
outer fragment. The outer fragment asks the session once what the visitor looks at, and hands the
answer down.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import Moves
from explorer.app.address.page_values import FOLLOWING, Maps
from explorer.app.controls import part, pickers
from explorer.app.maps import display
from explorer.app.maps.filling import SPLIT
from explorer.app.maps.looking import HeadSelection, Looks, badge_of_all, looks_of
from explorer.app.server import models, runs
from explorer.app.server.view import View
from explorer.app.shell import changed
from explorer.figures.base import labels
from explorer.figures.base.bars import shown_candidates
from explorer.figures.base.captions import Badge
from explorer.lenses.words.reading import Reading, read_view
from explorer.linked.served import imported
from explorer.linked.view.events import Chosen, Cursor, CursorRange
from explorer.linked.view.feeds import AXES, badge_of, fades
from explorer.linked.view.home import Layout, head_map, stops
from explorer.linked.view.silent import silenced
from explorer.linked.view.strips import strips_feed
from explorer.linked.view.wire import Feed, MapFeed, ProofFeed, Shade, StepClaim, Stop, StripsFeed
from transformer.config import AttentionKind
from transformer.interventions import Choose, Intervention, Prefix, choose, prefix
from transformer.run import Translation
from transformer.text import words

_KEY = "explorer"
_SCRIPT = imported("linked_view/view.js")
# Data travel as a list of one: in a dictionary, Streamlit looks for tables among the values, with
# pandas. Streamlit mistakes a one-line script for a path, so each script has a line break.
_VIEW = st.components.v2.component(
    "linked_view",
    js=f"export default async (part) =>\n  (await {_SCRIPT}).show({{ ...part, data: part.data[0] }});",
    isolate_styles=False,
)
_FEEDER = st.components.v2.component(
    "linked_view_feeder",
    js=f"export default async ({{ data }}) => {{\n  (await {_SCRIPT}).feed({{ data: data[0] }});\n}};",
    isolate_styles=False,
)


def changes(
    translation: Translation,  # the run so far
    step: int,  # the step, from 0
    token_id: int,  # one of the step's candidates
) -> tuple[Intervention, ...]:
    """The changes with which a run keeps its tokens up to a step, writes a token there, and then
    continues.

    Greedy search needs only the choice of the token, because it writes the tokens before the step
    again, and none of a token that it would write anyway. Any other way of decoding is given the
    tokens before the step. Choices for later steps are dropped.
    """
    remaining = tuple(
        intervention
        for intervention in translation.interventions
        if not (isinstance(intervention, Prefix) and len(intervention.token_ids) > step)
        and not (isinstance(intervention, Choose) and intervention.step >= step)
    )
    if translation.method != "greedy":
        without_tokens = tuple(
            change for change in remaining if not isinstance(change, Choose | Prefix)
        )
        return (*without_tokens, prefix([*translation.target_ids[:step], token_id]))
    offered = translation.steps[step].alternatives
    free = all(
        isinstance(change, Choose) for change in remaining
    )  # greedy search takes the most probable token
    if free and token_id == offered[0].token_id and not offered[0].excluded:
        return remaining
    # as its piece, which people can read in an address; by its id if several tokens look alike
    piece = next((change.token for change in offered if change.token_id == token_id), "")
    alike = [change for change in offered if change.token == piece]
    return (*remaining, choose(step, piece if len(alike) == 1 else token_id))


def continue_with(opened: View, step: int, token_id: int) -> Moves:
    """The state's values for continuing with a candidate; both it and its rival count as tried.

    In the place of a token of a prompt, it ends another prompt.
    """
    now = opened.translation.steps[step].token_id
    if token_id == now:
        return {}
    session.visit().tried.update(
        (prefix_of(opened, step), piece_id) for piece_id in (token_id, now)
    )
    if step < opened.translation.n_given and "source" not in opened.sides:
        return _prompt_ending(opened, step, token_id)
    more = {"changes": changes(opened.translation, step, token_id), "target": None, "step": step}
    return {**session.RUN, **more}


def _prompt_ending(opened: View, step: int, token_id: int) -> Moves:
    """The state's values for the text that ends with a candidate, in place of what was typed."""
    run = opened.translation
    model = opened.source.load()
    wanted = tuple(model.whole((*run.target_ids[:step], token_id), run.start_id))
    text = model.text(wanted)
    ids = model.ids(text)
    if ids != wanted:
        session.notice(SPLIT.format("token"))
    return {**session.FRESH, "text": text, "step": max(0, model.prompt_steps(text) - 1)}


def offered(opened: View) -> tuple[list[list[int | None]], list[list[int]]] | None:
    """The ids of the candidates of each step, and of those that the visitor has tried.

    None in place of those that nobody can type at the end of a prompt, as none of a turn of a
    conversation; None for a file.
    """
    if not opened.source.has_model:
        return None
    steps, tried = opened.translation.steps, session.visit().tried
    n_prompt = 0 if "source" in opened.sides else opened.translation.n_given
    # the template of a conversation, not the visitor, writes what stands in the prompt
    is_typed = not opened.run_key.chat
    ids = list[list[int | None]]()
    ids_tried = list[list[int]]()
    for i, step in enumerate(steps):
        candidates = shown_candidates(step)
        before = prefix_of(opened, i) if tried else ()
        ids.append(
            [
                candidate.token_id
                if i >= n_prompt or (is_typed and can_be_typed(candidate.token))
                else None
                for candidate in candidates
            ]
        )
        ids_tried.append(
            [
                candidate.token_id
                for candidate in candidates
                if (before, candidate.token_id) in tried
            ]
        )
    return ids, ids_tried


def can_be_typed(token: str) -> bool:
    """Whether a text can end with a token: not with a mark, one byte of a character, or a blank."""
    if words.is_special(token) or words.BYTE_PIECE.fullmatch(token):
        return False
    return bool(token.strip(labels.WORD_START))


def prefix_of(opened: View, step: int) -> tuple[Hashable, ...]:
    """What a model has read before a step: a sentence, if it translates, and the tokens so far."""
    run = opened.translation
    return opened.run_key.model, run.source_tokens, run.target_ids[:step]


@dataclass(frozen=True)
class Strips:
    """Marks that the token strips of a view show beside the tokens."""

    shades: Sequence[Shade] = ()  # how dark each target token is; none if the strip is not shaded


SIDES_OF = {"encoder": ("source",), "decoder": ("target",), "cross": ("source", "target")}
"""The strips of tokens that a kind of attention reads."""


def strips_only(
    view: str,  # name of the page's views
    kind: str,  # encoder, decoder or cross
) -> Layout:
    """Strips and cursor without a map, for a page whose own pictures follow the cursor."""
    rows, _ = AXES[kind]
    return Layout(
        view=f"{view}-{kind}",
        style="page",
        strips=SIDES_OF[kind],
        plots=(),
        focus=kind,
        cursor=rows,
    )


@dataclass(frozen=True)
class Later:
    """What begins once a view is painted, so that no picture waits for it."""

    due: Callable[[], bool]  # whether it is still to begin
    begin: Callable[[], str]  # begins it; returns the key of the part that is then drawn again


@dataclass(frozen=True)
class Scene:
    """The linked view of one page.

    Its functions get the state, and the visitor's look at each kind.
    """

    # the contents of the view, or a function that returns them if they depend on the state
    layout: Layout | Callable[[State, Looks], Layout]
    opened: View  # the opened sentence
    kinds: tuple[str, ...]  # the kinds of attention whose chosen head is drawn as a map
    # returns the payloads of the other figures, by name
    extra: Callable[[State, Looks], Mapping[str, Feed]] = lambda now, looks: {}
    below: Callable[[State, Looks], None] = lambda now, looks: (
        None
    )  # draws the controls under the view
    tour: bool = False  # whether the view offers its tour
    fade: bool = True  # whether the rows of later steps are faded
    largest: int = 360  # the longest side that a map may have, in px
    # whether the part below the view shows the cursor's place, and is redrawn when that changes
    follows: bool = False
    above: Callable[[State, Looks], None] | None = None  # draws the controls over the view
    # draws what follows every step together with the view
    beside: Callable[[State, Looks], None] | None = None
    # what the token strips show beside the tokens, or a function that returns it if it depends on
    # the state
    strips: Strips | Callable[[State], Strips] = field(default_factory=Strips)
    # gets the sentence, a step and a token id, and returns the values of the state with which the
    # model continues from there with that token
    go_on: Callable[[View, int, int], Moves] = continue_with
    later: Later | None = None  # what waits until the view is painted

    def laid_out(self, now: State, looks: Looks) -> Layout:
        """The contents of the view for a state, without maps of attention that the model does not
        have."""
        layout = self.layout if isinstance(self.layout, Layout) else self.layout(now, looks)
        lacking = {*AttentionKind} - {*self.opened.kinds}
        return replace(
            layout,
            strips=tuple(side for side in layout.strips if side in self.opened.sides),
            plots=tuple(name for name in layout.plots if name not in lacking),
            focus=self.opened.kinds[-1] if layout.focus in lacking else layout.focus,
        )

    def holds(self, now: State) -> bool:
        """Whether the chosen heads are of this model: another may be chosen whose page is not drawn
        yet."""
        heads = (
            (getattr(now, kind), size)
            for kind, size in self.opened.translation.config.sizes.items()
        )
        return all(at is not None and at[0] < size[0] and at[1] < size[1] for at, size in heads)


@part(key=_KEY)
def explorer(scene: Scene) -> None:
    now = _current(scene)
    looks = looks_of(scene.opened, now)
    layout = scene.laid_out(now, looks)
    with st.container(key="linked"):
        # One container, however much `above` draws: Streamlit knows the view's fragment by its
        # place.
        with st.container():
            if scene.above is not None:
                with st.container(key="above"):
                    scene.above(now, looks)
            if now.measure == "effect":
                display.prepare(looks[kind] for kind in scene.kinds)
        _view(scene, layout)
        scene.below(now, looks)
    feeds: dict[str, Feed] = {"strips": _strips(scene, looks)}
    feeds |= {
        kind: _map(scene, layout, looks[kind])
        for kind in scene.kinds
        if kind in (*layout.plots, layout.focus)
    }
    feeds |= scene.extra(now, looks)
    proved = scene.opened.translation.is_audited
    feeders = st.container(key="feeders")
    with feeders:
        choices = session.visit().silent  # an open question gets no feed that answers it
        if choices is not None:
            feeds = {name: silenced(feed, choices) for name, feed in feeds.items()}
        for name, feed in feeds.items():  # Streamlit sends those that changed
            data = {"view": layout.view, "name": name, **feed}
            _FEEDER(key=f"feed.{layout.view}.{name}", data=[data])
    if not proved:  # the browser draws what it has, while the audit is made
        proof = _proof(scene, looks, feeds)
        with feeders:
            data = {"view": layout.view, "name": "proof", **proof}
            _FEEDER(key=f"feed.{layout.view}.proof", data=[data])


def _proof(scene: Scene, looks: Looks, feeds: Mapping[str, Feed]) -> ProofFeed:
    """What the audit finds of the figures of a view, which were sent before it."""
    opened = scene.opened
    kind, look = next(iter(looks.items()))
    opened.translation.audit((AttentionKind(kind), look.head[0]))
    badges = dict[str, Badge]()
    for name, feed in feeds.items():
        if "badge" not in feed or "waits" not in feed["badge"]:
            continue
        if "picks" in feed:
            badges[name] = badge_of_all(opened, feed["picks"])
        else:
            badges[name] = badge_of(looks[feed["kind"]].read())
    return {"draw": "proof", "trace": opened.key, "badges": badges}


@part()
def _view(scene: Scene, layout: Layout) -> None:
    key = f"{session.LINKED}{layout.view}"
    now = _current(scene)
    cursor = session.cursor()
    due = scene.later is not None and scene.later.due()
    awaited = due or not models.loading.begun  # whether something waits for the paint
    data = {
        "view": layout.view,
        "layout": layout.style,
        "strips": layout.strips,
        "plots": layout.plots,
        "focus": layout.focus,
        "cursor": layout.cursor,
        "trace": scene.opened.key,
        "step": cursor.step,
        "source": cursor.source,
        "ack": cursor.ack,
        "awaited": awaited,
        **_together(cursor),
        **({"present": True} if now.values(Maps).present and layout.plots else {}),
    }
    _VIEW(
        key=key,
        data=[data],
        on_at_change=lambda: _moved(scene, layout),
        on_painted_change=lambda: _painted(scene),
    )
    if scene.beside is not None:
        scene.beside(now, looks_of(scene.opened, now))


def _together(cursor: Cursor) -> dict[str, object]:
    """The tokens that are looked at as one; nothing if there are none, as in most steps."""
    if cursor.chosen == Chosen():
        return {}
    return {"chosen": asdict(cursor.chosen)}


def _painted(scene: Scene) -> None:
    """Begins what the picture did not wait for."""
    models.loading.begin()
    if scene.later is not None and scene.later.due():
        st.rerun(scene.later.begin())


def _current(scene: Scene) -> State:
    """The state; if another model was chosen, its page is drawn instead."""
    now = session.current()
    if not scene.holds(now):
        session.rerun()
    return now


def _moved(scene: Scene, layout: Layout) -> None:
    if not scene.holds(session.current()):
        return
    before = _drawn(scene)
    run = scene.opened.translation
    limits = CursorRange(scene.opened.key, len(run.target_tokens), len(run.source_tokens))
    take = partial(scene.go_on, scene.opened)
    if session.on_linked_view(layout.view, limits, run.config.sizes, take, changed.switched):
        session.rerun()
    if _drawn(scene) != before:
        st.rerun(_KEY)


def _drawn(scene: Scene) -> list[object]:
    """The heads and windows that the maps show, and the cursor if the part below follows it."""
    looks = looks_of(scene.opened, session.current())
    shown: list[object] = [(looks[kind].head, looks[kind].window) for kind in scene.kinds]
    follows = scene.follows or session.values(Maps).sort in FOLLOWING
    return [*shown, *(look.cursor for look in looks.values())] if follows else shown


def _map(scene: Scene, layout: Layout, look: HeadSelection) -> MapFeed:
    """The feed of a map.

    If the layout draws no map of this kind, the feed holds the head as recorded.
    """
    drawn = look.kind in layout.plots
    source = scene.opened.source
    roles = pickers.roles_of(source, look.kind)
    view = look.read() if drawn else read_view(look.as_recorded(), Reading())
    first = source.default_heads[look.kind] if layout.style == "home" else None
    payload = head_map(
        scene.opened.key,
        scene.opened.translation,
        view,
        look.lengths,
        opens=first,
        roles=roles,
        scale=look.scale,
        largest=scene.largest,
        sums=layout.style == "page",
    )
    # what a click on the map's title does with its head: `inside` opens it, `off` switches it off
    # or on
    payload["acts"] = ["inside", "off"] if drawn and source.has_model else []
    payload["fade"] = scene.fade and fades(scene.opened.translation, look.kind)
    if payload["choice"] and look.kind == "cross":
        payload["choice"]["first"] = (
            f"{payload['choice']['first']} {source.header.guided_alignment}".rstrip()
        )
    return payload


def _strips(scene: Scene, looks: Looks) -> StripsFeed:
    opened, translation = scene.opened, scene.opened.translation
    strips = scene.strips if isinstance(scene.strips, Strips) else scene.strips(session.current())
    opening = opened.opening
    claim: StepClaim | None = None
    tour = list[Stop]()
    if scene.tour:
        tour = stops(translation, opening.position)
    example = opened.example
    if example is not None and opening.claimed is not None and "cross" in looks:
        its_head = (example.claim.layer, example.claim.head)
        if looks["cross"].head == its_head:
            claim = {"step": opening.claimed, "text": example.claim.text}
    return strips_feed(
        opened.key,
        translation,
        follow=runs.followed(translation, looks["cross"].head) if "cross" in looks else (),
        glosses=opening.glosses,
        tour=tour,
        claim=claim,
        shades=strips.shades,
    )
