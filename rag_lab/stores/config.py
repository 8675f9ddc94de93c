"""The vector stores by name, what each needs, and the part of a configuration that chooses one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from rag_lab._kit.registry import BuiltIn, kinds_of
from rag_lab._kit.section import Section
from rag_lab._kit.wording import listing

VectorKind = Literal["float32", "int8", "binary"]
Unit = Literal["child", "document"]  # what a sparse index compares with a query: a piece of a file, or the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreInfo(BuiltIn):
    """One store: also the distributions whose version can change results, and where and how it keeps vectors."""

    distributions: tuple[str, ...]
    served: bool = False
    quantized: tuple[VectorKind, ...] = ()  # the kinds of vectors that it can hold, float32 not counted


(VECTOR_STORES,) = kinds_of(
    Path(__file__).with_name("modules.yaml"),
    "rag_lab.stores",
    lambda needs, **rest: StoreInfo(summary=f"vectors in {needs}", needs=needs, install="rag_lab[stores]", **rest),
)
STORES = cast(Mapping[str, StoreInfo], VECTOR_STORES.built_in)
STORE_NAMES = tuple(STORES)


class StoreConfig(Section):
    """Which vector store holds the children."""

    name: Annotated[str, VECTOR_STORES, AfterValidator(VECTOR_STORES.check)] = Field(
        "chroma", description="the vector store; a custom one is module:Class"
    )
    url: str = Field("", description="server of the store; empty keeps the vectors in the index's folder")
    vectors: VectorKind = Field(
        "float32",
        description="how vectors are kept: int8 takes a quarter of the disk; binary finds candidates by signs, and "
        "compares these as int8",
    )

    @model_validator(mode="after")
    def _fits(self) -> "StoreConfig":
        holds = STORES[self.name].quantized if self.name in STORES else ()
        if self.vectors not in ("float32", *holds):
            others = listing([name for name, info in STORES.items() if self.vectors in info.quantized])
            raise ValueError(f"{self.name} cannot keep vectors as {self.vectors}; {others} can")
        if not self.url:
            return self
        if self.name in STORES and not STORES[self.name].served:
            served = " and ".join(name for name, info in STORES.items() if info.served)
            raise ValueError(f"{self.name} has no server, so url must be empty; {served} may have one")
        try:
            parts = urlsplit(self.url)
            is_whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # a port that is no number
            is_whole = False
        if not is_whole:
            raise ValueError("url must be http://host:port or https://host:port")
        if parts.username or parts.password or parts.query:
            raise ValueError("url must hold no user, password or key, because it is written into results")
        return self
