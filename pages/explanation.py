"""Explanation: which words a token rests on, and how weight, what was carried and effect differ."""

from explorer.app.address.page_values import Explanation
from explorer.app.shell.changed import none
from explorer.app.shell.page import open_sentence_page, show_with_model
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("explanation"):
    from collections.abc import Sequence
    from dataclasses import dataclass
    from functools import partial
    from typing import Any

    import numpy as np
    import streamlit as st

    from explorer import lenses
    from explorer.app.address import State, session
    from explorer.app.controls import inform, panel, part, pickers, plain, say, word
    from explorer.app.maps import display, measures
    from explorer.app.maps.looking import cells_of, lacking
    from explorer.app.server.view import View
    from explorer.app.shell import menu, waiting
    from explorer.figures.base import captions, labels
    from explorer.figures.base.labels import percent
    from explorer.figures.maps.measures import MeasureRow, measures_map, part_bars, share_bars
    from explorer.lenses.heads.roles import SENTENCES
    from explorer.lenses.measures.attribution import Shares
    from explorer.lenses.measures.stream import Carried
    from explorer.linked.view.strips import positions_of
    from transformer.config import AttentionKind
    from transformer.run import Alternative, DecodeStep
    from transformer.storage.description import SURVEY_FILE, measured
    from transformer.text.words import is_end


@dataclass(frozen=True, kw_only=True)
class ReadWords:
    """What the keys that an output rests on are called, and how they are taken away."""

    word: str
    position: str
    hidden: str  # how a word of them is hidden
    through: str  # how a token of them is read


_AGAIN = (
    "the model runs again. Below zero: the token became less probable, so it rests on the word. "
    "Effects do not add up, and a hidden word is still in what"
)
READ = {
    "cross": ReadWords(
        word="source word",
        position="source position",
        hidden="All pieces of a source word are hidden (their scores are −∞) from every head of "
        f"cross-attention, and {_AGAIN} the encoder wrote for its neighbours.",
        through="all heads of cross-attention add through the token on the direct path",
    ),
    "encoder": ReadWords(
        word="other word",
        position="position",
        hidden="All pieces of a word are hidden (their scores are −∞) from every head of the "
        f"encoder, at all tokens, and {_AGAIN} its own token holds.",
        through="all heads add on the direct path by reading the token",
    ),
    "decoder": ReadWords(
        word="earlier word",
        position="position",
        hidden="All pieces of a word are hidden (their scores are −∞) from every head at all later "
        f"tokens, and {_AGAIN} nobody hid: the stream of the tokens between, which read it in no "
        "layer, and that of the token that is read last.",
        through="all heads add on the direct path by reading the token",
    ),
}
"""By the kind of attention that a run ends with."""
EFFECT = r"\Delta \log p = \log p(y_t \mid \text{without } j) - \log p(y_t)"
ROW = (
    "**Weight**: the share of the key's value in the head's sum. **Carried**: the length of what "
    "the key added; a large weight on a small value carries little. **Effect**: Δ log p if this "
    "key is hidden from this head and this query alone; other heads may do the same work. "
    "**b_V**, the bias of the values, reaches every query whole: its own column."
)
CARRIED = r"\lVert \alpha_{ij}\, x_j W_V W_O \rVert"
PARTS = (
    "The decoder's last stream is a sum of what was read, every head, every feed-forward network, "
    "and biases. With the σ of every norm held fixed, so is the difference of two logits. It is "
    "the direct path only: what a later layer makes of what a head wrote counts for that layer."
)
DIRECT = r"z_A - z_B = \sum_w \mathrm{part}_w \cdot (W_A - W_B)"
BY_KEY = (
    "*Part*: what {through}, in nats, without b_V. *Effect*: how the same difference of logits "
    "changes if the token is hidden from all of them. A part is no effect: without a token, the "
    "model attends elsewhere."
)
SHARES = (
    "ALTI+ follows what each block wrote back to its inputs. An input's share is how much nearer "
    "it brings the block's output; shares of the layers are multiplied. The residual of "
    "cross-attention counts as prefix. Shares sum to 1 because they are made to, which proves "
    "nothing."
)
ALTI = (
    r"c_{ij} = \max\!\left(0,\ \lVert y_i \rVert_1 - \lVert y_i - T_i(x_j) \rVert_1\right), \qquad "
    r"y_i = \sum_j T_i(x_j) + b"
)
ELSEWHERE = (
    "Jain & Wallace (2019), on recurrent classifiers: weights correlate weakly with gradients, "
    "and other weights often give the same prediction. Wiegreffe & Pinter (2019): a model trained "
    "to use such weights does worse. Moradi et al. (2019), on recurrent translation: with other "
    "weights, 68 % of the function words stay, but only 21 % of the content words. Kobayashi et "
    "al. (2020): large weights often lie on small values. Ferrando & Costa-jussà (2021): weights "
    "align words badly, but say largely which tokens a prediction used."
)
BIAS = "b_V (always)"
NEEDS = 0.05  # nats from which on a loss is named
RESTS = 0.3  # nats from which on a token is said to rest on a word: a quarter less probable
SINK, SHORT = (
    0.3,
    0.5,
)  # weight on a sink, and the share of the median that its value is shorter than
NARROW, TOKENS, BARS = 8, 24, 14
"""Most keys without scrolling, tokens of a map, parts with a bar of their own."""
Keys = (
    np.ndarray
)  # a number of each key; an effect is not a number where nothing could be taken away
STRETCH = 3  # fewest steps in a row with a low share of the source that make a warning


