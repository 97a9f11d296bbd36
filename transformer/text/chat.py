"""A conversation as the text that a model was trained on, by the template that its files bring.

A template is a stranger's program. It runs in jinja2's sandbox with few methods and filters, and
ends with a sentence if it runs too long, writes too much or makes too much.
"""

from __future__ import annotations

import datetime
import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypedDict

from jinja2 import TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_context
from jinja2.visitor import NodeTransformer

MOST_TEMPLATE = 2**16
MOST_MESSAGES = 256
MOST_TEXT = 2**20
"""Characters that a template may write, or hold in one text."""
MOST_LINES = 500_000
"""Lines of the program into which jinja2 turns a template that may run."""
MOST_NUMBER = 2**53
"""Largest number with which a template computes."""
MOST_BYTES = 2**26
"""Bytes of all texts and lists that a template may make, kept or not."""
_METHODS = frozenset(
    {"strip", "lstrip", "rstrip", "split", "rsplit", "startswith", "endswith", "upper", "lower"}
    | {"title", "capitalize", "find", "rfind", "index", "count", "removeprefix", "removesuffix"}
    | {"isdigit", "isspace"}
)
"""Methods of a text that cannot make much of little."""
_FILTERS = frozenset(
    {"capitalize", "default", "d", "first", "float", "int", "items", "last", "length", "count"}
    | {"list", "lower", "map", "reject", "rejectattr", "reverse", "safe", "select", "selectattr"}
    | {"title", "trim", "unique", "upper", "dictsort", "sort", "e"}
)
"""Filters of jinja2 that cannot either."""


class Message(TypedDict):
    """A turn of a conversation."""

    role: str  # "system", "user" or "assistant", or what else the template knows
    content: str


class ChatError(ValueError):
    """A conversation cannot be rendered; the message says why in one sentence."""


class _Stopped(BaseException):
    """A template ran too long; no ``except Exception`` on the way keeps it."""


