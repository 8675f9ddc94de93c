"""The language of a text and of a corpus: told where it can be, and left open where it cannot."""

import pytest

from rag_lab.corpus.languages import language_of, main_language

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
