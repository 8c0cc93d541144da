"""Common names of the columns that hold the features of rows, and names of languages."""

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping


def _split(names: str) -> frozenset[str]:
    return frozenset(names.split())


# By feature: names that mean it, then names that mean it if no column has one of the first. Names
# are in normal form. Languages are in the second group of every text (`feature_ranks`).
_COMMON_NAMES: dict[str, tuple[str, str]] = {
    "source": (
        "src source sources sourcetext sourcesentence sourcesegment srctext srcsent srcsentence "
        "srcsegment input inputs inputtext inputsentence text "
        "texts article articles articletext document documents doc docs documenttext dialogue "
        "dialog conversation content body story post original originaltext query prompt "
        "instruction question passage context sentence1 text1 sent1 s1 sentencea texta premise "
        "quelle quelltext ausgangstext textesource textoorigen 原文 源文",
        "sentence sentences abstract title first sourcelang sourcelanguage srclang srclanguage",
    ),
    "target": (
        "tgt trg target targets targettext targetsentence targetsegment tgttext "
        "tgtsent tgtsentence tgtsegment trgtext trgsent trgsentence output outputs outputtext "
        "outputsentence summary summaries summarytext highlights highlight headline headlines tldr "
        "translation translations translated translatedtext translationtext response responses "
        "reply answer answers completion reference references ref simplified corrected "
        "paraphrase sentence2 text2 sent2 s2 sentenceb textb hypothesis ziel zieltext textecible "
        "textodestino 译文 訳文",
        "caption captions label labels title abstract second targetlang targetlanguage tgtlang "
        "tgtlanguage trglang trglanguage",
    ),
    "first": (
        "first firstsentence firsttext sentence1 text1 sent1 s1 sentencea texta premise question1 "
        "q1 anchor left",
        "source src query",
    ),
    "second": (
        "second secondsentence secondtext sentence2 text2 sent2 s2 sentenceb textb hypothesis "
        "question2 q2 positive right",
        "target tgt trg document passage",
    ),
    "score": (
        "score scores similarity similarityscore simscore relatedness relatednessscore rating "
        "ratings gold goldscore goldlabel gs label labels isduplicate",
        "value target",
    ),
    "image": (
        "image images img imagepath imgpath imagefile imagefilename imagename picture photo",
        "file filename filepath path imageid",
    ),
    "caption": (
        "caption captions captiontext description descriptions",
        "text sentence sentences sentencesraw comment raw target label summary",
    ),
    "boxes": ("boxes bboxes boundingboxes", ""),
    "passage": (
        "passage passagetext context contexts paragraph article document story",
        "text content body source input",
    ),
    "question": ("question questions questiontext query q", ""),
    "answer": (
        "answer answers answertext answerstext order tour solution permutation",
        "output target label span",
    ),
    "answer_start": ("answerstart answerstarts answersanswerstart answersstart", ""),
    "supporting": ("supporting supportingfacts", ""),
    "points": ("points point coordinates coords cities locations", "input inputs source"),
}
# Names that are no words of a language, so that a row with one of them holds names of columns.
_ABBREVIATIONS = _split(
    "src tgt trg img sent1 sent2 srctext tgttext trgtext srcsent tgtsent trgsent srclang tgtlang "
    "trglang s1 s2 q1 q2 text1 text2 sentence1 sentence2 question1 question2 sourcetext targettext "
    "sourcesentence targetsentence inputtext outputtext tldr imagepath imgpath goldlabel"
)
NUMBER = re.compile("gold|label|rating|relatedness|score|similarity")
ID = re.compile("category|date|genre|hash|id|idx|index|key|lang|language|split|url|uuid")
_WORD = re.compile(
    f"{NUMBER.pattern}|{ID.pattern}|abstract|answer|article|caption|context|document|domain|file|"
    "filename|first|headline|highlights|hypothesis|image|input|output|pair|points|premise|query|"
    "phrases?|question|reference|response|second|segment|sent|sentences?|source|src|summary|target|"
    "text|tgt|title|translation|words?"
)
_CODE = re.compile(r"([a-z]{2,3}|[A-Z]{2,3})([-_][A-Za-z]{2,4}){0,2}")
# Codes that are rarely words: `No` and `Ne`, `ab` and `ba` are codes, too.
_FREQUENT_CODES = _split(
    "ar bg bn ca cs cy da de el en es et eu fa fi fr ga gl gu he hr hu hy id is ja ka kk ko lt lv "
    "mk mn mr ms nb nl pl pt ro ru sk sl sq sr sv sw ta te th tr uk ur vi zh"
)
# The three-letter codes of ISO 639 that corpora use, too.
_THREE_LETTERS = dict(
    pair.split(":")
    for pair in _split(
        "ara:ar bul:bg ces:cs cze:cs dan:da deu:de ger:de ell:el gre:el eng:en est:et fas:fa "
        "per:fa fin:fi fra:fr fre:fr heb:he hin:hi hrv:hr hun:hu ind:id ita:it jpn:ja kor:ko "
        "lav:lv lit:lt nld:nl dut:nl nor:no nob:nb pol:pl por:pt ron:ro rum:ro rus:ru slk:sk "
        "slo:sk slv:sl spa:es srp:sr swe:sv tha:th tur:tr ukr:uk urd:ur vie:vi zho:zh chi:zh"
    )
)


