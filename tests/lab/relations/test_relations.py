from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from closed_form import CASES
from programs import main

from lab.relations.relations import LEAST_ARCS, Hits, compare, dependencies, encode, merge
from lab.relations.treebanks import Arc, Tree, read_pronouns, read_trees
from transformer.model.sites import AttentionKind
from transformer.runs.translator import Translator, load_translator
from transformer.storage.directory import save_checkpoint
from transformer.text.pairs import DataError

ENCODER, DECODER, CROSS = AttentionKind


def line(
    place: str, form: str, head: object, relation: str, misc: str = "_", lemma: str = "_", tag: str = "_"
) -> str:
    return "\t".join([place, form, lemma, tag, "_", "_", str(head), relation, "_", misc])


CONLLU = "\n".join(
    [
        "# sent_id = 1",
        "# text = Er geht zum Haus.",
        "# text_en = He goes home.",
        line("1", "Er", 2, "nsubj"),
        line("2", "geht", 0, "root", lemma="gehen", tag="VERB"),
        line("3-4", "zum", "_", "_"),
        line("3", "zu", 5, "case"),
        line("4", "dem", 5, "det"),
        line("4.1", "leer", "_", "_"),
        line("5", "Haus", 2, "obl:lmod", "SpaceAfter=No", "Haus", "NOUN"),
        line("6", ".", 2, "punct"),
        "",
        line("1", "Ja", 0, "root"),
        "",
    ]
)


def test_a_tree_is_read_in_written_words(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU)
    tree, short = read_trees(tmp_path / "a.conllu")
    assert tree.text == "Er geht zum Haus."
    assert tree.words == ("Er", "geht", "zum", "Haus", ".")
    assert set(tree.arcs) == {Arc("nsubj", 0, 1), Arc("case", 2, 3), Arc("det", 2, 3), Arc("obl", 3, 1)}
    assert tree.translation_of == "He goes home."
    assert tree.lemmas == (None, "gehen", None, "haus", None)
    assert (short.words, short.arcs) == (("Ja",), ())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no trees"),
        ("1\tEr\n", "10 columns"),
        (line("x", "Er", 0, "root"), "not a word"),
        (line("1", "Er", "x", "root"), "not a word"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "a.conllu").write_text(content)
    with pytest.raises(DataError, match=reason):
        read_trees(tmp_path / "a.conllu")


def test_pronouns_and_the_two_people_are_found(tmp_path: Path) -> None:
    rows = [
        "female\t1\tThe developer argued with the designer because she did not like it.\tdeveloper",
        "male\t5\tThe developer asked the construction worker because he knew.\tconstruction worker",
        "male\t4\tThe developer asked the construction worker because he knew.\tconstruction worker",
        "male\t3\tThe developer asked someone, but he left.\tsomeone",
        "female\t5\tThe developer argued with the designer.\tdesigner",
    ]
    (tmp_path / "w.tsv").write_text("\n".join(rows))
    cases, left_out = read_pronouns(tmp_path / "w.tsv")
    assert [
        (case.words[case.pronoun], case.words[case.antecedent], case.words[case.other]) for case in cases
    ] == [
        ("she", "developer", "designer"),
        ("he", "worker", "developer"),
        ("he", "worker", "developer"),
        ("he", "someone", "developer"),
    ]
    assert left_out == 1
    assert cases[1].people == ("construction worker", "developer")


def test_words_sum_over_keys_and_average_over_queries() -> None:
    table = np.array([[1, 1, 0], [0, 0, 1]], dtype=np.float32)
    weights = np.array([[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6]]], dtype=np.float32)
    assert merge(weights, table)[0] == pytest.approx(np.array([[0.5, 0.5], [0.4, 0.6]]))


def test_head_and_rule_are_chosen_on_one_half_and_measured_on_the_other() -> None:
    def hits(group: str, heads: list[int], rules: list[int]) -> list[Hits]:
        return [Hits(group, 1, np.array(heads), np.array(rules))] * LEAST_ARCS

    chosen_on, measured_on = "4", "0"
    found = compare(
        hits(chosen_on, [0, 1, 0, 0], [0, 1]) + hits(measured_on, [1, 1, 0, 0], [1, 0]), 2, ["-1", "+1"]
    )
    other = compare(
        hits(chosen_on, [1, 0, 0, 0], [0, 1]) + hits(measured_on, [0, 1, 0, 0], [1, 0]), 2, ["-1", "+1"]
    )
    assert found is not None
    assert other is not None
    assert {found.head, other.head} == {0, 1}
    assert compare(hits(chosen_on, [1, 0, 0, 0], [0, 1]), 2, ["-1", "+1"]) is None


