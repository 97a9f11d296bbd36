"""Every quantity that a question asks for, against arithmetic written here a second time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer.lenses.measures.stream import UnmeasuredError
from explorer.lenses.what_if.build import Plane, plane_of
from explorer.lenses.what_if.questions import question as words
from explorer.lenses.what_if.questions.quantities import CHANGES, KEYS, OF, ROLES, measure
from explorer.lenses.what_if.questions.question import ROUNDING, Measured, Option, Question, Viewpoint
from transformer import interventions as do
from transformer import load_translator
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.translator import Translator

MODELS = Path(__file__).resolve().parents[5] / "assets" / "models"
SENTENCES = (
    "He lives in a big white house.",
    "The girls are tired because they worked a lot.",
    "I saw him in the garden.",
    "The old houses are very beautiful.",
    "The woman who wrote the book is my sister.",
    "It is raining cats and dogs.",
    "She wants to buy a new car tomorrow.",
    "Yesterday I bought a new book.",
    "The boys are playing football because they have time.",
    "The children play in the garden.",
    "My brother does not like cold soup.",
    "Where is the nearest station?",
    "We will visit our friends on Sunday.",
    "The doctor gave the old man a glass of water.",
    "Nobody knew the answer.",
    "If it rains, we stay at home.",
    "The train to the city was late again.",
    "Please close the door.",
    "Three small birds sat on the roof.",
    "I have never seen such a beautiful lake.",
)
ASKED = (
    *(Question("largest-key", kind) for kind in words.KINDS),
    *(Question("head-effect", kind) for kind in words.KINDS),
    *(Question("candidate", rank=rank) for rank in (1, 2, 3)),
    *(Question("masked", kind, key=key) for kind in words.KINDS for key in words.KEYS),
    *(Question("visible", kind) for kind in words.KINDS),
    Question("unsure"),
    *(Question("search", against=against) for against in words.AGAINST),
    *(Question("role", "encoder", role=role) for role in words.ROLES if role != "aligner"),
    *(Question("role", "cross", role=role) for role in ("end", "aligner")),
    *(Question("entropy", kind, among=among) for kind in words.KINDS for among in words.AMONG),
    *(Question("difference", changes=(change,)) for change in words.CHANGES),
    Question("difference", changes=("encoder-positions", "decoder-positions")),
    Question("difference", "encoder", changes=("unscaled", "head", "forward", "layer")),
)


@pytest.fixture(scope="module", params=["en-pt", "en-de"])
def model(request: pytest.FixtureRequest) -> Translator:
    return load_translator(MODELS / request.param)


def place_of(model: Translator, run: Translation, step: int) -> Viewpoint:
    assert model.heads is not None
    heads = {kind: (layer, head) for kind, (layer, head) in model.heads["default"].items()}
    return Viewpoint(min(step, len(run.steps) - 1), min(step, len(run.source_tokens) - 1), heads)


@pytest.fixture(scope="module")
def run(model: Translator) -> Translation:
    return model.translate(SENTENCES[4], beam_size=1)


@pytest.fixture
def place(model: Translator, run: Translation) -> Viewpoint:
    return place_of(model, run, 3)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def weights_of(run: Translation, kind: str, layer: int, head: int) -> np.ndarray:
    """The softmax of the recorded queries and keys, computed here."""
    view = run.head(kind, layer, head)
    scores = view.query.astype(float) @ view.key.astype(float).T / np.sqrt(view.query.shape[-1])
    visible = np.ones(scores.shape, bool)
    if kind == "decoder":
        visible = np.tril(visible)
    return np.stack(
        [softmax(np.where(seen, row, -np.inf)) for row, seen in zip(scores, visible, strict=True)]
    )


def numbers(found: Measured) -> list[float]:
    return [each.value for each in found.options]


@pytest.mark.parametrize("kind", words.KINDS)
def test_the_largest_key_is_that_of_the_softmax(run: Translation, place: Viewpoint, kind: str):
    row = weights_of(run, kind, *place.heads[kind])[3]
    found = measure(Question("largest-key", kind), run, place)
    assert numbers(found)[found.best] == pytest.approx(row.max(), abs=1e-5)
    assert sorted(numbers(found)) == pytest.approx(sorted(row)[-len(found.options) :], abs=1e-5)
    assert run.labels(kind).keys[int(row.argmax())] in found.options[found.best].name


@pytest.mark.parametrize("kind", words.KINDS)
def test_the_head_of_greatest_effect_is_found_by_forced_runs(
    model: Translator, run: Translation, place: Viewpoint, kind: str
):
    found = measure(Question("head-effect", kind), run, place, model)
    assert len(found.options) == 4
    for option in found.options:
        layer, head = (int(each[1:]) - 1 for each in option.name.split())
        off = do.ablate(kind, layer, head)
        without = model.force(run.source_text, run.target_ids, interventions=[off]).log_probs[3]
        assert option.value == pytest.approx(abs(without - run.log_probs[3]), abs=2e-3)
    assert numbers(found)[found.best] == max(numbers(found))


@pytest.mark.parametrize("goal", words.GOALS)
@pytest.mark.parametrize("kind", ["encoder", "cross"])
def test_a_query_is_asked_for_where_one_reaches_the_goal(
    run: Translation, place: Viewpoint, kind: str, goal: str
):
    heads = [(layer, head) for layer in range(2) for head in range(0, run.config.n_heads, 2)]
    for head in heads:
        at = Viewpoint(place.step, place.source, {**place.heads, kind: head})
        found = plane_of(run, (AttentionKind(kind), *head), at.row(AttentionKind(kind)), None, goal)
        first, second = softmax_of_best(run, kind, head, found, goal)
        reached = first >= 0.95 - 1e-3 if goal == "copy" else min(first, second) >= 0.48 - 1e-3
        if reached:
            assert measure(Question("build", kind, goal=goal), run, at).asked
        else:
            with pytest.raises(UnmeasuredError, match="choose another head"):
                measure(Question("build", kind, goal=goal), run, at)


def softmax_of_best(
    run: Translation, kind: str, head: tuple[int, int], found: Plane, goal: str
) -> tuple[float, float]:
    """The weights of the two keys for the best query, computed here."""
    keys = run.head(kind, *head).key.astype(float)
    units = [keys[key] / np.linalg.norm(keys[key]) for key in found.pair]
    a, b = found.best(goal)[1]
    weights = softmax(keys @ (a * units[0] + b * units[1]) / np.sqrt(keys.shape[1]))
    return weights[found.pair[0]], weights[found.pair[1]]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_candidate_is_named_by_its_probability(run: Translation, place: Viewpoint, rank: int):
    found = measure(Question("candidate", rank=rank), run, place)
    assert run.distributions is not None
    log_probs = np.sort(run.distributions()[3].cpu().numpy())[::-1]
    assert numbers(found)[found.best] == pytest.approx(log_probs[rank - 1], abs=1e-3)
    assert sorted(numbers(found))[::-1] == pytest.approx(log_probs[rank - 1 : rank + 3], abs=1e-3)
    shown = [float(each.shown.removesuffix(" %")) / 100 for each in found.options]
    assert shown == pytest.approx(np.exp(numbers(found)), rel=6e-3, abs=1e-8)


@pytest.mark.parametrize(
    ("key", "sees"), [("next", False), ("same", True), ("previous", True), ("first", True)]
)
def test_the_causal_mask_hides_what_comes_later(run: Translation, place: Viewpoint, key: str, sees: bool):
    found = measure(Question("masked", "decoder", key=key), run, place)
    assert found.options[found.best].name == ("it is visible" if sees else "it is masked")
    assert f"Row 4 sees 4 of {len(run.decoder_input_tokens)} keys" in found.why
    for kind in ("encoder", "cross"):
        assert measure(Question("masked", kind, key=key), run, place).best == 0


def test_keys_that_are_not_visible_are_counted(run: Translation, place: Viewpoint):
    found = measure(Question("visible", "decoder"), run, place)
    assert found.options[found.best].name == str(len(run.target_tokens) - 4)
    every = measure(Question("visible", "cross"), run, place)
    assert every.options[every.best].name == "0"
    assert found.asked
    assert every.asked


def test_the_least_sure_step_is_that_of_the_smallest_probability(run: Translation, place: Viewpoint):
    assert run.distributions is not None
    written = [float(run.distributions()[i][token]) for i, token in enumerate(run.target_ids)]
    found = measure(Question("unsure"), run, place)
    assert found.options[found.best].name.startswith(f"step {int(np.argmin(written)) + 1}, ")
    assert numbers(found)[found.best] == pytest.approx(-min(written), abs=1e-3)


@pytest.mark.parametrize(("against", "alpha"), [("greedy", 0.6), ("sum", 0.0)])
def test_a_search_is_ranked_by_the_sum_over_the_length_penalty(model: Translator, against: str, alpha: float):
    text = "The dogs that my neighbour keeps in the garden bark at me."
    run = model.translate(text, beam_size=1)
    found = measure(Question("search", against=against), run, place_of(model, run, 0), model)

    def score(ids: tuple[int, ...], power: float) -> float:
        return sum(model.force(text, ids, capture=False).log_probs) / ((5 + len(ids)) / 6) ** power

    def best(power: float) -> str:
        tree = model.translate(
            text, beam_size=4, capture=False, tree=True, length_penalty=power, length_offset=5
        ).tree
        assert tree is not None
        return model.text(
            max((tree.token_ids(i) for i in tree.hypotheses), key=lambda ids: score(ids, power))
        )

    other = run.text if against == "greedy" else best(alpha)
    assert found.options[found.best].name == ("the same" if best(0.6) == other else "another one")
    assert f"“{best(0.6)}”" in found.why
    assert f"“{other}”" in found.why


def entropy(row: np.ndarray) -> float:
    return float(-sum(w * np.log(w) for w in row if w > 0))


def test_the_smallest_entropy_is_that_of_the_softmax(run: Translation, place: Viewpoint):
    weights = weights_of(run, "cross", *place.heads["cross"])
    found = measure(Question("entropy"), run, place)
    assert numbers(found)[found.best] == pytest.approx(min(map(entropy, weights)), abs=1e-4)
    heads = measure(Question("entropy", among="heads"), run, place)
    layer = place.heads["cross"][0]
    rows = [entropy(weights_of(run, "cross", layer, head)[3]) for head in range(run.config.n_heads)]
    assert numbers(heads)[heads.best] == pytest.approx(min(rows), abs=1e-4)


def test_without_the_scale_a_row_has_the_entropy_of_its_bare_products(run: Translation, place: Viewpoint):
    found = measure(Question("entropy", among="scale"), run, place)
    view = run.head("cross", *place.heads["cross"])
    bare = softmax(view.key.astype(float) @ view.query[3].astype(float))
    assert numbers(found)[1] == pytest.approx(entropy(bare), abs=1e-4)
    assert found.best == 1


@pytest.mark.parametrize(("role", "of"), [("previous", -1), ("next", 1), ("same", 0)])
def test_a_role_is_the_mean_weight_at_an_offset(run: Translation, place: Viewpoint, role: str, of: int):
    found = measure(Question("role", "encoder", role=role), run, place)
    means = {}
    for layer in range(run.config.sites[next(iter(run.config.sites))].n_layers):
        for head in range(run.config.n_heads):
            weights = weights_of(run, "encoder", layer, head)
            cells = [weights[i, i + of] for i in range(len(weights)) if 0 <= i + of < len(weights)]
            means[f"L{layer + 1} H{head + 1}"] = float(np.mean(cells))
    assert found.options[found.best].name == max(means, key=means.__getitem__)
    for option in found.options:
        assert option.value == pytest.approx(means[option.name], abs=1e-4)


def test_the_aligner_is_that_of_the_model_s_own_file(model: Translator, run: Translation, place: Viewpoint):
    found = measure(Question("role", role="aligner"), run, place, model)
    assert model.heads is not None
    errors = [head["aer"] for layer in model.heads["heads"]["cross"] for head in layer]
    assert numbers(found)[found.best] == pytest.approx(1 - min(errors))


def test_a_change_is_run_and_the_translations_compared(model: Translator, run: Translation, place: Viewpoint):
    for change in ("encoder-positions", "head"):
        found = measure(Question("difference", changes=(change,)), run, place, model)
        made = {
            "encoder-positions": do.no_positions("encoder"),
            "head": do.ablate("cross", *place.heads["cross"]),
        }[change]
        text = model.translate(run.source_text, beam_size=1, interventions=[made]).text
        assert (found.best == 0) == (text != run.text)
        assert text in found.why


def test_costs_are_differences_of_forced_runs(model: Translator, run: Translation, place: Viewpoint):
    found = measure(
        Question("difference", changes=("encoder-positions", "decoder-positions")), run, place, model
    )
    for side, value in zip(("encoder", "decoder"), numbers(found), strict=True):
        without = model.force(run.source_text, run.target_ids, interventions=[do.no_positions(side)])
        assert value == pytest.approx(sum(run.log_probs) - sum(without.log_probs), abs=1e-2)
    assert numbers(found)[found.best] == max(numbers(found))


def test_every_question_has_an_answer_on_several_sentences(model: Translator):
    asked = close = 0
    several = SENTENCES if model.name == "en-de" else SENTENCES[::2]  # en-pt is four times as large
    for i, sentence in enumerate(several):
        run = model.translate(sentence, beam_size=1)
        place = place_of(model, run, 2 + i % 4)
        for question in ASKED[i % 5 :: 5]:
            found = measure(question, run, place, model)
            values = numbers(found)
            others = [abs(value - values[found.best]) for j, value in enumerate(values) if j != found.best]
            assert found.asked == (found.exact or min(others) >= 2 * ROUNDING)
            assert 2 <= len(found.options) == len({each.name for each in found.options})
            wrong = (found.best + 1) % len(values)
            if not found.exact:
                assert found.options[found.best].shown in found.reason(found.best)
                assert found.options[found.best].shown in found.reason(wrong)
                assert found.options[wrong].shown in found.reason(wrong)
            asked += found.asked
            close += not found.asked
    assert asked > 10 * close > 0


def test_a_close_race_is_not_asked():
    options = Option("a", 0.44, "0.44"), Option("b", 0.43, "0.43")
    found = Measured("Which?", options, 0)
    assert not found.asked
    assert replace(found, options=(Option("a", 0.46, "0.46"), options[1])).asked
    assert not Measured("Which?", options[:1], 0).asked
    least = Option("a", 2 * ROUNDING, "0.02"), Option("b", 0.0, "0.00")
    assert Measured("Which?", least, 0).asked


def test_names_in_files_are_those_that_can_be_measured():
    assert set(words.QUANTITIES) == set(OF)
    assert set(words.KEYS) == set(KEYS)
    assert set(words.ROLES) == {*ROLES, "aligner"}
    assert set(words.CHANGES) == set(CHANGES)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"quantity": "beauty"}, "quantity"),
        ({"quantity": "masked", "kind": "self"}, "kind"),
        ({"quantity": "masked", "key": ["next"]}, "key"),
        ({"quantity": "candidate", "rank": 5}, "rank"),
        ({"quantity": "difference"}, "changes"),
        ({"quantity": "difference", "changes": ("magic",)}, "changes"),
        ({"quantity": "difference", "changes": "head"}, "changes"),
    ],
)
def test_a_question_that_means_nothing_says_so(given: dict, says: str):
    assert str(Question(**given).problem()).startswith(says)


def test_without_its_model_a_run_is_not_run_again(run: Translation, place: Viewpoint):
    with pytest.raises(UnmeasuredError, match="a file holds no model"):
        measure(Question("head-effect"), run, place)