def normal_form(name: str) -> str:
    """Return a name without case, spaces, hyphens, underscores, quotes and a byte order mark."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name)).casefold()


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case; digits and signs separate them."""
    return re.sub(r"[\W\d_]+", " ", name).lower().split()


@functools.cache
def _languages() -> tuple[frozenset[str], Mapping[str, str]]:
    """Return the codes of languages, and the codes by English names."""
    from babel import Locale

    names = Locale("en").languages
    return frozenset(names), {n.lower(): code for code, n in names.items() if len(code) == 2}


@functools.cache
def _ranks() -> Mapping[str, Mapping[str, int]]:
    """Return by name, in normal form, the features that it can mean with their ranks, 1 or 2."""
    ranks: dict[str, dict[str, int]] = {}
    for feature, groups in _COMMON_NAMES.items():
        for rank, names in enumerate(groups, 1):
            for name in names.split():
                ranks.setdefault(name, {}).setdefault(feature, rank)
    return ranks


def language_of(name: str) -> str | None:
    """Return the code of the language that a name means: ``en`` for ``en-US`` or ``English``."""
    codes, names = _languages()
    name = name.rpartition(".")[2].strip("\ufeff\"' ")
    if _CODE.fullmatch(name):
        code = re.split("[-_]", name.lower())[0]
        code = _THREE_LETTERS.get(code, code)
        if code in codes and len(code) == 2:
            return code
    return names.get(" ".join(words_of(name)))


def common_features(name: str) -> Mapping[str, int]:
    """Return the features that a common name of a column means, with ranks: 1 before 2.

    A field counts by its last part, and languages do not count: ``data.src``, ``src_en``.
    """
    ranks = _ranks()
    last = name.rpartition(".")[2]
    rest = name if language_of(last) else last
    others = [word for word in re.split(r"[\W_]+", rest) if word and not language_of(word)]
    for form in map(normal_form, [name, last, " ".join(others)]):
        if form in ranks:
            return ranks[form]
    return {}


def is_abbreviation(name: str) -> bool:
    """Return whether a name is a common one that no text consists of, such as ``src``."""
    form = normal_form(name)
    return form in _ABBREVIATIONS or ("_" in name and form in _ranks())


def is_common_word(name: str) -> bool:
    """Return whether a name is that of columns in many data sets, and not only a language."""
    if common_features(name):
        return True
    languages = _languages()[1]
    words = [word for word in words_of(name) if len(word) > 1]
    is_known = all(_WORD.fullmatch(word) or word in languages for word in words)
    return is_known and any(map(_WORD.fullmatch, words))


def is_column_name(text: str) -> bool:
    """Return whether a text is a common name of a column, or a language such as ``en-US``."""
    return is_common_word(text) or language_of(text) is not None


def are_languages(names: Iterable[str]) -> bool:
    """Return whether names are languages and not short words: one is frequent, or a whole name."""
    codes = {name: language_of(name) for name in names}
    is_frequent = (code in _FREQUENT_CODES or len(name) > 3 for name, code in codes.items())
    return bool(codes) and all(codes.values()) and any(is_frequent)
