from __future__ import annotations

import json

import pytest
import torch
from firefox_files import CONFIG, write_firefox
from torch.nn import functional as F

from transformer.__main__ import main
from transformer.families.firefox.model import load_firefox
from transformer.model.transformer import Transformer
from transformer.storage.directory import load_checkpoint
from transformer.text.pairs import SentencePair
from transformer.training.loss import ROWS_AT_ONCE, taught_loss
from transformer.training.objective import TaughtLoss
from transformer.training.runs.distilled import begin, faithful, learning_rates, student_config


@pytest.fixture(scope="module")
def teacher() -> Transformer:
    torch.manual_seed(3)
    return Transformer(CONFIG).eval()


def test_a_student_begins_with_what_the_teacher_has(teacher):
    student = Transformer(student_config(teacher.config, 4))
    taken = begin(student, teacher)
    own, given = student.state_dict(), teacher.state_dict()
    for part in ("cross_attention.q_proj.weight", "feed_forward.outer.bias"):
        for layer, source in ((0, 0), (3, 1)):
            assert own[f"decoder.layers.{layer}.{part}"].equal(given[f"decoder.layers.{source}.{part}"])
    assert own["embedding.weight"].equal(given["embedding.weight"])
    assert "decoder.layers.0.self_attention.q_proj.weight" not in taken
    rates = learning_rates(own, taken, ("encoder", "embedding"), 0.2)
    assert rates["encoder.layers.0.feed_forward.inner.weight"] == rates["embedding.weight"] == 0
    assert rates["decoder.layers.3.feed_forward.inner.weight"] == 0.2
    assert rates["decoder.layers.1.feed_forward.inner.weight"] == 1


@pytest.mark.parametrize("unit", ["self_attention", "ssru"])
def test_a_fresh_decoder_has_nothing_of_the_teacher_s(teacher, unit):
    student = Transformer(student_config(teacher.config, 2, unit))
    before = {name: weight.clone() for name, weight in student.state_dict().items()}
    taken = begin(student, teacher, fresh=True)
    assert not [name for name in taken if name.startswith("decoder.layers")]
    for name, weight in student.state_dict().items():
        expected = teacher.state_dict()[name] if name in taken else before[name]
        assert weight.equal(expected), name


@pytest.mark.parametrize("rows", [5, ROWS_AT_ONCE[False] + 3])
def test_the_loss_against_a_teacher_s_distributions_and_its_gradient(rows):
    torch.manual_seed(0)
    features, taught = torch.randn(rows, 8, requires_grad=True), torch.randn(rows, 8)
    weight, bias = torch.randn(11, 8), torch.randn(11)
    loss = taught_loss(features, taught, weight, bias)
    (gradient,) = torch.autograd.grad(loss, features)
    logits, wanted = (each @ weight.t() + bias for each in (features, taught))
    expected = F.cross_entropy(logits, wanted.softmax(1), reduction="sum")
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, features)[0])


def test_a_teacher_is_its_own_best_student(teacher):
    ids, begun, wanted = torch.tensor([[5, 7, 0]]), torch.tensor([[CONFIG.bos_id, 9]]), torch.tensor([[9, 0]])
    probability = teacher(ids, begun).softmax(-1)
    entropy = -(probability * probability.log()).sum()
    loss = TaughtLoss(teacher, teacher, torch.float32)(ids, begun, wanted)
    torch.testing.assert_close(loss, entropy)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("The old house is green.", "The old house is green."),
        ("Yes.", "Sim, sim, sim, é claro que sim, meu velho amigo."),
        ("I have 3 cats.", "Tenho 4 gatos."),
        ("It is good.", "É bom bom bom sempre."),
    ],
)
def test_what_cannot_be_a_translation_is_left_out(source, target):
    kept = SentencePair("The cat has 1,000.5 friends.", "O gato tem 1.000,5 amigos.")
    assert list(faithful([SentencePair(source, target), kept])) == [kept]


@pytest.mark.parametrize(
    ("targets", "unit", "more"),
    [
        ("text", "self_attention", []),
        ("distributions", "self_attention", []),
        ("text", "ssru", ["--fresh-decoder"]),
    ],
)
def test_a_run_learns_resumes_and_keeps_what_is_frozen(tmp_path, teacher, targets, unit, more):
    folder = write_firefox(tmp_path / "teacher", teacher)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("the old house\ta casa velha\tx\nwe often see\tnós vemos muitas\tx\n" * 10, "utf-8")
    command = [
        "distil",
        "--teacher",
        folder,
        "--train",
        pairs,
        "--valid",
        pairs,
        "--output",
        tmp_path / "run",
    ]
    command += [
        "--decoder-unit",
        unit,
        *more,
        "--n-decoder-layers",
        3,
        "--targets",
        targets,
        "--batch-positions",
        60,
        "--warmup",
        2,
    ]
    command += ["--schedule", "constant", "--decay-steps", 1, "--checkpoint-every", 6, "--bleu-sentences", 2]
    for steps in (6, 30):
        until = ["--steps", steps, "--resume-if-present", "--evaluate-every", 6]
        assert main([str(each) for each in command + until]) == 0
    log = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text("utf-8").splitlines()]
    assert [line["step"] for line in log if "loss" in line] == list(range(1, 31))
    losses = [line["loss"] for line in log if "loss" in line]
    assert sum(losses[-5:]) < sum(losses[:5])
    own = load_firefox(folder).model
    found = load_checkpoint(tmp_path / "run").model
    for name, tensor in found.encoder.state_dict().items():
        torch.testing.assert_close(tensor, own.encoder.state_dict()[name], atol=1e-3, rtol=1e-3)
    assert found.config.decoder_unit == unit


def test_distributions_need_a_shared_projection(tmp_path, teacher, capsys):
    folder = write_firefox(tmp_path / "teacher", teacher)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("the old house\ta casa velha\n", "utf-8")
    command = [
        "distil",
        "--teacher",
        folder,
        "--train",
        pairs,
        "--valid",
        pairs,
        "--output",
        tmp_path / "run",
    ]
    command += ["--targets", "distributions", "--frozen", "encoder"]
    assert main([str(each) for each in command])
    assert "--frozen encoder,embedding,output_bias" in capsys.readouterr().err