@part()
def show(opened: View) -> None:
    """The answer, one row of one head, and, folded, the reasons and the shares of the source."""
    now = session.current()
    kind = opened.source.kind(now.kind)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="heads"):
        pickers.kind_picker(kind, opened.kinds)
        pickers.head_picker(kind, getattr(now, kind), opened.source)
        pickers.row_picker(opened, kind, cells_of(opened, now)[kind][0])
    step = opened.predicted_at(session.cursor())
    if step is None:
        inform(plain(lacking(opened, "effect") or ""))
        if opened.source.fills:
            display.mask(opened, now)
        return
    longest = max(len(opened.translation.source_tokens), len(opened.translation.target_tokens))
    if longest > measures.MOST_TOKENS:
        raise lenses.UnmeasuredError(
            f"The model runs again without each token, for at most {measures.MOST_TOKENS} tokens a "
            f"side; here are {longest:,}. Choose a shorter text."
        )
    if now.lesson is None:
        answer(opened, step)
    one_row(opened, now, kind, step)
    if now.lesson is not None:  # lessons ask about the row, which so is in the window
        answer(opened, step)
    folded = [("why", "Why this token, and not another?", partial(reasons, opened, now, step))]
    if "source" in opened.sides and "decoder" in opened.kinds:
        folded.append(("shares", "How much comes from the source?", partial(sources, opened, step)))
    for name, title, draw in folded:
        with st.expander(title, now.view == name, key=f"fold.{name}", on_change="rerun") as box:
            if box.open:
                draw()
    with st.expander("What was found elsewhere"):
        st.markdown(ELSEWHERE)


def rows_panel(
    name: str,
    rows: Sequence[MeasureRow],
    columns: list[str],
    caption: str,
    most: int = 10**6,
    **more: Any,
) -> None:
    """Measures of tokens as a map, of the first of them if there are too many."""
    drawn = [MeasureRow(row.name, row.values[:most], row.signed) for row in rows[:most]]
    panel(
        name,
        lambda ink: measures_map(drawn, columns[:most], ink),
        caption,
        lambda: [["row", *columns], *([row.name, *map(float, row.values)] for row in rows)],
        derived=True,
        inked=True,
        scrolls=160 + 40 * len(columns[:most]) if len(columns) > NARROW else False,
        **more,
    )


def answer(opened: View, step: int) -> None:
    run = opened.translation
    kind = opened.kinds[-1]
    every = lenses.key_words(run, kind)
    words = every
    site = run.config.sites[AttentionKind(kind)]
    if site.causal:
        # those that the step has read, without the one that asks: it cannot be hidden from itself
        words = tuple(word for word in every if word.stop <= step)
    elif site.own_keys:
        words = tuple(word for word in every if step not in word.indices)
    token = captions.quote(run.predictions[step].token)
    if not words:
        say(f"Nothing stands before “{plain(token)}” that could be taken away.")
        return
    with waiting.progress("Running the model again without each word") as tell:
        of_tokens = measures.of_run(opened, lenses.word_effect, kind, tell=tell)
    of_words = of_tokens[list(run.predictions).index(step)]
    effects = np.array([of_words[every.index(word)] for word in words], np.float32)
    names = labels.names(tuple(word.text for word in words))
    read = READ[kind]
    say(rests_on(names, effects, token, read.word))
    panel(
        "words",
        lambda: part_bars(names, effects),
        f"Δ log p of “{token}”, in nats, without each {read.word} · {opened.run_key.model}",
        lambda: [["word", "Δ log p"], *zip(names, effects.tolist(), strict=True)],
        seeing=read.hidden,
        formula=EFFECT,
        audit=measures.of_effects(opened, len(names)),
        derived=True,
    )


