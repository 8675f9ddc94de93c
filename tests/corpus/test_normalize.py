import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.corpus.normalize import join_words, language_of, main_language, normalize, normalize_documents
from rag_lab.records import Document


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cafe\u0301", "Caf\u00e9"),
        ("58\u00a0°C and 12\u202fmm", "58 °C and 12 mm"),
        ("so\u00adft\u200b\ufeff", "soft"),
        ("a\r\nb\rc\x0cd\u2028e", "a\nb\nc\nd\ne"),
        ("\ufb01lter, e\ufb03cient", "filter, efficient"),
        ("end   \nof\t\n\n\n\nline", "end\nof\n\nline"),
        ("\n\n  indented\n", "  indented"),
        ("bell\x07 and escape\x1b", "bell and escape"),
        ("a\u200e\u200fb\u061c\u202a\u202ec\u2063\u2066\u2069d\u180e", "abcd"),
        ("Wör\u00ad\nter, Ma\u00ad \u2028schine \u00ad\n", "Wör-\nter, Ma-\nschine"),
        ("Hydrau\u2010\nlik, non\u2011slip", "Hydrau-\nlik, non-slip"),
        ("👩\u200d🔧", "👩\u200d🔧"),
        ("می‌خواهم", "می‌خواهم"),  # the joiner changes how Persian is read
    ],
)
def test_one_spelling_for_what_looks_the_same(text: str, expected: str) -> None:
    assert normalize(text) == expected


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_a_normal_text_stays_as_it_is_and_no_letter_is_lost(text: str) -> None:
    normal = normalize(text)
    assert normalize(normal) == normal
    letters = [c for c in unicodedata.normalize("NFC", text) if c.isalnum() and not "\ufb00" <= c <= "\ufb06"]
    assert all(letter in normal for letter in letters)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["the hydrau-\nlic pump"], ["the hydraulic pump"]),
        (["a high-\npressure pump", "every high-pressure hose"], ["a high-pressure pump", "every high-pressure hose"]),
        (["press P-\n12 and E-\nstop"], ["press P-\n12 and E-\nstop"]),
        (["- one -\ntwo"], ["- one -\ntwo"]),
        (["die Mess-\n  werte"], ["die Messwerte"]),
        (["Ein-\nund Ausgang, Vor-\n  oder Nachteile"], ["Ein- und Ausgang, Vor- oder Nachteile"]),
        (["ein- bzw.\nzwei-\nbzw. dreimal"], ["ein- bzw.\nzwei- bzw. dreimal"]),
        (["pre-\nand post-wash", "in Ein-\nundzwanzig"], ["pre- and post-wash", "in Einundzwanzig"]),
        (["the col-\nor of oil", "its color"], ["the color of oil", "its color"]),
    ],
)
def test_words_broken_at_a_lines_end_are_joined_but_not_compounds(texts: list[str], expected: list[str]) -> None:
    assert join_words(texts) == expected


def test_documents_without_text_are_left_out() -> None:
    documents = [Document("a", 1, "x  ", " A\n title "), Document("a", 2, "\u200b \n")]
    assert normalize_documents(documents) == (Document("a", 1, "x", "A title"),)


def test_long_runs_of_anything_take_no_longer_than_their_length() -> None:
    for run in (" ", "-\n", "a-\n", "\n", "\u00a0", "a", "-"):
        text = run * (400_000 // len(run)) + "x"
        assert "".join(join_words([normalize(text)])).endswith("x")


PROSE = {
    "english": "The train takes two hours. Those who buy their ticket at the station, or on the site, get it "
    "for less, and they can change it until the day before. Why it is so, nobody has told us.",
    "german": "Der Zug braucht zwei Stunden. Wer seine Karte am Bahnhof oder auf der Seite der Gesellschaft kauft, "
    "bekommt sie für weniger, und bis zum Tag davor kann er sie ändern..",
    "french": "Le train met deux heures. Ceux qui achètent leur billet à la gare ou sur le site le "
    "paient moins cher, et ils peuvent le changer jusqu'à la veille. Pourquoi il en est ainsi, personne ne sait.",
    "russian": "Поезд идёт два часа. Те, кто купит билет на вокзале или на сайте, заплатят меньше, и они могут "
    "поменять его до последнего дня. Почему это так, нам никто не сказал, и что с этим будет дальше, мы не знаем.",
    "chinese": "火车需要两个小时。在车站买票的人可以少付一些钱，而且他们可以更改车票。",
    "japanese": "電車で二時間かかります。駅や会社のサイトで切符を買う人は安く買えます。",
    "greek": "Το τρένο χρειάζεται δύο ώρες. Όσοι αγοράζουν το εισιτήριό τους στον σταθμό πληρώνουν λιγότερα.",
}


@pytest.mark.parametrize("language", PROSE)
def test_prose_is_told_by_its_common_words_or_its_letters(language):
    assert language_of(PROSE[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The pump is old.",
        "4711 M8 912 A2 25 Nm 4712 M10 " * 20,
        "P-12 BR-20 SKF DIN ISO bolt nut washer flange gasket pump valve piston rod seal ring motor gear shaft belt "
        * 3,
        "Juna yhdistää Helsingin ja Turun kahdessa tunnissa, ja matkustajat voivat ostaa lippunsa asemalta. " * 4,
    ],
)
def test_what_cannot_be_told_is_left_open(text):
    assert language_of(text) == ""


def test_a_corpus_has_a_language_where_four_fifths_of_it_have():
    assert main_language([("english", 90), ("german", 10)]) == "english"
    assert main_language([("english", 60), ("german", 40)]) == ""
    assert main_language([("", 90), ("german", 10)]) == ""
    assert main_language([("", 40), ("german", 60)]) == "german"  # the rest are tables and notes of a few words
    assert main_language([]) == main_language([("english", 0)]) == ""
