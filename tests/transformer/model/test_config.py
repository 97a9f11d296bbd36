from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_models import paper_base, paper_big
from properties import JSON, PROPERTY, as_file, damaged, or_refused
from random_models import random_config

from transformer.config import LanguageModelConfig, RecurrentConfig, TransformerConfig, config_from

CONFIGS = (
    random_config(norm="pre", trained_length=17),
    LanguageModelConfig(vocab_size=20),
    RecurrentConfig(vocab_size=20),
)


def test_a_config_is_flat():
    assert not any(isinstance(value, dict | list) for value in random_config().to_dict().values())


def test_the_paper_s_shapes_have_heads_of_64():
    assert paper_base().d_head == paper_big().d_head == 64


def test_embeddings_are_scaled_by_the_root_of_the_width():
    assert random_config(d_model=64).embedding_scale == 8


@PROPERTY
@given(st.sampled_from(CONFIGS).flatmap(lambda config: damaged(config.to_dict())))
def test_a_damaged_config_is_refused_in_one_sentence_or_survives(values: dict[str, Any]):
    with or_refused(ValueError):
        config = config_from(values)
        assert config_from(as_file(config.to_dict())) == config


@PROPERTY
@given(st.sampled_from(list(random_config().to_dict())), JSON)
def test_an_entry_of_another_kind_is_named(name: str, value: Any):
    try:
        config = random_config(**{name: value})
    except ValueError as error:
        told = str(error)
    else:
        told = name if config.to_dict()[name] == value else ""
    assert any(each in told for each in (name, "eos_id", "n_heads"))  # a size may refuse what depends on it


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"d_model": 30}, "n_heads"),
        ({"d_ff": 2.5}, "d_ff"),
        ({"d_ff": True}, "d_ff"),
        ({"vocab_size": 1_000_001}, "vocab_size"),
        ({"eos_id": 40}, "eos_id"),
        ({"eos_id": 0}, "eos_id and pad_id are both 0"),
        ({"dropout": 1.0}, "dropout"),
        ({"norm": ["pre"]}, "norm"),
        ({"trained_length": 0}, "trained_length"),
        ({"d_modell": 32}, "d_modell"),
    ],
)
def test_a_bad_entry_is_named(changes, named):
    with pytest.raises(ValueError, match=named):
        random_config(**changes)


def test_a_config_without_vocabulary_is_refused():
    with pytest.raises(ValueError, match="vocab_size"):
        TransformerConfig.from_dict({"d_model": 32})


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"target_vocab_size": 30}, "target_vocab_size"),
        ({"target_vocab_size": -1, "shared_embeddings": False}, "target_vocab_size"),
        ({"target_vocab_size": 2, "shared_embeddings": False}, "eos_id"),
        ({"shared_embeddings": 1}, "shared_embeddings"),
        ({"output_bias": "no"}, "output_bias"),
        ({"languages": [">>fra<<"]}, "languages"),
    ],
)
def test_what_contradicts_itself_about_the_target_is_refused_by_name(changes, name):
    with pytest.raises(ValueError, match=name):
        TransformerConfig(vocab_size=20, **changes)


def test_a_config_of_before_separate_targets_reads_as_it_was_meant():
    config = TransformerConfig.from_dict({"vocab_size": 20, "d_model": 64, "tied_embeddings": False})
    assert config.n_target_pieces == 20
    assert config.shared_embeddings
    assert config.embedding_scale == 8
    assert not config.output_bias
    assert config.language_pieces == ()