def rests_on(words: list[str], effects: np.ndarray, token: str, what: str) -> str:
    """The words without which a token is less probable by at least ``RESTS``, or ``NEEDS``."""
    needed = [at for at in np.argsort(effects, kind="stable")[:2].tolist() if effects[at] <= -NEEDS]
    if not needed:
        return f"“{plain(token)}” rests on no single {what}: none of them costs it {NEEDS} nats."
    first, *pairs = ((plain(words[at]), signed(effects[at])) for at in needed)
    if effects[needed[0]] > -RESTS:
        return (
            f"“{plain(token)}” rests on no single {what}: without “{first[0]}”, which it "
            f"misses most, log p changes by {first[1]} nats."
        )
    rest = (
        f"next “{pairs[0][0]}”, {pairs[0][1]}" if pairs else f"no other word costs it {NEEDS} nats"
    )
    factor = labels.times(float(effects[needed[0]]))
    text = f"{first[1]} nats" + (f", {factor}" if factor else "")
    return f"**“{plain(token)}” rests on “{first[0]}”**: without it {text}; {rest}."


def signed(value: float) -> str:
    return labels.number(float(value), "+.2f")


def one_row(opened: View, now: State, kind: str, step: int) -> None:
    """Weight, what was carried, and effect of the keys of one query of one head."""
    run = opened.translation
    head = getattr(now, kind)
    row = cells_of(opened, now)[kind][0]
    with waiting.progress("Running the model again without each key") as tell:
        which = kind, *head, "hidden", step if kind == "encoder" else None, (row,)
        effects = measures.of_run(opened, lenses.effect, *which, tell=tell)[row]
    weights = run.weights(kind, *head)[row]
    seen = int(run.mask(kind, *head)[row].sum())
    carried: Carried = measures.of_run(opened, lenses.carried, kind, *head)
    sides = run.labels(kind)
    token = captions.quote(run.predictions[step if kind == "encoder" else row].token)
    columns = labels.names(sides.keys)
    say(
        differ(
            weights,
            carried.values,
            norms=carried.norms[row],
            effects=effects,
            columns=columns,
            token=token,
        )
    )
    verb, tokens = (
        ("of", sides.queries) if sides.predicted is None else ("that predicts", sides.predicted)
    )
    query = f"row {labels.count(row)}, {verb} “{captions.quote(tokens[row])}”"
    rows_panel(
        "measures",
        [
            MeasureRow("weight", np.append(weights, np.nan)),
            MeasureRow("carried", np.append(carried.norms[row], carried.bias)),
            MeasureRow("effect, Δ log p", np.append(effects, np.nan), True),
        ],
        [*columns, BIAS],
        f"{captions.KIND_NAMES[kind]} · {labels.head_phrase(*head)} · {query} · effect on "
        f"“{token}” in nats · {opened.run_key.model}",
        seeing=ROW,
        formula=rf"{CARRIED}, \qquad {EFFECT}",
        audit=measures.beside_effects(measures.audited(opened).joined(carried.audit), seen),
    )


def differ(
    weights: Keys, lengths: Keys, norms: Keys, effects: Keys, columns: Sequence[str], token: str
) -> str:
    """Where weight, what was carried, and effect are largest; lengths are those of the values."""
    if not np.isfinite(effects).any():
        return "This query sees one key only, so nothing can be taken away from it."
    keys = [f"**{plain(column)}**" for column in columns]
    written = f"“{plain(token)}”"
    first = int(weights.argmax())
    most = int(norms.argmax())
    needed = int(np.nanargmin(effects))
    also = "also carried most" if most == first else f"carried less than {keys[most]}"
    if weights[first] >= SINK and lengths[first] < SHORT * np.median(lengths):
        also += (
            f" (a sink: its value is {lengths[first]:.2f} long, the median "
            f"{np.median(lengths):.2f})"
        )
    says = (
        f"In this head, {percent(float(weights[first]))} of the weight lies on {keys[first]}, "
        f"which {also}."
    )
    if effects[needed] > -NEEDS:
        freed = int(np.nanargmax(effects))
        if effects[freed] >= NEEDS:
            return (
                f"{says} No single key costs {written} {NEEDS} nats; without {keys[freed]} it even "
                f"gets more probable: {signed(effects[freed])} nats."
            )
        return f"{says} Without any single key of it, {written} stays about as probable."
    factor = labels.times(float(effects[needed]))
    text = f"{signed(effects[needed])} nats" + (f", {factor}" if factor else "")
    return f"{says} {written} loses most without {keys[needed]}: {text}."


