"""What a sparse index compares with a query. This file imports nothing else, so that configurations stay light."""

from __future__ import annotations

from typing import Literal

Unit = Literal["child", "document"]  # a piece of a file, or the whole
