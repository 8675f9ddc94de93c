from rag_lab.records import Evidence, Hit, Question
from rag_lab.report.figures.figure_style import ABOVE
from rag_lab.report.figures.rank_figure import rank_figure

ASKED = Question("q", "What costs $5?", evidence=(Evidence("manuals/b$.pdf", 2),))


def hit(name: str) -> Hit:
    return Hit(name, name, f"manuals/{name}", 2, 0, 10, 1.0)


def test_the_evidence_is_followed_through_all_lists() -> None:
    lists = {"dense": [hit("a.pdf"), hit("c.pdf")], "bm25": [hit("b$.pdf"), hit("a.pdf"), hit("d.pdf")]}
    figure = rank_figure(lists, ASKED, first=2)
    axes = figure.axes[0]
    followed = [line for line in axes.lines if line.get_color() == ABOVE]
    assert [list(line.get_ydata()) for line in followed] == [[3, 1], [3], [1]]  # below the two of the first list
    assert "dense: nowhere; bm25: at 1" in figure.alt
    texts = [text.get_text() for text in axes.texts]
    assert r"1  b\$.pdf, p. 2" in texts and "a.pdf, p. 2  1" in texts
    assert not any("d.pdf" in text for text in texts)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["dense", "bm25"]


def test_lists_without_hits_are_drawn_too() -> None:
    assert "dense: nowhere" in rank_figure({"dense": []}, ASKED).alt
    assert rank_figure({"dense": [], "bm25": [hit("b$.pdf")]}, ASKED)._repr_png_()[0].startswith(b"\x89PNG")
