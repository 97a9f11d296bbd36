"""Hooks: what a model calls by name, what functions may change there, and what the audit says of
it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import random_ids, random_model, random_recurrent

from transformer import Hooks
from transformer import interventions as do
from transformer.hooks import function_edits, hook_names
from transformer.translator import Translator

TEXT = "one two three four"
CROSS = "decoder.{}.cross_attention.{}".format


def uniform(values, first):
    return torch.full_like(values, 1 / values.shape[-1])


def only_first(values, first):
    return torch.where(torch.arange(values.shape[-1]) == 0, values, -1e9)


def leave(values, first):
    return values.clone()


def replaced_rows(layer):
    """(heads, queries) bool: rows whose weights are not what equation 1 and the interventions
    give."""
    return (layer.map().weights != replace(layer, used_weights=None).map().weights).any(-1)


@pytest.mark.parametrize(
    "model",
    [random_model(), random_model(norm="post", positions="learned"), random_recurrent("local")],
    ids=["pre-norm", "post-norm", "recurrent"],
)
def test_a_model_calls_its_hooks_with_the_names_that_it_lists_in_their_order(model):
    seen = {}

    class Noting(Hooks):
        def __call__(self, name, value, at=None):
            seen[name] = value
            return value

    model(random_ids(1, 5), random_ids(1, 4), hooks=Noting({"weights", "stream"}))
    listed = model.hook_names()
    assert listed == hook_names(model.config)
    assert [name for name in seen if not name.endswith((".norm", ".encoding"))] == list(listed)


@pytest.mark.parametrize("way", ["beam", "forced"])
def test_replaced_weights_and_scores_are_used_and_stored(translator, way):
    hooks = {CROSS(1, "weights"): uniform, CROSS(0, "scores"): only_first}
    if way == "forced":
        hooked = translator.force(TEXT, "eins zwei", hooks=hooks)
    else:
        hooked = translator.translate(TEXT, beam_size=3, max_length=8, hooks=hooks)
    trace = hooked.attention
    np.testing.assert_allclose(trace.weights("cross", 1), 1 / len(hooked.source_tokens))
    assert (trace.weights("cross", 0)[:, :, 0] == 1.0).all()
    for kind, layer in trace.places:
        rows = replaced_rows(trace.layer(kind, layer))
        assert rows.all() if (kind, layer) in (("cross", 0), ("cross", 1)) else not rows.any()
    value = trace.layer("cross", 1).value
    mean = value[2].mean(0).expand(len(hooked.target_tokens), -1)
    np.testing.assert_allclose(hooked.head("cross", 1, 2).output, mean, atol=1e-5)
    assert trace.audit().passed


@pytest.mark.parametrize("part", ["scores", "weights"])
def test_a_function_in_16_bits_is_verified_with_the_weights_as_they_were_rounded(tokenizer, part):
    model = random_model(vocab_size=tokenizer.vocab_size).to(torch.bfloat16)
    found = Translator(model, tokenizer).translate(
        TEXT, max_length=6, hooks={CROSS(0, part): lambda values, first: values * 1.0}
    )
    assert found.attention.audit().passed
    off = Translator(model, tokenizer).translate(
        TEXT, max_length=6, hooks={CROSS(0, "weights"): lambda values, first: values * 1.05}
    )
    assert {check.name for check in off.attention.audit().checks if not check.passed} == {
        "row sums in 16 bits"
    }


@pytest.mark.parametrize("part", ["query", "heads", "read", "stream", "hidden"])
def test_a_hook_elsewhere_changes_the_run_and_the_audit_says_what_it_cannot_check(translator, part):
    name = (
        f"encoder.0.feed_forward.{part}" if part == "hidden" else f"encoder.1.self_attention.{part}"
    )
    hooked = translator.translate(
        TEXT, max_length=6, hooks={name: lambda values, first: 1.5 * values}
    )
    report = hooked.attention.audit()
    assert hooked.log_probs != translator.translate(TEXT, max_length=6).log_probs
    assert report.passed
    said = f"a function of yours acts at {name} (so places and the stream were not checked)"
    assert report.changes == (said,)
    assert report.skipped == ("places", "stream")


def test_a_hook_learns_the_position_of_its_first_row_and_marks_only_the_rows_that_it_changed(
    translator,
):
    def second_row_of_head_three(values, first):
        rows = torch.arange(first, first + values.shape[2]) == 1
        return torch.where(
            rows[:, None] & (torch.arange(4) == 3)[:, None, None], 1 / values.shape[-1], values
        )

    for hooked in (
        translator.translate(
            TEXT, max_length=4, hooks={CROSS(0, "weights"): second_row_of_head_three}
        ),
        translator.force(
            TEXT, "eins zwei drei", hooks={CROSS(0, "weights"): second_row_of_head_three}
        ),
    ):
        assert replaced_rows(hooked.attention.layer("cross", 0)).nonzero().tolist() == [[3, 1]]
        assert hooked.attention.audit().passed


def test_hooks_that_change_nothing_change_nothing(translator):
    plain = translator.translate(TEXT, beam_size=3, max_length=8)
    hooks = {
        name: leave
        for name in translator.model.hook_names()
        if name.endswith((".weights", ".scores"))
    }
    hooked = translator.translate(TEXT, beam_size=3, max_length=8, hooks=hooks)
    assert hooked.target_tokens == plain.target_tokens
    np.testing.assert_allclose(hooked.log_probs, plain.log_probs, atol=1e-5)
    for place in plain.attention.places:
        assert not replaced_rows(hooked.attention.layer(*place)).any()


@pytest.mark.parametrize("name", ["encoder.positions", "decoder.1.cross_attention.key"])
def test_a_function_may_work_in_place_without_touching_model_cache_or_recording(translator, name):
    before = translator.translate(TEXT, max_length=6)
    hooked = translator.translate(
        TEXT, max_length=6, hooks={name: lambda values, first: values.mul_(2)}
    )
    copied = translator.translate(
        TEXT, max_length=6, hooks={name: lambda values, first: values * 2}
    )
    assert hooked.log_probs == copied.log_probs != before.log_probs
    assert hooked.attention.audit().passed
    torch.testing.assert_close(
        hooked.attention.tensors[name], 2 * hooked.attention.tensors[f"{name}.own"]
    )
    assert translator.translate(TEXT, max_length=6).log_probs == before.log_probs


def test_a_function_on_a_mask_is_recorded_drawn_and_told(translator):
    def only_the_end(mask, first):
        return mask & (torch.arange(mask.shape[-1]) == mask.shape[-1] - 1)

    hooked = translator.translate(TEXT, max_length=4, hooks={CROSS(1, "mask"): only_the_end})
    view = hooked.head("cross", 1, 2)
    assert view.mask.sum(1).tolist() == [1, 1, 1, 1]
    assert (view.weights[:, -1] == 1).all()
    assert view.audit.passed
    assert view.audit.changes == ("a function of yours acts at decoder.1.cross_attention.mask",)


WRONG = [
    lambda values: values[..., 1:],
    lambda values: values[0],
    lambda _: None,
    lambda values: values * torch.nan,
]


def test_a_wrong_result_of_a_hook_is_one_sentence(translator):
    name = "encoder.0.self_attention.weights"
    for result in WRONG:
        with pytest.raises(ValueError, match=rf"^The hook at {name} returned [^\n]+\.$"):
            translator.translate(
                TEXT, hooks={name: lambda values, first, result=result: result(values)}
            )
    with pytest.raises(ValueError, match="whole name"):
        Hooks(edits={"weights": [lambda own, at: own]})


@pytest.mark.parametrize(
    "name", [CROSS(3, "weights"), CROSS(0, "weigths"), "encoder.norm", "encoder.encoding", ""]
)
def test_a_hook_at_no_place_of_the_model_is_refused(translator, name):
    with pytest.raises(
        ValueError, match=r"^There is no place .*hook_names\(\) lists all, layers from 0\.$"
    ):
        translator.translate(TEXT, hooks={name: leave})


@pytest.mark.parametrize("name", ["decoder.1.cross_attention.qeury", "encoder.9.norm", "quary"])
def test_a_misspelt_name_to_record_or_to_change_is_refused_by_the_model(translator, name):
    ids = random_ids(1, 5), random_ids(1, 3)
    looking = [Hooks(record={name})]
    if "." in name:
        looking.append(Hooks(edits={name: [lambda own, at: own]}))
    for hooks in looking:
        with pytest.raises(
            ValueError, match=rf"^There is no place '{name}' in this model; model\.hook"
        ):
            translator.model(*ids, hooks=hooks)
    for name in (*translator.model.hook_names(), "query", "centres", "positions"):
        Hooks(record={name}).check(translator.config)


def test_several_functions_of_one_place_act_in_their_order(translator):
    name = "encoder.0.self_attention.query"

    def double(values, first):
        return 2 * values

    def add(values, first):
        return values + 1

    both = translator.translate(TEXT, max_length=4, hooks={name: [double, add]})
    one = translator.translate(
        TEXT, max_length=4, hooks={name: lambda values, first: 2 * values + 1}
    )
    other = translator.translate(TEXT, max_length=4, hooks={name: (add, double)})
    assert both.log_probs == one.log_probs != other.log_probs
    for wrong in ([], [double, 3], 3):
        with pytest.raises(ValueError, match=f"^The hook at '{name}' is no function"):
            translator.translate(TEXT, hooks={name: wrong})


@pytest.mark.parametrize("beam_size", [2, 3])
def test_a_hook_that_bars_what_a_change_chooses_leaves_nothing_to_write(translator, beam_size):
    def barred(logits, first):
        return logits.index_fill(-1, torch.tensor([50]), -torch.inf)

    options = {
        "beam_size": beam_size,
        "hooks": {"logits": barred},
        "interventions": [do.choose(1, 50)],
    }
    with pytest.raises(ValueError, match=r"^Nothing can be written at step 2: .+\.$"):
        translator.translate(TEXT, **options)


def test_a_hook_moves_where_local_attention_looks():
    model = random_recurrent("local")
    ids = (random_ids(1, 9), random_ids(1, 3))
    hooks = Hooks(
        {"centres", "weights"},
        function_edits({CROSS(0, "centres"): lambda v, first: v * 0}, model.config),
    )
    model(*ids, hooks=hooks)
    weights = hooks.values(CROSS(0, "weights"))[0, 0]
    half_width = model.config.reach
    assert (hooks.values(CROSS(0, "centres")) == 0).all()
    assert weights[:, half_width + 1 :].max() == 0
    assert (weights[:, 1 : half_width + 1] > 0).all()
