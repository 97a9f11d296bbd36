"""The page Search: the tree, its numbers, the run of a node, and samples."""

from functools import cache, partial

import pytest
from app_pages import charts, feeds, run, said, view, words
from streamlit.testing.v1 import AppTest

from explorer.app.sections.beam_search import tree as search_tree
from explorer.app.server import models
from explorer.figures.base import labels
from explorer.figures.base.bars import shown_candidates
from transformer import Sampling, Translation, Translator
from transformer import interventions as do
from transformer.beam import SearchTree

TEXT = "one two three"
opened = partial(run, "pages/beam_search.py", model="random", text=TEXT)


def translator() -> Translator:
    return models.find("random").load()


@cache
def tree_of(beam_size: int = 4, **options: object) -> SearchTree:
    found = translator().translate(TEXT, beam_size=beam_size, tree=True, **options).tree
    assert found is not None
    return found


def places(at: AppTest) -> set[int]:
    """The places of the nodes that can be clicked in the first picture."""
    (found,) = [each for each in charts(at)[0]["data"] if "customdata" in each]
    return set(found["customdata"]) - {-1}


def candidates(run: AppTest | Translation) -> list[list[int]]:
    """The ids of the candidates of every step, as the linked view shows them, or of a
    translation."""
    if isinstance(run, AppTest):
        return feeds(run)["next"]["ids"]
    return [[candidate.token_id for candidate in shown_candidates(step)] for step in run.steps]


def hypotheses(at: AppTest) -> list[str]:
    return list(at.dataframe[0].value["output"])


def test_a_page_searches_once(monkeypatch):
    searches, stream = [], Translator.stream
    counted = lambda *given, **more: searches.append(given[1]) or stream(*given, **more)  # noqa: E731
    monkeypatch.setattr(Translator, "stream", counted)
    opened(decode="beam-3", text="two three two one")
    assert searches.count("two three two one") == 1


def test_the_tree_its_ranking_and_where_greedy_search_parts_from_it():
    at = opened()
    tree = tree_of()
    assert "Decoding" not in {each.label for each in at.selectbox}, "its own way is the only one"
    assert places(at) == {i for i, node in enumerate(tree.nodes) if node.step < 40}
    ended = [tree.token_ids(i) for i in tree.hypotheses]
    best = tree.token_ids(tree.winner)
    greedy = tree.greedy.token_ids
    assert hypotheses(at) == [*map(translator().text, ended + [greedy] * (greedy not in ended))]
    table = at.dataframe[0].value
    totals = list(table["Σ log p"])
    assert next(iter(table["rank by score"])) == 1
    assert totals[list(table["rank by Σ log p"]).index(1)] == max(totals)
    step = next(i for i, pair in enumerate(zip(best, greedy, strict=False)) if pair[0] != pair[1])
    takes = labels.piece(tree.greedy.tokens[step])
    assert f"They part at step {step + 1}: greedy search takes “{takes}”" in words(at)
    own = opened(target="drei zwei")
    assert "plays no part" in words(own)
    assert places(own) == places(at)


def test_scores_of_a_continued_text_are_of_what_was_written():
    at = opened(model="language/lm-en", text="The old house", decode="beam-3", write="6")
    table = at.dataframe[0].value
    (name,) = [column for column in table.columns if column.startswith("score")]
    lengths = list(table["tokens"])
    assert max(lengths) <= 6
    means = [total / length for total, length in zip(table["Σ log p"], lengths, strict=True)]
    assert list(table[name]) == pytest.approx(means, abs=1e-4)
    assert "what is written after the text" in words(at)
    assert "what is written after the text" not in words(opened())


def test_beam_penalty_and_offset_come_from_the_address():
    at = opened(decode="beam-3", penalty="0.6", length_offset="5")
    tree = tree_of(3, length_penalty=0.6, length_offset=5)
    assert places(at) == set(range(len(tree.nodes)))
    assert "score with ((5 + |y|) ÷ 6) to the power α, α = 0.6" in at.dataframe[0].value
    expected = [translator().text(tree.token_ids(i)) for i in tree.hypotheses]
    assert hypotheses(at)[: len(expected)] == expected


def test_a_node_shows_its_own_run_and_continuing_keeps_its_tokens_and_searches_on():
    tree = tree_of()
    node = next(i for i, each in enumerate(tree.nodes) if each.step == 2 and not each.won)
    at = opened(node=str(node + 1), step="9")
    ids = tree.token_ids(node)
    assert (feeds(at)["strips"]["steps"], view(at)["step"]) == (len(ids), 2) == (3, 2)
    assert feeds(at)["cross"]["badge"]["passed"]
    assert candidates(at) == candidates(translator().force(TEXT, ids))
    node = next(
        i for i, each in enumerate(tree.nodes) if each.step == 1 and not each.won and not each.ended
    )
    at = opened(node=str(node + 1))
    at.button("search.continue").click().run()
    assert not at.exception
    kept = [do.prefix(tree.token_ids(node))]
    assert (at.query_params["changes"], at.query_params["decode"]) == (
        do.write_text(kept),
        "beam-4",
    )
    assert "node" not in at.query_params
    assert candidates(at) == candidates(
        translator().translate(TEXT, beam_size=4, interventions=kept)
    )


def test_a_token_is_chosen_from_the_list_too_and_an_output_that_has_ended_is_not_continued():
    tree = tree_of()
    assert "search.continue" not in {each.key for each in opened(node=str(tree.winner + 1)).button}
    at = opened(node="1")
    node = next(i for i, each in enumerate(tree.nodes) if each.step == 2)
    next(each for each in at.selectbox if each.label == "Token of the tree").select(node).run()
    assert at.query_params["node"] == str(node + 1)
    assert feeds(at)["strips"]["steps"] == 3
    at = opened(node="9999")
    assert f"The tree has {len(tree.nodes)} tokens" in said(at)
    assert feeds(at)["strips"]["steps"] == len(tree.path(tree.winner)), "the best output"


def test_the_numbers_of_the_tree_are_offered_as_csv():
    tree = tree_of()
    names, *rows = search_tree.table(tree, {"score": [node.score for node in tree.nodes]})
    assert names == (
        "node",
        "step",
        "token",
        "token id",
        "parent",
        "log p",
        "sum of log p",
        "score",
    )
    for i, (row, n) in enumerate(zip(rows, tree.nodes, strict=True)):
        parent = "" if n.parent is None else n.parent
        assert row == (i, n.step, n.token, n.token_id, parent, n.log_prob, n.total, n.score)


def test_samples_are_those_of_their_seeds_other_draws_take_the_next_and_one_can_be_shown():
    at = opened(view="sampling", draws="3", temperature="1.2", top_k="5", top_p="0.9")
    rules = {"temperature": 1.2, "top_k": 5, "top_p": 0.9}
    runs = [
        translator().translate(TEXT, beam_size=1, sample=Sampling(seed=i, **rules))
        for i in (1, 2, 3)
    ]
    ranked = sorted(runs, key=lambda each: -sum(each.log_probs))
    assert list(at.dataframe[0].value["output"]) == [each.text for each in ranked]
    at.button("search.again").click().run()
    assert at.query_params["seed"] == "4"
    assert set(at.dataframe[0].value["seed"]) == {4, 5, 6}
    bars = [each for chart in charts(at) for each in chart["data"] if each["type"] == "bar"]
    assert sum(1 for share in bars[1]["x"] if share > 0) <= 5
    assert sum(bars[1]["x"]) == pytest.approx(1)
    at.button("search.take").click().run()
    assert at.query_params["decode"].startswith("sample-")
