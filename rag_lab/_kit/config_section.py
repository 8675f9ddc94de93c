"""What every part of a configuration is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

MAX_SEED = 2_000_000_000  # the number of a repeat is added, and servers take 31 bits


class Section(BaseModel):
    """A part of the configuration: frozen, closed to unknown keys, and with finite numbers alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)
