"""Which dependencies and antecedents the heads of a model follow, as `probes.json` says."""

from __future__ import annotations

from typing import Any

import streamlit as st

from figures.base import labels
from figures.base.bars import percent
from figures.base.captions import KIND_NAMES
from figures.pages.heads import Follower, relation_dots
from lab.relations.relations import LEAST_ARCS
from transformer.storage.description import PROBES_FILE
from ui.controls import how, inform, panel, text
from ui.server import measured

_GLOSSES = {
    "acl": "clause at a noun",
    "advcl": "adverbial clause",
    "advmod": "adverb",
    "amod": "adjective",
    "appos": "apposition",
    "aux": "auxiliary",
    "case": "preposition",
    "cc": "conjunction",
    "ccomp": "object clause",
    "compound": "compound or verb particle",
    "conj": "second conjunct",
    "cop": "copula",
    "det": "determiner",
    "expl": "expletive",
    "fixed": "fixed expression",
    "flat": "further part of a name",
    "iobj": "indirect object",
    "mark": "subordinating word",
    "nmod": "noun at a noun",
    "nsubj": "subject",
    "nummod": "number",
    "obj": "object",
    "obl": "noun at a verb",
    "parataxis": "parataxis",
    "xcomp": "open complement",
}
_SEEING = (
    "A dependency joins a word to its governor, the word that it belongs to: a subject to its verb, for "
    "example. The dot shows how often the best head, in the row of one word, puts its largest weight on the "
    "other. The bar shows how often a fixed rule, such as “the previous word”, is right. Head and rule were "
    "chosen on one half of the sentences and measured on the other."
)


def probes(model: str) -> dict[str, Any]:
    """Content of a model's `probes.json`; empty if the model has none."""
    return measured.described(model, PROBES_FILE)


def show(model: str, kind: str) -> None:
    found = probes(model)
    if not found:
        inform(
            "No relations were measured for this model. `python -m lab probes --model … --probes …` "
            f"measures them and writes {PROBES_FILE} into its directory."
        )
        return
    if not found.get(kind):
        st.info("No trees of the target language were read, so nothing is known of the decoder's relations.")
        return
    _dependencies(found, kind)
    if kind == "encoder":
        _pronouns(found["pronouns"])
        _meanings(found.get("meanings"))
    st.caption(f"{text.data(found['data'][:1].upper() + found['data'][1:])}. The data are not bundled.")
    how(found)


def _dependencies(found: dict[str, Any], kind: str) -> None:
    side = found[kind]
    relations = sorted(side["relations"], key=lambda each: each["baseline"] - each["share"])
    st.markdown(_sentence(relations, kind))
    followers = [Follower(_name(each), each["share"], each["baseline"], _note(each)) for each in relations]
    if not followers:
        return
    own = "earlier words only: later ones are masked · " if kind == "decoder" else ""
    panel(
        f"relations-{kind}",
        lambda: relation_dots(followers, kind),
        f"{KIND_NAMES[kind]} · dot: best head, bar: best fixed offset, share of dependencies, 0 to 100 % · "
        f"{own}{side['sentences']} sentences, {side['skipped']} left out (pieces do not match the words) · "
        f"{found['model']}",
        seeing=_SEEING,
        alt="Shares of dependencies that the best head and the best fixed offset find; a table follows",
        sentence=False,
    )
    _table(relations)


def _sentence(relations: list[dict[str, Any]], kind: str) -> str:
    if not relations:
        return "No relation occurs often enough to be measured."
    better = [each for each in relations if each["low"] > 0]
    best = relations[0]
    where = "the encoder" if kind == "encoder" else "the decoder"
    told = (
        f"In {where}, some head beats the best fixed offset in **{len(better)} of {len(relations)}** kinds "
        "and directions of dependencies"
    )
    if not better:
        return f"{told}: no head finds them clearly more often than the offset does."
    head = labels.head_phrase(best["layer"], best["head"])
    return (
        f"{told}. The clearest is {_name(best)}: {head} finds {percent(best['share'])} of {best['count']:,}; "
        f"the rule “{_offset(best['rule'])}” finds {percent(best['baseline'])}."
    )


def _name(each: dict[str, Any]) -> str:
    gloss = _GLOSSES.get(each["relation"], each["relation"])
    return f"governor → {gloss}" if each["direction"].startswith("head") else f"{gloss} → governor"


