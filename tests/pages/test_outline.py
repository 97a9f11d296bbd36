"""What every page says and draws, as it was last agreed on, in words, controls, tables and
figures."""

from pathlib import Path

import pytest
from app_pages import visit
from outline import agrees, outline

from explorer.app.maps.run_export import KEY
from explorer.app.server import models, stores, surveys

FILE = Path(__file__).with_name("outline.txt")
SAMPLE = surveys.sample
SMALL = {"model": "random", "text": "one two three four", "step": "3", "source": "2"}
LARGE = {"text": "The old dog sleeps."}
"""What stands in an address too: without a model of its own, and with one."""
ADDRESSES = """
app
app?decode=beam-3&measure=effect&changes=choose_1_▁drei
app?decode=sample-3&temperature=1.4&top_k=3&words=yes
app?model=en-de&lesson=map.2
encoder_self_attention?show=strongest&encoder=2.3
decoder_self_attention?hide=special&scale=sqrt&rows=read
decoder_self_attention?model=en-pt&view=trained
cross_attention?show=lines&cross=1.1&more=1.2_2.1&color=aer&order=aer
cross_attention?model=recurrent/additive#export
cross_attention?model=en-de&view=alignment&pairs=1-1,3-3
cross_attention?view=alignment&pairs=1-1,2p2&rule=mutual
inside_a_head?section=sum&cross=1.2&what_if=no-scale
inside_a_head?model=en-de&section=weights&kind=decoder&step=3&notation=lecture
inside_a_head?model=positions/alibi&section=weights&kind=encoder
inside_a_head?section=path&kind=encoder&encoder=1.2
inside_a_head?section=heads&cross=1.2
inside_a_head?section=build&two=1.3&a=6&b=-5&length=3
whole_model?part=decoder-forward&layer=3
whole_model?model=en-de&part=output&step=2
masks?mask=after
masks?view=batch&sentences=one two%0Anine ten eight six five&kind=cross
beam_search?decode=beam-3&penalty=0.4&length_offset=5&node=7
beam_search?view=sampling&draws=2&top_k=1
what_if?model=en-de
what_if?changes=ablate_cross_1_1_zero~hide_1
what_if?view=compare&against=head-1.2&cross=1.1
what_if?model=en-de&view=compare&against=model-en-pt&kind=encoder
explanation?kind=cross&cross=2.3
explanation?view=why
explanation?view=shares
positions?d_model=12&base=100&offset=5
positions?view=sentence&twin_head=2.3&swap=1.3
positions?view=together&encoding=sinusoidal&word=one
training?target=eins drei zwei
training?view=loss&smoothing=0.2
training?model=en-de&view=schedule
training?model=en-de&view=history
training?view=here
app?model=language/lm-en&text=The old&step=3
training?model=language/writer&view=surprisal&text=one two two
training?model=language/writer&view=lengths&text=one two
recurrent?model=recurrent/additive
recurrent?model=recurrent/local&view=path&source=2
heads?model=en-de&kind=cross&cross=3.4&facet=tokens
heads?model=en-pt&kind=decoder&facet=points
heads?model=en-de&kind=encoder&facet=distances&statistic=entropy
findings
glossary
lessons
open_file
"""
"""Every view of every page, with models that differ; one with its folded export open."""


@pytest.fixture(autouse=True, scope="module")
def unknown_models() -> None:
    """Nothing is known of a model yet, and no run is proved: other tests read some with examples of
    their own."""
    for name in models.available():
        for store in list(stores._stores):
            store.drop(name)
    models._handle.cache_clear()


@pytest.mark.parametrize("address", ADDRESSES.split("\n")[1:-1])
def test_a_page_says_and_draws_what_was_agreed(address: str, monkeypatch: pytest.MonkeyPatch):
    place, _, folded = address.partition("#")
    if place.startswith("heads"):  # the survey that came with the model
        monkeypatch.setattr(surveys, "sample", SAMPLE)
        models._handle.cache_clear()
    at = visit(place, **(LARGE if "?model=" in place else SMALL))
    if folded:
        at.session_state[KEY] = True
        at.run()
    agrees(FILE, address, outline(at, menu=address == "app"))