def render(
    template: str, messages: Sequence[Message], tokens: Mapping[str, str], *, begins: bool = True
) -> str:
    """The text of a conversation, by default with what begins the answer.

    ``tokens`` has the special tokens by the names that templates use, such as ``bos_token``.
    ChatError if there is no template, a message is none, or the template fails.
    """
    if not template:
        raise ChatError("This model's files bring no chat template; type the text as it is to be.")
    if len(template) > MOST_TEMPLATE:
        raise ChatError(f"The chat template has {len(template):,} characters, which is too long.")
    _check(messages)
    environment = _Sandbox()
    try:
        parsed = environment.parse(template)
        program = environment.from_string(_Joined().visit(parsed))
        with _bounded():
            pieces = program.generate(
                messages=[dict(message) for message in messages],
                add_generation_prompt=begins,
                raise_exception=_refuse,
                strftime_now=lambda form: datetime.datetime.now().strftime(form),
                tools=None,
                documents=None,
                **tokens,
            )
            return _concatenated(pieces)
    except ChatError:
        raise
    except (TemplateError, SecurityError) as error:
        raise ChatError(f"The chat template cannot be rendered: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ChatError(f"The chat template cannot be rendered: {error}") from error
    except _Stopped as error:
        raise ChatError("The chat template runs too long.") from error
    except (RecursionError, MemoryError, SyntaxError) as error:
        raise ChatError("The chat template goes too deep or holds too much.") from error


def roles_of(
    template: str, messages: Sequence[Message], tokens: Mapping[str, str], text: str
) -> list[str]:
    """For each character of a rendered text, whose turn it belongs to; "assistant" for what begins
    the answer, and "" for what the template says itself, or where turns cannot be told apart."""
    roles = [""] * _before_turns(template, messages[0], tokens)
    for count, message in enumerate(messages, start=1):
        try:
            until = render(template, messages[:count], tokens, begins=False)
        except ChatError:
            return [""] * len(text)
        if not text.startswith(until) or len(until) < len(roles):
            return [""] * len(text)
        roles += [message["role"]] * (len(until) - len(roles))
    return roles + ["assistant"] * (len(text) - len(roles))


def _before_turns(template: str, first: Message, tokens: Mapping[str, str]) -> int:
    """Number of characters that a template writes before the first turn by itself.

    A turn that is said again later stands there without them.
    """
    talk: list[Message] = [first, {"role": "assistant", "content": "x"}]
    try:
        alone, before, after = (
            render(template, turns, tokens, begins=False)
            for turns in ([first], talk, [*talk, first])
        )
    except ChatError:
        return 0
    again = after.removeprefix(before)
    return len(alone) - len(again) if alone.endswith(again) else 0


def _check(messages: Sequence[Message]) -> None:
    if not messages or len(messages) > MOST_MESSAGES:
        raise ChatError(f"A conversation has 1 to {MOST_MESSAGES} messages.")
    for message in messages:
        texts = isinstance(message, Mapping) and [message.get("role"), message.get("content")]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise ChatError('A message is {"role": …, "content": …}, both texts.')


def _refuse(reason: str) -> None:
    """What a template calls that refuses a conversation."""
    raise ChatError(f"The chat template refuses this conversation: {reason!s:.200}")


class _Sandbox(ImmutableSandboxedEnvironment):
    """jinja2's sandbox, in which no text grows beyond ``MOST_TEXT``, and all that is made has
    ``MOST_BYTES`` together."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self) -> None:
        # nothing is computed before the template runs, where no bound would hold
        super().__init__(trim_blocks=True, lstrip_blocks=True, optimized=False, finalize=_printed)
        self.left = MOST_BYTES
        del self.globals["lipsum"]
        filters = {name: self.filters[name] for name in _FILTERS}
        filters |= {
            "join": _join,
            "replace": _replaced,
            "tojson": _to_json,
            "indent": _indented,
            "string": lambda value: str(_plain(value)),
            _MADE: lambda value: value,
            _SLICED: lambda value, *bounds: value[slice(*bounds)],
        }
        self.filters = {name: self._counting(compute) for name, compute in filters.items()}

    def _counting(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compute)
        def counting(*arguments: Any, **options: Any) -> Any:
            return self.counted(compute(*arguments, **options))

        return counting

    def counted(self, value: Any) -> Any:
        """A value that a template has made; ChatError if it has made too much by now."""
        parts = [value]
        while parts:
            part = parts.pop()
            self.left -= sys.getsizeof(part)
            if self.left < 0:
                raise ChatError(
                    f"The chat template makes more than {MOST_BYTES:,} bytes of texts and lists."
                )
            if isinstance(part, list | tuple):
                parts.extend(part)
            elif isinstance(part, dict):
                parts.extend(part.values())
        return value

    def call(self, context: Context, function: Any, /, *arguments: Any, **options: Any) -> Any:
        """What a function or method returns, which counts together with what it reads."""
        self.counted([getattr(function, "__self__", None), *arguments, *options.values()])
        return self.counted(super().call(context, function, *arguments, **options))

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        """What a macro or a block has written, as one text."""
        return _concatenated(pieces)

    def wrap_str_format(self, value: object) -> None:
        """No formats, in which a few characters ask for a thousand million."""
        if getattr(value, "__name__", "") in ("format", "format_map"):
            raise SecurityError("formats are not filled here")
        return

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        """Of a text, only the methods that cannot make much of little."""
        safe = super().is_safe_attribute(obj, attr, value)
        return safe and (attr in _METHODS or not isinstance(obj, str))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """A sum of texts if it is short; a product of numbers only."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator != "+" and not numbers:
            raise SecurityError(f"{operator} is for numbers here")
        if numbers and max(abs(left), abs(right)) > MOST_NUMBER:
            raise SecurityError("the number becomes too large")
        if operator == "**":
            raise SecurityError("powers are not computed here")
        if isinstance(left, str) and isinstance(right, str):
            return self.counted(_concatenated([left, right]))
        lists = isinstance(left, list) and isinstance(right, list)
        if lists and len(left) + len(right) > MOST_MESSAGES:
            raise SecurityError("the list becomes too long")
        return self.counted(super().call_binop(context, operator, left, right))


_MADE, _SLICED = " made", " sliced"
"""Filters that no template can name."""


class _Joined(NodeTransformer):
    """Turns what makes a text or a list into filters, which know how long it becomes."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802  # jinja2's name
        """A filter in the place of the operator ``~``."""
        texts = [self.visit(part) for part in node.nodes]
        return _filtered("join", nodes.List(texts), node.lineno)

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
        """A filter around a list."""
        return _filtered(_MADE, self.generic_visit(node), node.lineno)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
        """A filter around a table."""
        return _filtered(_MADE, self.generic_visit(node), node.lineno)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        """A filter around a tuple that is read, not written to."""
        self.generic_visit(node)
        return _filtered(_MADE, node, node.lineno) if node.ctx == "load" else node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        """A filter in the place of a slice."""
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = [node.arg.start, node.arg.stop, node.arg.step]
        written = [bound or nodes.Const(None) for bound in bounds]
        return _filtered(_SLICED, node.node, node.lineno, written)


def _filtered(
    name: str, node: nodes.Node, line: int, arguments: Sequence[nodes.Expr] = ()
) -> nodes.Node:
    return nodes.Filter(node, name, list(arguments), [], None, None, lineno=line)


@pass_context
def _printed(context: Context, value: Any) -> Any:
    """What is printed of a value; asks for the context, so that nothing is printed too early."""
    return _plain(value)


def _plain(value: Any) -> Any:
    """A text or a number; SecurityError for a list or a table, whose spelling may be long."""
    if value is None or isinstance(value, str | int | float | Undefined):
        return value
    raise SecurityError(f"a {type(value).__name__} is no text")


def _concatenated(texts: Iterable[str]) -> str:
    """Texts as one; ChatError if it is too long."""
    parts = list[str]()
    length = 0
    for text in texts:
        length += len(text)
        if length > MOST_TEXT:
            raise ChatError(
                f"The chat template makes a text of more than {MOST_TEXT:,} characters."
            )
        parts.append(text)
    return "".join(parts)


def _join(values: Iterable[Any], between: str = "", attribute: str | None = None) -> str:
    texts = list[str]()
    for value in values:
        if attribute is not None:
            value = value[attribute]
        text = str(_plain(value))
        texts += [between, text] if texts else [text]
    return _concatenated(texts)


def _replaced(text: str, old: str, new: str, count: int | None = None) -> str:
    places = str(text).count(old)
    if len(str(text)) + places * len(new) > MOST_TEXT:
        raise ChatError(f"The chat template makes a text of more than {MOST_TEXT:,} characters.")
    return str(text).replace(old, new, -1 if count is None else count)


def _to_json(value: Any, indent: int | None = None) -> str:
    encoder = json.JSONEncoder(ensure_ascii=False, indent=min(indent or 0, 8) or None)
    return _concatenated(encoder.iterencode(value))  # in Python, part by part


def _indented(text: str, width: int = 4, first: bool = False) -> str:
    lines = str(text).split("\n")
    spaces = " " * min(max(width, 0), 16)
    indented = [line and spaces + line for line in lines[1:]]
    begun = spaces + lines[0] if first else lines[0]
    return _concatenated(["\n".join([begun, *indented])])


@contextmanager
def _bounded() -> Iterator[None]:
    """Ends what runs inside with _Stopped after ``MOST_LINES`` lines."""
    left = MOST_LINES
    before = sys.gettrace()

    def step(frame: FrameType, event: str, value: object) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _Stopped
        return step

    sys.settrace(step)
    try:
        yield
    finally:
        sys.settrace(before)