def _offset(rule: str) -> str:
    words = int(rule)
    if abs(words) == 1:
        return "the next word" if words > 0 else "the previous word"
    return f"{abs(words)} words {'later' if words > 0 else 'earlier'}"


def _note(each: dict[str, Any]) -> str:
    return (
        f"{each['relation']}, {each['direction']}\n{labels.head_name(each['layer'], each['head'])}: "
        f"{percent(each['share'])} of {each['count']}\n{_offset(each['rule'])}: {percent(each['baseline'])}\n"
        f"gain in points {_gain(each)}"
    )


def _gain(each: dict[str, Any]) -> str:
    value, low, high = _points(each)
    return f"{value} ({low} to {high})"


def _points(each: dict[str, Any]) -> tuple[str, str, str]:
    """The gain and the ends of its interval."""
    return labels.hundredths(each["share"] - each["baseline"], each["low"], each["high"], "+")


def _verdict(each: dict[str, Any]) -> str:
    if each["low"] > 0:
        return "more than the rule"
    return "less than the rule" if each["high"] < 0 else "no clear difference"


def _table(relations: list[dict[str, Any]]) -> None:
    with st.expander("As a table"):
        st.dataframe(
            [
                {
                    "relation": each["relation"],
                    "from → to": _name(each),
                    "best head": labels.head_name(each["layer"], each["head"]),
                    "head": percent(each["share"]),
                    "best rule": _offset(each["rule"]),
                    "rule": percent(each["baseline"]),
                    "gain, points": _points(each)[0],
                    "95 % interval": " to ".join(_points(each)[1:]),
                    "verdict": _verdict(each),
                    "cases": each["count"],
                }
                for each in relations
            ],
            hide_index=True,
            alt="Dependencies, the head that follows them best, and the best fixed offset",
        )


def _pronouns(found: dict[str, Any]) -> None:
    st.markdown("##### From a pronoun to the person")
    asked = {
        "of two": "Of the two people, the right one gets more weight from the pronoun",
        "of all words": "Of all words, the right person gets the most",
    }
    for name, finding in found["findings"].items():
        head = labels.head_phrase(finding["layer"], finding["head"])
        chance = " (guessing: 50 %)" if name == "of two" else ""
        st.markdown(
            f"- {asked[name]}: **{percent(finding['share'])}** of {finding['count']:,} sentences at best, "
            f"{head}{chance}; taking the nearest person is right in {percent(finding['baseline'])}. Gain in "
            f"points: {_gain(finding)}, {_verdict(finding)}."
        )
    st.caption(
        f"WinoMT: {found['sentences']:,} sentences with two people and a pronoun, {found['skipped']} left "
        "out because the people or the pronoun could not be found. The head was chosen and measured on "
        "different pairs of people."
    )


def _meanings(found: dict[str, Any] | None) -> None:
    """Says whether some head joins words by meaning, which is neither syntax nor reference."""
    st.markdown("##### From a word to another that is related to it by meaning")
    if not found or not found["relations"]:
        st.markdown(
            "Dependencies are syntax, and antecedents are reference. No relation of meaning was measured for "
            "this model."
        )
        return
    relations = found["relations"]
    better = [each for each in relations if each["low"] > 0]
    st.markdown(
        "Dependencies are syntax, and antecedents are reference. Two relations of meaning were measured by "
        "the same rule: a content word that **occurs again** (the same lemma), and **antonyms** such as "
        "*good* and *bad*, from a list made for this project. "
        + (
            f"In {len(better)} of {len(relations)} cases, some head beats the best fixed offset."
            if better
            else "In no case does the best head of the encoder find that word clearly more often than the "
            "best fixed offset does."
        )
    )
    st.markdown("\n".join(map(_meaning, relations)))
    st.caption(
        f"{text.data(found['data'])}; {found['sentences']:,} sentences, {found['skipped']} left out (pieces "
        f"do not match the words). Relations with fewer than {LEAST_ARCS // 2} cases in a half are left out. "
        "Head and rule were chosen on one half and measured on the other."
    )


def _meaning(each: dict[str, Any]) -> str:
    head, rule = labels.head_phrase(each["layer"], each["head"]), _offset(each["rule"])
    return (
        f"- {each['relation']}, from {each['direction']}: {head} finds **{percent(each['share'])}** of "
        f"{each['count']:,}; the rule “{rule}” finds {percent(each['baseline'])}. Gain in points: "
        f"{_gain(each)}, {_verdict(each)}."
    )