def reasons(opened: View, now: State, step: int) -> None:
    """The difference of two logits, by what wrote it and by source position."""
    written = opened.translation.predictions[step]
    rival = chosen_rival(now, written)
    if rival is None:
        inform("No other token was recorded at this step.")
        return
    with waiting.progress("Splitting the logits") as tell:
        effects = measures.of_run(opened, lenses.on_difference, step, rival.token_id, tell=tell)
    place = step, written.token_id, rival.token_id
    parts: lenses.Attribution = measures.of_run(opened, lenses.attribution, *place)
    by_key = measures.of_run(opened, lenses.by_key, *place)
    names = positions_of(opened.translation)
    noun = names["source"]
    if opened.translation.steps:
        noun = names["step"]
    pair = (
        f"z(“{captions.quote(written.token)}”) − z(“{captions.quote(rival.token)}”) at "
        f"{noun} {labels.count(step)}"
    )
    st.markdown(spoken(written, rival, parts))
    parts_panel(opened, pair, parts)
    by_key_panel(opened, pair, step, by_key, effects)


def chosen_rival(now: State, written: DecodeStep) -> Alternative | None:
    """The other token of a step that a visitor chooses; None if no other was recorded."""
    rivals = {
        alternative.token: alternative
        for alternative in written.alternatives
        if alternative.token_id != written.token_id
    }
    if not rivals:
        return None
    wanted = now.values(Explanation).rival
    rival = rivals.get(wanted or "", next(iter(rivals.values())))
    if wanted is not None and wanted not in rivals:
        st.caption(
            f"{word(wanted)} is no other token of this step, so {word(rival.token)} is taken."
        )
    names = {token: f"and not {labels.piece(token)}" for token in rivals}
    pickers.choose("rival", "The other token", names, rival.token, texts=True, width=220)
    return rival


def spoken(written: DecodeStep, rival: Alternative, parts: lenses.Attribution) -> str:
    """How probable both tokens are, and which parts of the model spoke for and against the first."""
    helped = parts.values.argmax()
    hurt = parts.values.argmin()
    return (
        f"“{plain(captions.quote(written.token))}” has {labels.chance(written.log_prob)}, "
        f"“{plain(captions.quote(rival.token))}” {labels.chance(rival.log_prob)}: its logit is "
        f"{signed(parts.total)} nats higher. On the direct path, **{parts.writers[helped]}** spoke "
        f"most for it ({signed(parts.values[helped])}), and **{parts.writers[hurt]}** most against "
        f"it ({signed(parts.values[hurt])})."
    )


def parts_panel(opened: View, pair: str, parts: lenses.Attribution) -> None:
    """The parts of the model as bars, the largest first."""
    names, values = zip(*parts.largest(BARS), strict=True)
    scaled = opened.translation.config.scaled_output
    panel(
        "parts",
        lambda: part_bars(names, np.array(values)),
        f"Parts of {pair}, direct paths, σ of every norm fixed · {opened.run_key.model}",
        lambda: [
            ["part", "nats"],
            *zip(map(str, parts.writers), parts.values.tolist(), strict=True),
        ],
        seeing=PARTS,
        formula=DIRECT + (r" / \sqrt{d_{model}}" if scaled else " + b"),
        audit=measures.audited(opened).joined(parts.audit),
        derived=True,
    )


