"""Decoders as transformers keeps them: every number, head and token as in the reference."""

import io
import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from decoder_models import KINDS, TURN, byte_level, reference, write_decoder, write_vocabulary
from refusals import refused
from safetensors.torch import load_file, save_file

from transformer import Capture, Translator, load_language_model, load_trace, save_trace
from transformer import interventions as do
from transformer.batches import forced_log_probs
from transformer.families.decoder import DecoderFamily
from transformer.families.decoders import HEAD
from transformer.families.registry import DECODERS, family_of
from transformer.interventions import InterventionError
from transformer.reader import InputError
from transformer.storage import memory
from transformer.storage.files import CheckpointError
from transformer.text.words import is_end, is_special, readable

NEAR = 1e-5
TEXT = "The old house\n\n  and the\ttwo dogs, 12 naïve 😀 cats. "


class Pair(NamedTuple):
    """A directory, opened by this package and by transformers, and the reference's ids of a
    text."""

    ours: Translator
    theirs: Any
    ids: list[int]
    directory: Path

    @property
    def rows(self) -> torch.Tensor:
        return torch.tensor([self.ids])


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def pair(request: Any, tmp_path_factory: Any) -> Pair:
    directory = tmp_path_factory.mktemp("decoder")
    write_decoder(directory, request.param)
    ours = load_language_model(directory, "cpu")
    return Pair(ours, reference(directory), byte_level().encode(TEXT).ids, directory)


def largest(ours: Any, theirs: torch.Tensor) -> float:
    return float((torch.as_tensor(ours) - theirs).abs().max())


def test_ids_logits_streams_and_every_head_are_the_reference_s(pair: Pair) -> None:
    run = pair.ours.force(TEXT, capture=Capture(residual=True))
    assert [run.start_id, *run.target_ids[:-1]] == pair.ids
    with torch.inference_mode():
        expected = pair.theirs(pair.rows, output_attentions=True, output_hidden_states=True)
        assert largest(pair.ours.model(pair.rows), expected.logits) < NEAR
    sites = run.config.sizes["decoder"]
    length = len(pair.ids)
    for layer, weights in enumerate(expected.attentions):
        for head in range(sites[1]):
            ours = run.weights("decoder", layer, head)[:length, :length]
            assert largest(ours, weights[0, head]) < NEAR
    entered = run.trace.embeddings["decoder"].input[:length]
    assert largest(entered, expected.hidden_states[0][0]) < NEAR
    passed = run.config.stacks["decoder"].passed()
    for layer, stream in enumerate(expected.hidden_states[1:-1]):
        ours = run.stream(passed[2 * layer + 1]).stream[:length]
        assert largest(ours, stream[0]) < NEAR
    assert run.audit().passed


def test_greedy_search_and_a_beam_write_what_the_reference_writes(pair: Pair) -> None:
    given = len(pair.ids) - 1
    for beam_size in (1, 4):
        with torch.inference_mode():
            ids = pair.theirs.generate(
                pair.rows,
                max_new_tokens=40,
                num_beams=beam_size,
                do_sample=False,
                pad_token_id=0,
                length_penalty=1.0,
            )[0]
        run = pair.ours.generate(TEXT, beam_size=beam_size, max_length=given + 40)
        assert [run.start_id, *run.target_ids] == ids.tolist()
        assert run.text.startswith(TEXT)
        assert run.audit().passed


def test_a_long_prompt_is_read_as_in_one_pass_and_with_a_cache(pair: Pair) -> None:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(2, 300, (1, 300), generator=generator)
    with torch.inference_mode():
        expected = pair.theirs(ids).logits[0, -1]
        assert largest(pair.ours.model(ids)[0, -1], expected) < NEAR
        from transformer.attention import Cache

        cache = Cache(pair.ours.config)
        for part in ids.split(97, dim=1):
            features = pair.ours.model.features(part, cache=cache)
        assert largest(pair.ours.model.logits(features)[0, -1], expected) < NEAR
        none = torch.zeros(1, pair.ours.config.key_heads, 0, pair.ours.config.d_head)
        (keys, _) = cache.decoder[0].update(none, none)
    assert keys.shape[1:3] == (pair.ours.config.key_heads, 300)


