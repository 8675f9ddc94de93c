"""An HTML page as a test reads it: tags that must nest, ids, attributes, and the text that is shown."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr", "wbr"}


class Page(HTMLParser):
    """Checks that tags nest, and collects what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing, line {self.getpos()[0]}"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)


_LINES = {
    "p",
    "div",
    "li",
    "tr",
    "h1",
    "h2",
    "h3",
    "h4",
    "section",
    "summary",
    "figcaption",
    "caption",
    "dt",
    "dd",
    "pre",
}
_LINES |= {
    "table",
    "ul",
    "ol",
    "details",
    "header",
    "nav",
    "main",
    "figure",
    "svg",
    "text",
    "button",
    "label",
    "option",
}
_HIDDEN = {"style", "script", "template", "title", "desc"}
_BEFORE = {"td": " | ", "th": " | ", "span": " ", "a": " "}


class _Lines(HTMLParser):
    """The shown text: a line a block, ` | ` between the cells of a row; of the questions the first two alone."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.hidden: list[str] = []  # the open tags within what is left out
        self.questions = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.questions += ("class", "q") in attrs
        if tag in VOID:
            self.parts.append("\n" if tag == "br" else "")
        elif self.hidden or tag in _HIDDEN or (self.questions > 2 and ("class", "q") in attrs):
            self.hidden.append(tag)
        else:
            self.parts.append("\n" if tag in _LINES else _BEFORE.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if self.hidden:
            self.hidden.pop()
        elif tag in _LINES:
            self.parts.append("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A part of a picture, which has no text."""

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data.replace("\n", " "))


def page_text(html: str) -> str:
    """Return what a page shows, folded parts included; no styles, scripts and titles of pictures."""
    lines = (" ".join(line.split()).removeprefix("| ") for line in "".join(_Lines(html).parts).split("\n"))
    return "\n".join(filter(None, lines)) + "\n"
