"""Effects drawn as intervals on one axis, a row of a table each: SVG in percent, as wide as its column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rag_lab._kit.numbers import signed
from rag_lab.comparison.advice.module_rows import ModuleRow

_INSET = 4.0  # percent that are left free on either side
_MOST_TICKS = 5


@dataclass(frozen=True, slots=True)
class EffectAxis:
    """An axis that holds zero and every interval of `rows`."""

    low: float
    high: float

    @classmethod
    def around(cls, rows: Sequence[ModuleRow]) -> EffectAxis:
        """Return the axis of these rows; from -1 to 1 where none has an effect."""
        ends = [value for row in rows for value in (row.effect, row.low, row.high) if value is not None]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        return cls(low, high) if high > low else cls(-1.0, 1.0)

    @property
    def ticks(self) -> list[float]:
        """Round numbers within the axis, zero among them, in order."""
        rough = (self.high - self.low) / _MOST_TICKS
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
        return [step * k for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]

    def head(self) -> Markup:
        """Return the numbers above the column."""
        texts = "".join(
            f'<text x="{self._place(tick)}" y="1em" text-anchor="middle">{signed(tick) if tick else 0}</text>'
            for tick in self.ticks
        )
        return _svg("ticks", texts)

    def drawing(self, row: ModuleRow | None = None) -> Markup:
        """Return the zero line, and on it the interval of a row, of which the numbers stand beside it."""
        parts = [
            f'<line class="{"zero" if tick == 0 else "grid"}" x1="{x}" x2="{x}" y1="0" y2="100%"/>'
            for tick in self.ticks
            for x in [self._place(tick)]
        ]
        if row is not None and row.low is not None and row.high is not None:
            ends = f'x1="{self._place(row.low)}" x2="{self._place(row.high)}"'
            parts.append(f'<line class="reach" {ends} y1="50%" y2="50%"/>')
        if row is not None and row.effect is not None:
            parts.append(f'<circle cx="{self._place(row.effect)}" cy="50%" r="4.5"/>')
        return _svg(row.word.replace(" ", "-") if row is not None else "none", "".join(parts))

    def _place(self, value: float) -> str:
        share = (value - self.low) / (self.high - self.low)
        return f"{_INSET + share * (100 - 2 * _INSET):.2f}%"


def _svg(name: str, inner: str) -> Markup:
    return Markup(f'<svg class="effect {name}" aria-hidden="true" focusable="false">{inner}</svg>')  # noqa: S704 -- numbers