CHANGES = {
    "ablate": do.ablate("decoder", 1, 2),
    "ablate uniform": do.ablate("decoder", 0, [0, 3], by="uniform"),
    "scale": do.scale("decoder", 2, 1, 0.5),
    "set a row": do.set_row("decoder", 1, 0, 3, {0: 0.7}),
    "mask": do.mask("decoder", forbid=[(None, 2)]),
    "temperature": do.temperature("decoder", 0, 1, 2.0),
    "unscaled": do.unscaled("decoder", 1, 1),
    "no positions": do.no_positions("decoder"),
    "drop attention": do.drop_sublayer("decoder", 1, "self_attention"),
    "drop a network": do.drop_sublayer("decoder", 0, "feed_forward"),
    "drop a norm": do.drop_norm("decoder", 1, "feed_forward"),
    "patch a head": do.patch(
        do.head_output("decoder", 1, 1), do.run("dogs", [5, 6, 7, 8, 9]), [1, 2]
    ),
    "patch a stream": do.patch(
        do.stream("decoder", 1, "feed_forward"), do.run("dogs", [5, 6, 7, 8, 9]), [1]
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_every_change_does_what_its_equation_says(pair: Pair, change: do.Intervention) -> None:
    capture = Capture(residual=True)
    plain = pair.ours.generate("the old house", capture=capture, max_length=12)
    run = pair.ours.generate(
        "the old house", interventions=[change], capture=capture, max_length=12
    )
    report = run.audit()
    assert report.passed, [check for check in report.checks if not check.passed]
    assert run.log_probs != plain.log_probs


def test_a_forged_head_is_told(pair: Pair) -> None:
    run = pair.ours.force(TEXT, capture=Capture(residual=True))
    for part in ("query", "key", "value", "heads"):
        tensor = run.trace.tensors[f"decoder.1.self_attention.{part}"]
        kept = tensor.clone()
        tensor[0, 2] += 0.1
        assert not pair.ours.force(TEXT).trace.auditor(run.trace, run.trace.places).passed
        tensor.copy_(kept)


def test_a_group_s_keys_are_recorded_once_and_a_head_knows_which_it_reads(tmp_path: Path) -> None:
    write_decoder(tmp_path, "Llama, groups of three")
    run = load_language_model(tmp_path, "cpu").generate("the old house", max_length=9)
    record = run.trace.layer("decoder", 1)
    assert (record.group, len(record.query), len(record.key), len(record.value)) == (3, 6, 2, 2)
    for head in range(6):
        view = run.head("decoder", 1, head)
        assert np.array_equal(view.key, record.key[head // 3])
        assert np.array_equal(view.value, record.value[head // 3])
        by_hand = view.weights @ view.value
        assert np.abs(by_hand - view.output).max() < 1e-5


def test_a_text_is_read_as_it_was_typed(pair: Pair) -> None:
    texts = json.loads((Path(__file__).parent / "typed.json").read_text())
    for text in texts:
        assert list(pair.ours.tokenizer.target.encode(text)) == byte_level().encode(text).ids
        assert pair.ours.text(pair.ours.ids(text)) == text


def test_breaks_and_blanks_are_drawn(pair: Pair) -> None:
    pieces = pair.ours.pieces(pair.ours.ids("a\n\tb  "))
    assert [readable(piece) for piece in pieces] == ["a", "¶", "→", "b", "◦", "◦"]


def test_words_are_those_between_blanks(pair: Pair) -> None:
    cut = pair.ours.cut(" old\n\nhouse  dog")
    named = {group.text for group in cut.groups()}
    assert named == {"old", "house", "dog"}


def test_special_tokens_are_known_by_their_ids(pair: Pair) -> None:
    ids = byte_level().encode(f"a {TURN} b <s> pt_BR").ids
    special = [is_special(piece) for piece in pair.ours.pieces(ids)]
    assert special.count(True) == 1
    assert special[ids.index(1)]


def test_what_ends_a_text_is_known_by_its_id(pair: Pair) -> None:
    typed = pair.ours.pieces(pair.ours.ids("</s>"))
    assert not any(map(is_end, typed))
    assert list(map(is_end, pair.ours.pieces([7, 0, 8]))) == [False, True, False]


def test_the_first_token_is_a_word_where_no_token_begins_a_text(pair: Pair) -> None:
    run = pair.ours.generate("the old", max_length=6)
    assert not is_special(run.decoder_input_tokens[0])
    assert run.n_given == len(pair.ours.ids("the old")) - 1
    assert run.steps[0].token_id == pair.ours.ids("the old")[1]
    with refused(InputError, "no start token"):
        pair.ours.generate("")


def test_a_start_token_is_put_before_every_text_if_the_settings_say_so(tmp_path: Path) -> None:
    write_decoder(tmp_path, "Mistral")
    write_vocabulary(tmp_path, add_bos_token=True)
    ours = load_language_model(tmp_path, "cpu")
    run = ours.generate("the old", max_length=6)
    assert run.start_id == 0
    assert is_special(run.decoder_input_tokens[0])
    assert run.n_given == len(ours.ids("the old"))


def test_texts_are_scored_in_batches_as_alone(pair: Pair) -> None:
    texts = ["the old house", "two dogs\n", "cat"]
    together = forced_log_probs(pair.ours, texts)
    alone = [pair.ours.force(text).log_probs for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert np.allclose(one, other, atol=1e-5)


def test_a_run_can_be_recorded_again(pair: Pair) -> None:
    from transformer.translator import retrace

    run = pair.ours.generate("the old house", max_length=9, capture=False)
    again = retrace(pair.ours, run, Capture(residual=True))
    assert again.target_ids == run.target_ids
    assert again.audit().passed
    forced = pair.ours.force("the old house")
    assert retrace(pair.ours, forced, Capture(residual=True)).audit().passed


def test_a_run_is_saved_and_opened_with_its_keys_once(pair: Pair) -> None:
    run = pair.ours.generate("the old\nhouse", max_length=12)
    save_trace(run, file := io.BytesIO(), pair.ours.model)
    opened = load_trace(io.BytesIO(file.getvalue()))
    fields = ("text", "prompt", "n_given", "start_id", "decoder_input_tokens", "target_ids")
    assert [getattr(opened, name) for name in fields] == [getattr(run, name) for name in fields]
    assert opened.audit().passed
    assert len(opened.trace.layer("decoder", 0).key) == run.config.key_heads
    for layer, head in np.ndindex(run.config.sizes["decoder"]):
        ours = opened.weights("decoder", layer, head)
        assert np.array_equal(ours, run.weights("decoder", layer, head))


def written_by(theirs: Any, ids: list[int], beam_size: int, penalty: float = 1.0) -> list[int]:
    """What the reference writes after a prompt, 31 tokens in all."""
    with torch.inference_mode():
        written = theirs.generate(
            torch.tensor([ids]),
            max_new_tokens=31 - len(ids),
            num_beams=beam_size,
            do_sample=False,
            pad_token_id=1,
            length_penalty=penalty,
        )
    return [int(number) for number in written[0]]


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_scores_what_is_written_after_the_prompt(seed: int, tmp_path: Path) -> None:
    write_decoder(tmp_path, "Llama, groups of three")
    dice = np.random.default_rng(seed)
    ends = [0, *map(int, dice.choice(np.arange(2, 325), 60, replace=False))]
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    ours = load_language_model(tmp_path, "cpu")
    theirs = reference(tmp_path)
    text = "the old house"
    ids = byte_level().encode(text).ids
    for beam_size, penalty in itertools.product((2, 4), (0.0, 1.0, 2.5, -1.0)):
        options: Any = {"beam_size": beam_size, "length_penalty": penalty, "max_length": 30}
        run = ours.generate(text, **options)
        wanted = written_by(theirs, ids, beam_size, penalty)
        assert [run.start_id, *run.target_ids] == wanted, (beam_size, penalty)
    tree = ours.generate(text, beam_size=4, max_length=30, tree=True).tree
    assert tree is not None
    winner = tree.nodes[tree.winner]
    path = [tree.nodes[place].log_prob for place in tree.path(tree.winner)][len(ids) - 1 :]
    assert winner.score == pytest.approx(sum(path) / len(path), abs=1e-5)
    assert tree.greedy.score == pytest.approx(
        np.mean(tree.greedy.log_probs[len(ids) - 1 :]), abs=1e-5
    )


def test_every_id_of_a_list_ends_a_text(tmp_path: Path) -> None:
    write_decoder(tmp_path, "Llama, groups of three")
    plain = load_language_model(tmp_path, "cpu").generate("the old house", max_length=30)
    chosen = plain.target_ids[plain.n_given + 2]
    values = {"eos_token_id": [0, chosen]}
    (tmp_path / "generation_config.json").write_text(json.dumps(values))
    ours = load_language_model(tmp_path, "cpu")
    theirs = reference(tmp_path)
    ids = byte_level().encode("the old house").ids
    assert theirs.generation_config.eos_token_id == [0, chosen]
    ended = plain.target_ids[: plain.target_ids.index(chosen, plain.n_given) + 1]
    assert ours.generate("the old house", max_length=30).target_ids == ended
    ends = []
    for beam_size in (1, 2, 4):
        run = ours.generate("the old house", max_length=30, beam_size=beam_size)
        assert [run.start_id, *run.target_ids] == written_by(theirs, ids, beam_size)
        at_the_limit = len(run.target_ids) == 30
        assert not run.notes
        assert is_end(run.target_tokens[-1]) is not at_the_limit
        save_trace(run, file := io.BytesIO(), ours.model)
        opened = load_trace(io.BytesIO(file.getvalue()))
        assert is_end(opened.target_tokens[-1]) is not at_the_limit
        ends.append(at_the_limit)
    assert ends == [False, False, True]


def test_old_files_without_a_prefix_and_with_masks_open(tmp_path: Path) -> None:
    write_decoder(tmp_path, "GPT-2")
    before = load_language_model(tmp_path, "cpu").force(TEXT).log_probs
    path = tmp_path / "model.safetensors"
    tensors = {
        name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()
    }
    tensors["h.0.attn.bias"] = torch.ones(1, 1, 512, 512)
    tensors["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, path, {"format": "pt"})
    assert load_language_model(tmp_path, "cpu").force(TEXT).log_probs == before


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_files_of_16_bits_open(dtype: torch.dtype, tmp_path: Path) -> None:
    write_decoder(tmp_path, "Qwen2")
    path = tmp_path / "model.safetensors"
    save_file(
        {name: tensor.to(dtype) for name, tensor in load_file(path).items()}, path, {"format": "pt"}
    )
    ours = load_language_model(tmp_path, "cpu")
    ids = torch.tensor([byte_level().encode(TEXT).ids])
    with torch.inference_mode():
        assert largest(ours.model(ids), reference(tmp_path).float()(ids).logits) < NEAR


def test_files_in_shards_open(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    parts = tmp_path / "parts"
    write_decoder(whole, "Llama, groups of three")
    write_decoder(parts, "Llama, groups of three", shard_size="40KB")
    assert len(list(parts.glob("model-*.safetensors"))) > 2
    run = load_language_model(parts, "cpu").force(TEXT)
    assert run.log_probs == load_language_model(whole, "cpu").force(TEXT).log_probs


def test_the_two_files_of_a_byte_level_vocabulary_open(tmp_path: Path) -> None:
    write_decoder(tmp_path, "GPT-2")
    before = load_language_model(tmp_path, "cpu").ids(TEXT)
    (tmp_path / "tokenizer.json").unlink()
    byte_level().model.save(str(tmp_path))
    assert load_language_model(tmp_path, "cpu").ids(TEXT) == before


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a window": ("Mistral", {"sliding_window": 100}, "sliding_window = 100"),
    "soft caps": ("Llama, linear", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping"),
    "experts": ("Mistral", {"num_local_experts": 8}, "num_local_experts"),
    "YaRN": ("Qwen2", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
    "longrope": ("Qwen2", {"rope_scaling": {"type": "longrope"}, "rope_parameters": None}, "longr"),
    "biases of attention": ("Llama, linear", {"attention_bias": True}, "attention_bias"),
    "no end": ("Llama, linear", {"eos_token_id": None}, "eos_token_id"),
    "an end without a row": ("Llama, linear", {"eos_token_id": 9_999}, "eos_id"),
    "groups that do not fit": ("Llama, linear", {"num_key_value_heads": 4}, "n_key_heads"),
    "no width": ("Llama, linear", {"hidden_size": None}, "hidden_size"),
    "a width that is a text": ("Llama, linear", {"hidden_size": "48"}, "d_model"),
    "an activation": ("GPT-2", {"activation_function": "tanh"}, "tanh"),
    "norms after": ("OPT", {"do_layer_norm_before": False}, "do_layer_norm_before"),
    "narrow embeddings": ("OPT", {"word_embed_proj_dim": 12}, "word_embed_proj_dim"),
    "scaled by layer": ("GPT-2", {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer"),
    "too many layers": ("GPT-2", {"n_layer": 5}, "lack"),
    "too few layers": ("GPT-2", {"n_layer": 2}, "include"),
}


@pytest.mark.parametrize(("kind", "entries", "words"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_exact_is_refused_by_name(
    kind: str, entries: dict[str, Any], words: str, tmp_path: Path
) -> None:
    write_decoder(tmp_path, kind)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    with refused(CheckpointError, words):
        load_language_model(tmp_path, "cpu")


def test_a_model_that_does_not_fit_into_memory_is_refused_with_both_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_decoder(tmp_path, "GPT-2")
    monkeypatch.setattr(memory, "free_bytes", lambda: 5_000_000)
    with refused(CheckpointError, r"needs 0\.0 GB of memory, and 0\.0 GB are free"):
        load_language_model(tmp_path, "cpu")


def test_every_family_says_where_all_weights_of_its_models_lie(pair: Pair) -> None:
    shapes = pair.ours.model.state_dict().keys()
    family = family_of(pair.directory)
    assert isinstance(family, DecoderFamily)
    sources = family.sources(pair.ours.config)
    assert shapes == sources.keys() - ({HEAD} if pair.ours.config.tied_embeddings else set())


def test_an_intervention_of_another_kind_of_attention_is_refused(pair: Pair) -> None:
    with refused(InterventionError, "cross"):
        pair.ours.generate("the", interventions=[do.ablate("cross", 0, 0)])


def test_a_directory_s_family_is_known_by_its_type(tmp_path: Path) -> None:
    for family in DECODERS:
        for kind in family.types:
            (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
            assert family_of(tmp_path) is family
