"""What is shown, as Python: the calls of the package that compute it."""

from __future__ import annotations

from explorer.app.address.kinds import BEAM, SAMPLE
from explorer.app.maps.looking import HeadSelection
from explorer.app.server import catalogue
from transformer.interventions import write_text


def calls(look: HeadSelection) -> str:
    """A few lines that translate in the same way and give the same head."""
    asked, (layer, head) = look.opened.request, look.head
    given, names = [repr(asked.text)], ["load_translator"]
    if asked.target is not None:
        given.append(repr(asked.target))
    if asked.decode.startswith(BEAM):
        given.append(f"beam_size={asked.decode.removeprefix(BEAM)}")
    if asked.decode.startswith(SAMPLE):
        names.insert(0, "Sampling")
        given.append(f"sample={asked.drawing.sampling(int(asked.decode.removeprefix(SAMPLE)))}")
    read = ""
    if asked.changes:
        read = "from transformer.interventions import read_text\n"
        given.append(f"interventions=read_text({write_text(asked.changes)!r})")
    path = asked.source.path
    if path is not None and path.is_relative_to(catalogue.ROOT):
        path = path.relative_to(catalogue.ROOT)
    place = asked.model if path is None else str(path)
    call = "translate" if asked.target is None else "force"
    return (
        f"from transformer import {', '.join(names)}\n{read}\n"
        f"t = load_translator({place!r}).{call}({', '.join(given)})\n"
        f'view = t.head("{look.kind}", layer={layer}, head={head})  # both from 0\n'
        "print(t.text, view.weights, view.audit.passed)"
    )
