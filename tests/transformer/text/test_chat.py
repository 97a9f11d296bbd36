"""Chat templates: what real ones write, whose turn each token is, and strangers' programs that
end."""

import time
import tracemalloc
from itertools import groupby
from pathlib import Path

import pytest
from decoder_models import END, TURN, write_decoder, write_vocabulary
from refusals import refused

from transformer import Translator, load_language_model
from transformer.text import chat
from transformer.text.chat import ChatError, Message, render, roles_of

TALK: list[Message] = [
    {"role": "user", "content": "Hi {{ 7 * 7 }}"},
    {"role": "assistant", "content": " Hello "},
    {"role": "user", "content": "And\nnow?"},
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou help.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""As SmolLM2's and Qwen2's."""
INST = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' ~ message['content'] | trim ~ ' [/INST]' }}"
    "{% else %}{{ ' ' + message['content'].strip() + eos_token }}{% endif %}{% endfor %}"
)
"""As Mistral's and Llama 2's."""
HEADERS = (
    "{{- bos_token }}\n{%- if not date_string is defined %}\n"
    "    {%- set date_string = strftime_now('%d %b %Y') %}\n{%- endif %}\n"
    "{%- for message in messages %}\n"
    "    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' }}\n"
    "    {{- message.content | trim + '<|eot_id|>' }}\n{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}\n{%- endif %}\n"
)
"""As Llama 3's."""
RENDERED = {
    CHATML: "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nHi {{ 7 * 7 }}<|im_end|>\n"
    "<|im_start|>assistant\n Hello <|im_end|>\n<|im_start|>user\nAnd\nnow?<|im_end|>\n"
    "<|im_start|>assistant\n",
    INST: "<s>[INST] Hi {{ 7 * 7 }} [/INST] Hello</s>[INST] And\nnow? [/INST]",
    HEADERS: "<s><|start_header_id|>user<|end_header_id|>\n\nHi {{ 7 * 7 }}<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nAnd\nnow?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
}


@pytest.mark.parametrize("template", RENDERED, ids=["ChatML", "INST", "headers"])
def test_a_template_writes_the_text_of_a_conversation(template: str) -> None:
    assert render(template, TALK, TOKENS) == RENDERED[template]


@pytest.mark.parametrize("template", RENDERED, ids=["ChatML", "INST", "headers"])
def test_each_letter_belongs_to_the_turn_in_which_it_stands(template: str) -> None:
    text = RENDERED[template]
    roles = roles_of(template, TALK, TOKENS, text)
    assert len(roles) == len(text)
    turns = [role for role, _ in groupby(roles)]
    answer = ["assistant"] if template != INST else []
    assert turns == ["", "user", "assistant", "user", *answer]
    if "You help" in text:  # the template's own sentence is nobody's turn
        assert roles[text.index("You help")] == ""
    for word, role in (("Hi", "user"), ("Hello", "assistant"), ("now?", "user")):
        assert roles[text.index(word)] == role


APART = {
    "the last turn first": "{% for m in messages | reverse %}{{ m.content }}{% endfor %}",
    "the number of turns": "{{ messages | length }}{% for m in messages %}{{ m.content }}"
    "{% endfor %}",
    "a refusal of part": "{% if messages | length < 3 %}{{ raise_exception('short') }}{% endif %}x",
}


@pytest.mark.parametrize("template", APART.values(), ids=list(APART))
def test_turns_that_cannot_be_told_apart_have_no_role(template: str) -> None:
    text = render(template, TALK, {})
    assert roles_of(template, TALK, {}, text) == [""] * len(text)


DOUBLED = "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(90) %}{% set n.x = n.x OP n.x %}"
LONG = "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(16) %}{% set n.x = n.x ~ n.x %}"
LONG += "{% endfor %}"
NESTED = "{% set n = namespace(x='a') %}{% for i in range(60) %}{% set n.x = MADE %}{% endfor %}"
HOSTILE: dict[str, tuple[str, str]] = {
    "loops in loops": (
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "too long",
    ),
    "a text doubled by ~": (DOUBLED.replace("OP", "~") + "{% endfor %}", "more than"),
    "a text doubled by +": (DOUBLED.replace("OP", "+") + "{% endfor %}", "more than"),
    "a text joined to itself": (LONG + "{{ [n.x, n.x, n.x] | join(n.x) }}", "more than"),
    "a text replaced": (LONG + "{{ n.x | replace('a', 'bbbb') }}", "more than"),
    "a text as JSON": (LONG + "{{ [n.x, n.x, n.x] | tojson }}", "more than"),
    "a text again and again": (LONG + "{% for i in range(9999) %}{{ n.x }}{% endfor %}", "more"),
    "a product": ("{{ 'a' * 10**9 }}", "not computed|for numbers"),
    "a list multiplied": ("{{ ([1] * 999999999) | length }}", "for numbers"),
    "a list doubled": (
        "{% set n = namespace(x=[1]) %}{% for i in range(90) %}{% set n.x = n.x + n.x %}"
        "{% endfor %}",
        "list",
    ),
    "a number squared": (
        "{% set n = namespace(x=9) %}{% for i in range(90) %}{% set n.x = n.x * n.x %}{% endfor %}",
        "number becomes too large",
    ),
    "powers": ("{{ 9 ** 9 ** 9 ** 9 }}", "powers"),
    "a format by %": ("{{ '%999999999s' % 'a' }}", "for numbers"),
    "a format by a method": ("{{ '{:999999999}'.format('a') }}", "format"),
    "a format by a filter": ("{{ '%999999999s' | format('a') }}", "format"),
    "lipsum": ("{{ lipsum(n=100000) }}", "lipsum"),
    "center, a filter": ("{{ 'a' | center(999999999) }}", "center"),
    "center, a method": ("{{ 'a'.center(999999999) }}", "center"),
    "ljust": ("{{ 'a'.ljust(999999999) }}", "ljust"),
    "classes": ("{{ ''.__class__.__mro__ }}", "__class__"),
    "what a function knows": ("{{ cycler.__init__.__globals__ }}", "__init__"),
    "another file": ("{% include '/etc/passwd' %}", "rendered"),
    "a change of the messages": ("{{ messages.append(1) }}", "append"),
    "a macro in itself": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too deep|too long"),
    "a macro that writes for ever": (
        LONG + "{% macro f() %}{% for i in range(9999) %}{{ n.x }}{% endfor %}{% endmacro %}"
        "{{ f() }}",
        "too long",
    ),
    "a macro that keeps what it makes": (
        LONG + "{% macro f() %}{% for i in range(9999) %}{{ n.x ~ i }}{% endfor %}{% endmacro %}"
        "{{ f() }}",
        "more than .* bytes",
    ),
    "slices that are kept": (
        LONG + "".join(f"{{% set a{i} = n.x[{i}:] %}}" for i in range(200)),
        "more than .* bytes",
    ),
    "methods that are called again and again": (
        LONG + "{% for i in range(9999) %}{% if n.x.count('aab') %}{% endif %}{% endfor %}",
        "more than .* bytes",
    ),
    "lists in lists as JSON": (
        NESTED.replace("MADE", "[n.x, n.x]") + "{{ n.x | tojson }}",
        "too long",
    ),
    "tables in tables": (NESTED.replace("MADE", "{1: n.x, 2: n.x}"), "too long"),
    "pairs of pairs as a key": (
        NESTED.replace("MADE", "(n.x, n.x)") + "{{ {n.x: 1} }}",
        "too long",
    ),
    "tables by a function": (NESTED.replace("MADE", "dict(a=n.x, b=n.x)"), "too long"),
    "what could be computed before": (
        "{% set x = 'aaaaaaaa'" + " | replace('a', 'aaaaaaaa')" * 9 + " %}",
        "more than",
    ),
    "loops that Python cannot hold": ("{% for a in 'a' %}" * 25 + "{% endfor %}" * 25, "too deep"),
    "brackets in brackets": ("{{ " + "(" * 9999 + ")" * 9999 + " }}", "too deep|rendered"),
    "a block that writes for ever": (
        LONG + "{% set y %}{% for i in range(9999) %}{{ n.x }}{% endfor %}{% endset %}{{ y }}",
        "too long",
    ),
    "a list printed": (LONG + "{{ [n.x, n.x] }}", "list is no text"),
    "a long range": ("{{ range(10**8) | list | length }}", "rendered"),
    "division by zero": ("{{ 1 / 0 }}", "zero"),
    "a name of nothing": ("{{ nope.x.y }}", "nope"),
    "no template": ("{% for c in 'x' %}", "rendered"),
    "a refusal": ("{{ raise_exception('no system here') }}", "refuses.*no system here"),
    "too long": ("x" * (chat.MOST_TEMPLATE + 1), "too long"),
    "absent": ("", "bring no chat template"),
}


@pytest.mark.parametrize(("template", "words"), HOSTILE.values(), ids=list(HOSTILE))
def test_a_stranger_s_program_ends_in_a_sentence(template: str, words: str) -> None:
    tracemalloc.start()
    begun = time.monotonic()
    try:
        with refused(ChatError, words):
            render(template, TALK, TOKENS)
        (_, most) = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.monotonic() - begun < 20
    assert most < 64 * 2**20


NONE: dict[str, list[object]] = {
    "nothing": [],
    "too many": [TALK[0]] * (chat.MOST_MESSAGES + 1),
    "a text": ["Hi"],
    "no role": [{"content": "Hi"}],
    "a content that is a list": [{"role": "user", "content": [{"type": "text"}]}],
}


@pytest.mark.parametrize("messages", NONE.values(), ids=list(NONE))
def test_what_is_no_conversation_is_refused(messages: list[Message]) -> None:
    with refused(ChatError, "1 to 256 messages|both texts"):
        render(CHATML, messages, TOKENS)


# --- a model answers -----------------------------------------------------------------------------

TURNS = (
    "{{ bos_token }}{% for message in messages %}"
    f"{{{{ '{TURN}' + message.role + '\n' + message.content + '{END}' }}}}"
    f"{{% endfor %}}{{% if add_generation_prompt %}}{{{{ '{TURN}assistant\n' }}}}{{% endif %}}"
)


def opened(directory: Path, template: str, **settings: object) -> Translator:
    write_decoder(directory, "Llama, groups of three", vocabulary=False)
    if template:
        settings["chat_template"] = template
    write_vocabulary(directory, **settings)
    return load_language_model(directory, "cpu")


def test_an_answer_s_tokens_have_roles_and_an_end_within_the_prompt_ends_nothing(
    tmp_path: Path,
) -> None:
    ours = opened(tmp_path, TURNS.replace("{{ bos_token }}", ""))
    assert not ours.config.starts_with_token
    run = ours.generate(chat=TALK, max_length=120)
    read = run.decoder_input_tokens
    assert len(run.roles) == len(read)
    assert [role for role, _ in groupby(run.roles)] == ["user", "assistant", "user", "assistant"]
    prompt = ours.prompted(TALK)
    assert run.prompt == prompt
    ids = ours.ids(prompt)
    assert (run.start_id, *run.target_ids[: run.n_given]) == ids
    assert ids.count(ours.config.eos_id) == len(TALK)
    assert len(run.target_ids) > run.n_given
    assert run.audit().passed
    same = ours.generate(prompt, max_length=120)
    assert (same.target_ids, same.roles) == (run.target_ids, ())


def test_a_start_token_is_read_once(tmp_path: Path) -> None:
    ours = opened(tmp_path, TURNS, bos_token=END, add_bos_token=True)
    assert ours.config.starts_with_token
    run = ours.generate(chat=TALK[:1], max_length=60)
    ids = (run.start_id, *run.target_ids[: run.n_given])
    assert ids[0] == ours.config.bos_id
    assert ids[1] == ours.token_id(TURN)
    assert run.roles[0] == ""
    assert [role for role, _ in groupby(run.roles[1:])] == ["user", "assistant"]


def test_a_model_without_a_template_says_so(tmp_path: Path) -> None:
    with refused(ChatError, "bring no chat template"):
        opened(tmp_path, "").generate(chat=TALK)
