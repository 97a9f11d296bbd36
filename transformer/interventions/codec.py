"""Changes as compact text, for people and addresses, and as JSON, for programs.

JSON counts from 0: ``{"do": "ablate", "kind": "cross", "layer": 1, "head": [5], …}``; text from 1:
``ablate_cross_2_6_mean~choose_4_▁ist``. It leaves out the last fields if they are as usual. ``~``
separates changes, ``_`` fields; how a field is written stands with its form (``fields``).
"""

from collections.abc import Iterable, Mapping

from transformer.interventions.base import Intervention, InterventionError, attempt, exact
from transformer.interventions.fields import Raw, join, split

MOST_CHANGES = 64
"""Most changes of a run."""
LONGEST = 20_000
"""Most characters of a text."""


def change_of(value: Raw) -> Intervention:
    """A change as it is, or from its JSON or compact text; one of ``DAMAGES`` if it means
    nothing."""
    if isinstance(value, Intervention):
        return value
    if isinstance(value, str):
        return _from_text(value)
    return _from_json(value)


def _from_text(text: str) -> Intervention:
    name, *texts = split("_", text)
    kind = Intervention.known[name]
    forms = list(kind.forms().items())[: len(texts)]
    values = {field: form.read(value) for (field, form), value in zip(forms, texts, strict=True)}
    return exact(kind, **values)


def _from_json(values: Mapping[str, Raw]) -> Intervention:
    kind = Intervention.known[values["do"]]
    return exact(kind, **{field: value for field, value in values.items() if field != "do"})


def write_text(changes: Iterable[Intervention]) -> str:
    """Interventions as compact text; empty without any."""
    return "~".join(map(_as_text, changes))


def _as_text(change: Intervention) -> str:
    values = change.values()
    while values:
        name, _, value = values[-1]
        if value != getattr(type(change), name, ...):  # its default, if it has one
            break
        values.pop()
    return join("_", [change.name, *(form.write(value) for _, form, value in values)])


def to_json(value: Raw) -> Raw:
    """Interventions, or what they hold, as JSON values."""
    if isinstance(value, Intervention):
        fields = {name: to_json(content) for name, _, content in value.values()}
        return {"do": value.name} | fields
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Iterable):
        return [to_json(member) for member in value]
    return value


def as_interventions(values: Raw) -> tuple[Intervention, ...]:
    """Changes as they are, from their JSON or from compact text.

    InterventionError if something else is among them, or too much.
    """
    if isinstance(values, str):
        return _all(_texts(values))
    return _all((values,) if isinstance(values, Intervention) else values)


read_text = from_json = as_interventions


def _texts(text: str) -> list[str]:
    if len(text) > LONGEST:
        raise InterventionError(f"The changes take more than {LONGEST:,} characters.")
    return text.split("~") if text else []


def _all(values: Raw) -> tuple[Intervention, ...]:
    changes = attempt(tuple, values, "The changes {} cannot be read.")
    if len(changes) > MOST_CHANGES:
        raise InterventionError(
            f"A run takes at most {MOST_CHANGES} changes; there are {len(changes)}."
        )
    return tuple(attempt(change_of, value, "The change {} cannot be read.") for value in changes)