def test_the_interval_of_a_gain_holds_the_gain() -> None:
    rng = np.random.default_rng(5)
    hits = [
        Hits(str(i), 3, np.array([rng.binomial(3, 0.7), 0]), np.array([rng.binomial(3, 0.4)]))
        for i in range(300)
    ]
    found = compare(hits, 2, ["-1"])
    assert found is not None
    assert found.low < found.share - found.baseline < found.high
    assert found.low > 0.2
    assert found.high < 0.4


def test_a_head_that_looks_one_word_on_follows_what_an_offset_follows(
    closed_form_models: dict[str, Path],
) -> None:
    model = load_translator(closed_form_models["copy"])
    words = tuple(CASES["copy"].sentence.split())
    arcs = (*(Arc("det", i, i + 1) for i in range(3)), Arc("obj", 0, 4), Arc("obj", 1, 5))
    trees = [Tree(" ".join(words), words, arcs)] * 120
    found = dependencies(model, trees, ENCODER)
    assert found["skipped"] == 0
    det = next(
        each for each in found["relations"] if each["relation"] == "det" and "to head" in each["direction"]
    )
    assert (det["layer"], det["head"], det["share"], det["rule"], det["baseline"]) == (0, 0, 1, "+1", 1)
    assert (det["low"], det["high"]) == (0, 0)
    objects = next(each for each in found["relations"] if each["relation"] == "obj")
    assert objects["share"] == 0
    assert objects["baseline"] == 1


def test_the_encoder_alone_computes_what_a_translation_records(translator: Translator) -> None:
    pieces, trace = encode(translator, "one two three")
    run = translator.translate("one two three")
    assert pieces == run.source_tokens
    assert trace.weights(ENCODER, 1) == pytest.approx(run.attention.weights(ENCODER, 1), abs=1e-6)


def test_the_decoder_sees_earlier_words_only(translator: Translator) -> None:
    words = ("eins", "zwei", "drei")
    trees = [Tree("eins zwei drei", words, (Arc("obj", 0, 2), Arc("obj", 1, 0)), "one two three")] * 240
    found = dependencies(translator, trees, DECODER)["relations"]
    rules = {(each["direction"], each["rule"]) for each in found}
    assert rules == {
        ("dependent to head", "-1"),
        ("head to dependent", "-2"),
    }


def test_the_command_writes_figures_and_no_data(translator: Translator, tmp_path: Path) -> None:
    model, data = tmp_path / "model", tmp_path / "probes"
    save_checkpoint(model, translator.config, translator.model.state_dict(), translator.tokenizer)
    data.mkdir()
    for name in ("en", "de"):
        (data / f"pud-{name}.conllu.gz").write_bytes(gzip.compress(CONLLU.encode()))
    row = "female\t1\tThe developer met the designer because she did.\tdeveloper\n"
    (data / "winomt-en.tsv.gz").write_bytes(gzip.compress((row + row.replace("1", "4")).encode()))
    command = ["probes", "--model", str(model), "--probes", str(data)]
    assert main(command) == 0
    assert json.loads((model / "probes.json").read_text())["decoder"] == {}
    command += ["--trees", "pud-de.conllu.gz"]
    assert main(command) == 0
    written = json.loads((model / "probes.json").read_text())
    parts = {"encoder", "decoder", "pronouns", "meanings"}
    assert set(written) == {"model", "data", "command", "date", "digests", *parts}
    assert "developer" not in json.dumps(written)
    (tmp_path / "texts.tsv").write_text("good or bad\tgut oder schlecht\n")
    assert main([*command, "--texts", str(tmp_path / "texts.tsv"), "--only", "meanings"]) == 0
    after = json.loads((model / "probes.json").read_text())
    assert set(after["again"]) == {"meanings"}
    assert "antonyms" in after["meanings"]["data"]
    assert {name: after[name] for name in written if name != "meanings"} == {
        name: value for name, value in written.items() if name != "meanings"
    }