def by_key_panel(opened: View, pair: str, step: int, by_key: Keys, effects: Keys) -> None:
    """What is read at every token that the output rests on, and what hiding it changes."""
    run = opened.translation
    kind = opened.kinds[-1]
    tokens = run.labels(kind).keys
    if run.config.sites[AttentionKind(kind)].causal:  # the token that asks cannot be hidden
        tokens = tokens[: step + 1]
        by_key = by_key[: step + 1]
        effects = np.append(effects[:step], np.nan)
    read = READ[kind]
    most = int(np.abs(by_key).argmax())
    text = f"By {read.position}, the largest part is read at {word(tokens[most])} "
    text += f"({signed(by_key[most])})"
    if np.isfinite(effects).any():
        needs = int(np.nanargmin(effects))
        text += f"; the difference falls most without {word(tokens[needs])} "
        text += f"({signed(effects[needs])})"
    st.markdown(f"{text}.")
    rows_panel(
        "tokens.cross",
        [MeasureRow("part, read there", by_key, True), MeasureRow("effect on it", effects, True)],
        labels.names(tokens),
        f"{pair}, by {read.position} · {run.model}",
        seeing=BY_KEY.format(through=read.through),
        audit=measures.beside_effects(measures.audited(opened), len(effects), series=2),
    )


def sources(opened: View, step: int) -> None:
    """How much of every prediction comes from the source, and from which token."""
    run = opened.translation
    shares: Shares = measures.of_run(opened, lenses.alti)
    report = measures.audited(opened).joined(shares.audit)
    steps = labels.names(run.target_tokens)
    columns = labels.names(run.source_tokens)
    source = shares.source.sum(1)
    ended = is_end(run.target_tokens[-1])
    usual = (opened.source.beside(measured, SURVEY_FILE) or {}).get("usual")
    st.markdown(
        f"**{plain(steps[step])}**: {percent(float(source[step]))} from the source. "
        f"{leaning(steps, source, ended)}"
    )
    if usual:
        low = percent(usual[0])
        high = percent(usual[2])
        st.markdown(
            f"Usual for this model: {low} to {high} (nine of ten steps of {SENTENCES} sentences)."
        )
        if alone := detached(steps, source, usual[0], ended):
            st.warning(plain(alone), icon=":material/link_off:")
    panel(
        "source share",
        lambda: share_bars(steps, source),
        f"Shares of source and prefix in each prediction (ALTI+) · {run.model}",
        lambda: [["step", "source"], *zip(steps, source.tolist(), strict=True)],
        seeing=SHARES,
        formula=ALTI,
        audit=report,
        derived=True,
    )
    cut = f", the first {TOKENS} tokens" if max(len(columns), len(steps)) > TOKENS else ""
    rows_panel(
        "source tokens",
        [MeasureRow(name, share) for name, share in zip(steps, shares.source, strict=False)],
        columns,
        f"Shares of the source tokens in each prediction (rows){cut}, each row coloured by its "
        f"largest · {run.model}",
        TOKENS,
        audit=report,
    )


def detached(steps: list[str], source: np.ndarray, low: float, ended: bool) -> str:
    """A warning if the source's share stays low for a whole stretch (Dale et al.

    2022); empty if not.
    """
    longest = range(0)
    start = 1
    for at in range(1, len(source) - ended):
        start = at + 1 if source[at] >= low else start
        longest = max(longest, range(start, at + 1), key=len)
    if len(longest) < STRETCH:
        return ""
    return (
        f"From “{steps[longest[0]]}” to “{steps[longest[-1]]}”, {len(longest)} steps, the source's "
        f"share stays below {percent(low)}, as it does in one step of twenty: here the decoder may "
        "write detached from the source."
    )


def leaning(steps: list[str], source: np.ndarray, ended: bool) -> str:
    """Which words lean on the source most and least.

    The first step and the end are cases of their own.
    """
    ends = ended and len(source) > 1
    shares = [percent(share) for share in source.tolist()]
    apart = f"Apart from these, the first step, which has no prefix but a start, has {shares[0]}"
    apart += f" and `</s>`, which ends the sentence, {shares[-1]}." if ends else "."
    inner = source[1 : len(source) - ends]
    if not len(inner):
        return apart
    most = 1 + int(inner.argmax())
    least = 1 + int(inner.argmin())
    says = f"Between the first step and the end, it is **{percent(float(inner.mean()))}**: "
    if most == least:
        return f"{says}this is **{plain(steps[most])}**. {apart}"
    says += f"**{plain(steps[most])}** leans on it most ({shares[most]}), "
    return f"{says}**{plain(steps[least])}** least ({shares[least]}). {apart}"


def page(opened: View) -> None:
    show(opened)
    for study in ("faithfulness", "weight-effect", "way-back"):
        menu.finding(f"{opened.run_key.model}/{study}")


opened = open_sentence_page("explanation", changes=none, kinds=("encoder", "decoder"))
if opened is not None:
    show_with_model(opened, page)
