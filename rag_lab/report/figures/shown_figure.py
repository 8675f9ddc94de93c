"""A figure that shows itself in a notebook, whichever backend matplotlib has and whether pyplot was imported or not."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

PIXELS_PER_POINT = 2  # sharp on screens of twice the density


class ShownFigure(Figure):
    """A matplotlib figure with a text alternative, which a notebook shows as a picture."""

    def __init__(self, width_inches: float, height_inches: float, alt: str) -> None:
        # White also where the notebook is dark, because the labels are drawn in ink.
        super().__init__(figsize=(width_inches, height_inches), layout="constrained", facecolor="white")
        self.alt = alt

    def _repr_png_(self) -> tuple[bytes, dict[str, int | str]]:
        """Return the picture, and how wide and high it is shown, with the text alternative."""
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=self.dpi * PIXELS_PER_POINT)
        width, height = self.get_size_inches() * self.dpi
        return out.getvalue(), {"width": round(width), "height": round(height), "alt": self.alt}
