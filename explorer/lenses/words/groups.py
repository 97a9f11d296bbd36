"""Pieces as words for reading, whatever the script; a word among pieces; function words. No PyTorch."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from transformer.text.words import (
    SPACE,
    Group,
    character_groups,
    groups_at,
    is_punctuation,
    is_special,
    spelled,
    unknown_text,
    word_groups,
)

_UNSPACED = re.compile(
    "CJK|HIRAGANA|KATAKANA|HALFWIDTH KATAKANA|IDEOGRAPHIC|BOPOMOFO|THAI|LAO |KHMER|MYANMAR|TIBETAN"
)
"""How names of characters begin in scripts without spaces between words."""
_JOINER = "\u200d"


def reading_groups(pieces: Sequence[str]) -> tuple[Group, ...]:
    """``word_groups`` for reading: punctuation is apart, and scripts without spaces keep their pieces."""
    starts = list[int]()
    for word in word_groups(pieces):
        units = _drawn_characters(pieces[word.start : word.stop])
        inner = [i for i, unit in enumerate(units) if not is_punctuation(unit.text)] or [len(units)]
        starts += [
            word.start + unit.start
            for i, unit in enumerate(units)
            if i <= inner[0] or i > inner[-1] or _unspaced(unit.text[0]) or _unspaced(units[i - 1].text[-1])
        ]
    return groups_at(pieces, starts)


def _drawn_characters(word: Sequence[str]) -> list[Group]:
    """The characters of a word; marks, joined emoji, their tones and a lone `▁` join what they belong to."""
    units: list[Group] = []
    for unit in character_groups(word):
        first = unit.text[0]
        tone, mark = "\U0001f3fb" <= first <= "\U0001f3ff", unicodedata.category(first).startswith("M")
        waits = units and (units[-1].text.endswith(_JOINER) or "".join(word[: unit.start]) == SPACE)
        if waits or (units and (mark or tone or first == _JOINER)):
            start = units.pop().start
            units.append(Group(start, unit.stop, spelled(word[start : unit.stop])))
        else:
            units.append(unit)
    return units


def _unspaced(character: str) -> bool:
    return _UNSPACED.match(unicodedata.name(character, "")) is not None


def find_word(pieces: Sequence[str], word: str) -> tuple[int, int] | None:
    """First and last position of a whole word in a sequence of pieces; None if the word does not occur."""
    for first in range(len(pieces)):
        text = ""
        for last, piece in enumerate(pieces[first:], first):
            if last > first and piece.startswith(SPACE):
                break
            text += unknown_text(piece) or piece.removeprefix(SPACE)
            follows = "".join(pieces[last + 1 : last + 2])
            if text == word and not follows[:1].isalnum():
                return first, last
    return None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH = _words(
    """
    a an the this that these those some any no every each either neither both all another such i me
    my mine myself you your yours yourself yourselves he him his himself she her hers herself it its
    itself we us our ours ourselves they them their theirs themselves one ones who whom whose which
    what whatever someone somebody something anyone anybody anything everyone everybody everything
    nobody nothing none there here where when why how of in to for with on at from by about as into
    like through after over between out against during without before under around among above below
    across behind near off up down since until till upon within along toward towards onto beside
    besides despite per than and or but nor so yet if because although though while whereas unless
    whether be am is are was were been being have has had having do does did doing done will would
    shall should can could may might must ought cannot not n't too very just only also even ever
    never then now again still already i'm i've i'll i'd you're you've you'll you'd he's he'll he'd
    she's she'll she'd it's it'll it'd we're we've we'll we'd they're they've they'll they'd that's
    that'll there's here's what's who's where's how's let's don't doesn't didn't won't wouldn't
    can't couldn't shouldn't isn't aren't wasn't weren't haven't hasn't hadn't mustn't needn't
    shan't mightn't ain't s t re ve ll d m
    """
)
GERMAN = _words(
    """
    der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines
    dieser diese dieses diesen diesem jener jene jenes jenen jenem jeder jede jedes jeden jedem alle
    allen aller alles manche manchen mancher beide beiden solche solcher solchen welcher welche
    welches welchen welchem ich mich mir mein meine meinen meinem meiner meines du dich dir dein
    deine deinen deinem deiner deines er ihn ihm sein seine seinen seinem seiner seines sie ihr ihre
    ihren ihrem ihrer ihres es wir uns unser unsere unseren unserem unserer unseres euch euer eure
    euren eurem eurer ihnen sich man selbst einander wer wen wem wessen was wo wann warum wie wohin
    woher wozu worauf woran wovon wofür worüber weshalb wieso jemand jemanden jemandem niemand
    niemanden niemandem etwas nichts da hier dort dahin hin her in im ins an am ans auf aus bei beim
    mit nach von vom zu zum zur für über unter vor hinter neben zwischen durch gegen ohne um bis
    seit während wegen trotz ab außer gegenüber als statt und oder aber denn sondern dass daß ob
    wenn weil obwohl damit bevor nachdem sobald solange falls sowie bin bist ist sind seid war warst
    waren wart gewesen sei wäre wären wärst sein habe hast hat haben habt hatte hattest hatten hätte
    hätten hättest gehabt werde wirst wird werden werdet wurde wurden würde würden würdest worden
    geworden kann kannst können könnt konnte konnten könnte könnten könntest muss muß musst müssen
    müsst musste mussten müsste müssten soll sollst sollen sollte sollten solltest will willst
    wollen wollt wollte wollten möchte möchten möchtest mag mögen darf darfst dürfen durfte dürfte
    nicht auch nur noch schon sehr so dann nun jetzt doch mal ja wohl eben immer nie niemals wieder
    mehr zu dazu daran darauf davon dafür darüber darum damit dabei daraus dagegen darin
    """
)
FRENCH = _words(
    """
    le la les l un une des du de d au aux ce cet cette ces mon ma mes ton ta tes son sa ses notre
    nos votre vos leur leurs aucun aucune chaque quelque quelques tout toute tous toutes quel quelle
    quels quelles je j me m moi tu te t toi il elle on nous vous ils elles se s lui eux y en qui que
    qu quoi dont où lequel laquelle lesquels lesquelles ceci cela ça c celui celle ceux celles rien
    personne quelqu'un à dans par pour sur avec sans sous entre vers chez depuis pendant avant après
    contre comme jusque jusqu et ou mais donc or ni car si quand lorsque puisque parce quoique afin
    suis es est sommes êtes sont étais était étions étiez étaient été être sera serai seras serons
    serez seront serait seraient ai as a avons avez ont avais avait avions aviez avaient eu avoir
    aura aurai auras aurons aurez auront aurait auraient fut furent soit sois soient ne n pas plus
    jamais très trop aussi bien encore déjà ici là alors même peu
    """
)
SOURCE_LANGUAGES = ENGLISH
TARGET_LANGUAGES = GERMAN | FRENCH
"""The project's models translate from English; few German and French words collide."""


SPECIAL, MARK, FUNCTION, CONTENT = range(4)
"""The sorts of a word: special token, punctuation or symbol, function word, content word."""


@lru_cache(4096)
def sort_of(word: str, function_words: frozenset[str]) -> int:
    """The sort of a word: one of ``SPECIAL``, ``MARK``, ``FUNCTION``, ``CONTENT``."""
    if is_special(word):
        return SPECIAL
    if not any(map(str.isalnum, word)):
        return MARK
    return FUNCTION if word.replace("’", "'").lower() in function_words else CONTENT
