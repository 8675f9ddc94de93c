"""What a picture in a notebook's output must be for a person to see it."""

import base64
import io
from typing import Any

import matplotlib.image
import numpy as np

WHITE = (1.0, 1.0, 1.0, 1.0)


def pixels_of(output: Any) -> Any:
    """Return the picture of an output as (height, width, 4) numbers from 0 to 1."""
    return matplotlib.image.imread(io.BytesIO(base64.b64decode(output.data["image/png"])))


def assert_seen(output: Any) -> None:
    """A picture of twice the size at which it is shown, on opaque white, with something drawn in dark ink."""
    pixels, shown = pixels_of(output), output.metadata["image/png"]
    assert pixels.shape[:2] == (2 * shown["height"], 2 * shown["width"])
    assert 300 <= shown["width"] <= 1000 and 100 <= shown["height"] <= 1000
    assert shown["alt"]
    assert tuple(pixels[0, 0]) == WHITE and (pixels[..., 3] == 1).all()
    assert 0.005 < np.mean(pixels[..., :3].mean(axis=2) < 0.6) < 0.5
    assert len(np.unique(pixels.reshape(-1, 4), axis=0)) > 50
