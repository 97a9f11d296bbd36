"""Every quantity that a question asks for, against arithmetic written here a second time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plain import softmax

from explorer.app.lessons import questions
from explorer.app.lessons.questions import Measured, Option, Question, Viewpoint, measure, number
from explorer.lenses.measures.stream import UnmeasuredError
from explorer.lenses.what_if.build import plane_of
from transformer import interventions as do
from transformer import load_translator
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.translator import Translator, load_language_model

MODELS = Path(__file__).resolve().parents[4] / "assets" / "models"
TEXT = "The woman who wrote the book is my sister."
ROW = 3
"""The marked row of every kind."""


@pytest.fixture(scope="module")
def model() -> Translator:
    return load_translator(MODELS / "en-pt")


def place_of(model: Translator, run: Translation, step: int) -> Viewpoint:
    assert model.heads is not None
    heads = {kind: (layer, head) for kind, (layer, head) in model.heads["default"].items()}
    return Viewpoint(min(step, len(run.steps) - 1), min(step, len(run.source_tokens) - 1), **heads)


@pytest.fixture(scope="module")
def run(model: Translator) -> Translation:
    return model.translate(TEXT, beam_size=1)


@pytest.fixture
def place(model: Translator, run: Translation) -> Viewpoint:
    return place_of(model, run, ROW)


def weights_of(run: Translation, kind: str, layer: int, head: int) -> np.ndarray:
    """The softmax of the recorded queries and keys, computed here."""
    view = run.head(kind, layer, head)
    scores = view.query.astype(float) @ view.key.astype(float).T / np.sqrt(view.query.shape[-1])
    return softmax(
        np.where(np.tri(len(scores), dtype=bool), scores, -np.inf) if kind == "decoder" else scores
    )


def values(found: Measured) -> dict[str, float]:
    return {option.name: option.value for option in found.options}


def answer(found: Measured) -> tuple[str, float]:
    return found.options[found.best].name, found.options[found.best].value


@pytest.mark.parametrize("kind", questions.KINDS)
def test_the_largest_key_is_that_of_the_softmax(run: Translation, place: Viewpoint, kind: str):
    row = weights_of(run, kind, *getattr(place, kind))[ROW]
    found = measure(Question("largest-key", kind), run, place)
    assert answer(found)[1] == pytest.approx(row.max(), abs=1e-5)
    assert sorted(values(found).values()) == pytest.approx(
        sorted(row)[-len(found.options) :], abs=1e-5
    )
    assert f"“{run.labels(kind).keys[int(row.argmax())]}”" in answer(found)[0]
    layer, head = getattr(place, kind)
    assert found.asks.startswith(
        f"In {questions.NAMES[kind]}, L{layer + 1} H{head + 1}, row 4, which "
    )


@pytest.mark.parametrize("kind", questions.KINDS)
def test_the_head_of_greatest_effect_is_found_by_forced_runs(model, run, place, kind):
    found = measure(Question("head-effect", kind), run, place, model)
    assert len(found.options) == 4
    for name, value in values(found).items():
        off = do.ablate(kind, *(int(each[1:]) - 1 for each in name.split()))
        without = model.force(run.source_text, run.target_ids, interventions=[off]).log_probs[ROW]
        assert value == pytest.approx(abs(without - run.log_probs[ROW]), abs=2e-3)
    assert answer(found)[1] == max(values(found).values())


@pytest.mark.parametrize("goal", questions.GOALS)
@pytest.mark.parametrize("kind", ["encoder", "cross"])
def test_a_query_is_asked_for_where_one_reaches_the_goal(run, place, kind, goal):
    for head in [(layer, head) for layer in range(2) for head in range(0, run.config.n_heads, 2)]:
        at = place._replace(**{kind: head})
        plane = plane_of(run, (AttentionKind(kind), *head), ROW, None, goal)
        keys = run.head(kind, *head).key.astype(float)
        (a, b) = plane.best(goal)[1]
        one, other = (keys[key] / np.linalg.norm(keys[key]) for key in plane.pair)
        found = softmax(keys @ (a * one + b * other) / np.sqrt(keys.shape[1]))[[*plane.pair]]
        if found[0] >= 0.95 - 1e-3 if goal == "copy" else found.min() >= 0.48 - 1e-3:
            assert measure(Question("build", kind, goal=goal), run, at).has_margin
        else:
            with pytest.raises(UnmeasuredError, match="choose another head"):
                measure(Question("build", kind, goal=goal), run, at)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_candidate_is_named_by_its_probability(run: Translation, place: Viewpoint, rank: int):
    found = measure(Question("candidate", rank=rank), run, place)
    assert run.distributions is not None
    log_probs = np.sort(run.distributions()[ROW].cpu().numpy())[::-1]
    assert answer(found)[1] == pytest.approx(log_probs[rank - 1], abs=1e-3)
    listed = sorted(values(found).values(), reverse=True)
    assert listed == pytest.approx(log_probs[rank - 1 : rank + 3], abs=1e-3)
    shown = [float(option.label.removesuffix(" %")) / 100 for option in found.options]
    assert shown == pytest.approx(
        np.exp([each.value for each in found.options]), rel=6e-3, abs=1e-8
    )


def test_a_mask_is_that_of_the_kind_and_what_it_hides_is_counted(
    run: Translation, place: Viewpoint
):
    keys = len(run.decoder_input_tokens)
    for kind, key, name in (
        *((kind, key, "it is visible") for kind in ("encoder", "cross") for key in questions.KEYS),
        ("decoder", "same", "it is visible"),
        ("decoder", "next", "it is masked"),
    ):
        found = measure(Question("masked", kind, key=key), run, place)
        assert answer(found) == (name, 1)
        assert f"may it see key {4 + (key == 'next')}, " in found.asks
    assert (
        f"Row 4 sees 4 of {keys} keys; key 5 is masked, and its weight is 0.00."
        in measure(Question("masked", "decoder"), run, place).why
    )
    hidden, every = (
        measure(Question("visible", kind), run, place) for kind in ("decoder", "cross")
    )
    assert (answer(hidden), answer(every)) == ((str(keys - 4), 1), ("0", 1))
    assert hidden.has_margin
    assert every.has_margin


def test_the_least_sure_step_is_that_of_the_smallest_probability(
    run: Translation, place: Viewpoint
):
    assert run.distributions is not None
    written = [float(run.distributions()[i][token]) for i, token in enumerate(run.target_ids)]
    name, value = answer(measure(Question("unsure"), run, place))
    assert name.startswith(f"step {int(np.argmin(written)) + 1}, ")
    assert value == pytest.approx(-min(written), abs=1e-3)


@pytest.mark.parametrize(("against", "alpha"), [("greedy", 0.6), ("sum", 0.0)])
def test_a_search_is_ranked_by_the_sum_over_the_length_penalty(
    model: Translator, against: str, alpha: float
):
    text = "The dogs that my neighbour keeps in the garden bark at me."
    run = model.translate(text, beam_size=1)
    found = measure(Question("search", against=against), run, place_of(model, run, 0), model)

    def best(power: float) -> str:
        penalty = {"length_penalty": power, "length_offset": 5}
        tree = model.translate(text, beam_size=4, capture=False, tree=True, **penalty).tree
        assert tree is not None

        def score(ids: tuple[int, ...]) -> float:
            return (
                sum(model.force(text, ids, capture=False).log_probs) / ((5 + len(ids)) / 6) ** power
            )

        return model.text(max((tree.token_ids(i) for i in tree.hypotheses), key=score))

    other = run.text if against == "greedy" else best(alpha)
    assert answer(found)[0] == ("the same" if best(0.6) == other else "another one")
    assert f"finds “{best(0.6)}”, " in found.why
    assert found.why.endswith(f"“{other}”.")


def test_the_smallest_entropy_is_that_of_the_softmax(run: Translation, place: Viewpoint):
    def entropy(row: np.ndarray) -> float:
        return float(-sum(w * np.log(w) for w in row if w > 0))

    rows = [entropy(row) for row in weights_of(run, "cross", *place.cross)]
    name, value = answer(measure(Question("entropy"), run, place))
    assert name.startswith(f"row {int(np.argmin(rows)) + 1}, ")
    assert value == pytest.approx(min(rows), abs=1e-4)
    view = run.head("cross", *place.cross)
    bare = softmax(view.key.astype(float) @ view.query[ROW].astype(float))
    scaled = measure(Question("entropy", among="scale"), run, place)
    assert [option.value for option in scaled.options] == pytest.approx(
        [rows[ROW], entropy(bare)], abs=1e-4
    )
    assert answer(scaled)[0] == "not divided"


@pytest.mark.parametrize("role", questions.ROLES)
def test_a_role_is_the_mean_weight_at_a_place(model, run, place, role):
    kind = "cross" if role == "aligner" else "encoder"
    length = len(run.source_tokens)
    cells = {
        "previous": [(i, i - 1) for i in range(1, length)],
        "next": [(i, i + 1) for i in range(length - 1)],
        "same": [(i, i) for i in range(length)],
        "first": [(i, 0) for i in range(1, length)],
        "end": [(i, length - 1) for i in range(length)],
    }
    if role == "induction":
        with pytest.raises(UnmeasuredError, match=r"^This sentence is too short"):
            measure(Question("role", kind, role=role), run, place, model)
        return
    found = measure(Question("role", kind, role=role), run, place, model)
    expected = {}
    for layer, head in np.ndindex(
        run.config.sites[AttentionKind(kind)].n_layers, run.config.n_heads
    ):
        if role == "aligner":
            value = 1 - model.heads["heads"]["cross"][layer][head]["aer"]  # type: ignore[index]
        else:
            weights = weights_of(run, kind, layer, head)
            value = float(np.mean([weights[at] for at in cells[role]]))
        expected[f"L{layer + 1} H{head + 1}"] = value
    assert values(found) == pytest.approx(
        {name: expected[name] for name in values(found)}, abs=1e-4
    )
    assert answer(found)[1] == pytest.approx(max(expected.values()), abs=1e-4)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_an_induction_head_looks_right_after_earlier_places_of_a_token(
    model: Translator, kind: str
):
    repeated = model.force("a book, a book, a dog.", "um livro, um livro, um livro.")
    place = place_of(model, repeated, ROW)
    found = measure(Question("role", kind, role="induction"), repeated, place, model)
    tokens = repeated.labels(AttentionKind(kind)).keys
    expected = {}
    for layer, head in np.ndindex(repeated.config.sizes[AttentionKind(kind)]):
        weights = weights_of(repeated, kind, layer, head)
        sums = []
        for row in range(len(tokens)):
            total, stood_before = 0.0, False
            for earlier in range(row):
                if tokens[earlier] == tokens[row]:
                    stood_before = True
                    total += weights[row, earlier + 1]
            if stood_before:
                sums.append(total)
        expected[f"L{layer + 1} H{head + 1}"] = sum(sums) / len(sums)
    told = values(found)
    assert told == pytest.approx({name: expected[name] for name in told}, abs=1e-4)
    assert answer(found)[1] == pytest.approx(max(expected.values()), abs=1e-4)
    with pytest.raises(UnmeasuredError, match=r"^The keys of cross-attention are not"):
        measure(Question("role", "cross", role="induction"), repeated, place, model)


def test_a_question_without_a_kind_is_about_the_last_kind_of_a_run(
    model: Translator, run: Translation, place: Viewpoint
):
    for quantity in ("largest-key", "entropy", "visible"):
        asked = measure(Question(quantity), run, place)
        assert asked == measure(Question(quantity, "cross"), run, place)
    writer = load_language_model(MODELS / "language" / "lm-en")
    written = writer.force("The old man saw the old dog.")
    at = Viewpoint(5, 0, decoder=(2, 3))
    asked = measure(Question("largest-key"), written, at)
    assert asked == measure(Question("largest-key", "decoder"), written, at)
    for quantity in ("largest-key", "masked"):
        with pytest.raises(UnmeasuredError, match=r"^This model has no cross-attention\.$"):
            measure(Question(quantity, "cross"), written, at)
    with pytest.raises(UnmeasuredError, match=r"^This question compares translations"):
        measure(Question("difference", changes=("head",)), written, at, writer)


def test_a_change_is_run_and_the_translations_compared(
    model: Translator, run: Translation, place: Viewpoint
):
    layer, head = place.cross
    made = {
        "encoder-positions": do.no_positions("encoder"),
        "decoder-positions": do.no_positions("decoder"),
        "head": do.ablate("cross", layer, head),
        "uniform": do.ablate("cross", layer, head, by="uniform"),
        "layer": do.ablate("cross", layer),
        "unscaled": do.unscaled("cross", layer),
        "forward": do.drop_sublayer("decoder", layer, "feed_forward"),
        "source": do.hide(ROW),
    }
    for change, each in made.items():
        found = measure(Question("difference", changes=(change,)), run, place, model)
        text = model.translate(run.source_text, beam_size=1, interventions=[each]).text
        assert answer(found)[0] == ("it stays the same" if text == run.text else "it changes")
        assert found.why == f"The model {'still' if text == run.text else 'then'} writes “{text}”"
    assert f"source token 4, “{run.source_tokens[ROW]}”, is hidden" in found.asks
    several = ("encoder-positions", "decoder-positions", "unscaled", "head")
    found = measure(Question("difference", changes=several), run, place, model)
    costs = {}
    for change in several:
        without = model.force(run.source_text, run.target_ids, interventions=[made[change]])
        costs[str(made[change])] = sum(run.log_probs) - sum(without.log_probs)
    assert values(found) == pytest.approx(costs, abs=1e-2)
    assert answer(found)[0] == max(costs, key=costs.__getitem__)


def test_a_close_race_is_not_asked_and_the_nearest_is_named():
    options = Option("a", 0.44, "0.44"), Option("b", 0.43, "0.43"), Option("c", 0.1, "0.10")
    found = Measured("Which?", options, 0)
    assert not found.has_margin
    assert replace(found, options=(Option("a", 0.46, "0.46"), *options[1:])).has_margin
    assert found.reason(0) == "a: 0.44. The nearest other one is b: 0.43."
    assert found.reason(2) == "You chose c: 0.10. The answer is a: 0.44."
    assert replace(found, why="So.").reason(1) == "So."
    assert [number(each, "+.2f") for each in (-1.234, -0.001, 0.5)] == ["−1.23", "0.00", "+0.50"]
    assert not Measured("Which?", options[:1], 0).has_margin
    assert Measured("Which?", (Option("a", 2 * questions.ROUNDING), Option("b", 0.0)), 0).has_margin


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"quantity": "beauty"}, "quantity"),
        ({"quantity": "masked", "kind": "self"}, "kind"),
        ({"quantity": "masked", "key": ["next"]}, "key"),
        ({"quantity": "candidate", "rank": 5}, "rank"),
        ({"quantity": "difference"}, "changes must name"),
        ({"quantity": "difference", "changes": ("magic",)}, "changes"),
        (
            {"quantity": "difference", "changes": ("head",) * 5},
            "changes must be a list of at most 4",
        ),
        ({"quantity": "difference", "changes": "head"}, "changes"),
        (
            {"quantity": "head-effect"},
            "This question runs the model again, and a file holds no model.",
        ),
        (
            {"quantity": "role", "kind": "encoder", "role": "aligner"},
            "This question runs the model again",
        ),
    ],
)
def test_what_cannot_be_asked_says_so(run: Translation, place: Viewpoint, given: dict, says: str):
    with pytest.raises(ValueError, match=f"^{says}"):
        measure(Question(**given), run, place)


def test_a_question_is_asked_of_the_row_beside_the_marked_one(run: Translation, place: Viewpoint):
    for name, by in (("after", 1), ("before", -1)):
        moved = place._replace(step=place.step + by, source=place.source + by)
        for kind in questions.KINDS:
            asked = measure(Question("largest-key", kind, place=name), run, place)
            assert asked == measure(Question("largest-key", kind), run, moved)
    steps = len(run.steps)
    sources = len(run.source_tokens)
    ends = place._replace(step=steps - 1, source=0)
    assert ends.moved(run, 1) == place._replace(step=steps - 2, source=1)
    assert ends.moved(run, -1) == place._replace(step=steps - 2, source=1)
    assert place._replace(step=0, source=sources - 1).moved(run, 1)[:2] == (1, sources - 2)


def test_a_key_of_a_lower_rank_leaves_the_larger_ones_out(run: Translation, place: Viewpoint):
    first, third = (measure(Question("largest-key", rank=rank), run, place) for rank in (1, 3))
    order = np.sort(weights_of(run, "cross", *place.cross)[ROW])[::-1]
    assert answer(third)[1] == pytest.approx(order[2], abs=1e-5)
    assert f"apart from {answer(first)[0].partition(' (')[0]}, “" in third.asks


def test_heads_of_one_layer_are_compared(model: Translator, run: Translation, place: Viewpoint):
    found = measure(Question("head-effect", among="layer"), run, place, model)
    every = measure(Question("head-effect"), run, place, model)
    assert place.cross is not None
    assert {name.split()[0] for name in values(found)} == {f"L{place.cross[0] + 1}"}
    assert answer(every)[1] >= answer(found)[1]
