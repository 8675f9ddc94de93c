"""The part of a configuration that says in whose words models are asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from rag_lab._kit.config_section import Section
from rag_lab.stages.prompts.chat_template import ChatTemplate
from rag_lab.stages.prompts.places import BUILT_IN, PLACES, prompt_name

_Name = Annotated[str, AfterValidator(prompt_name)]


class PromptsConfig(Section):
    """What models are asked, each `builtin` or a file beside the experiment."""

    understanding: Annotated[_Name, PLACES["understanding"]] = Field(
        BUILT_IN, description="asks for class, rewrite and HyDE suggestion: builtin or a .j2 file"
    )
    phrasings: Annotated[_Name, PLACES["phrasings"]] = Field(BUILT_IN, description="asks for other phrasings")
    hyde: Annotated[_Name, PLACES["hyde"]] = Field(BUILT_IN, description="asks for a hypothetical document")
    summary: Annotated[_Name, PLACES["summary"]] = Field(BUILT_IN, description="asks for a summary of the conversation")
    answer: Annotated[_Name, PLACES["answer"]] = Field(BUILT_IN, description="asks for an answer from the passages")

    def own(self) -> dict[str, ChatTemplate]:
        """Return the prompts that are not built in, by place, read from their files.

        Raises:
            ConfigError: if a file cannot be used.
        """
        found = {place: PLACES[place].read(file) for place, file in self.model_dump().items()}
        return {place: template for place, template in found.items() if template is not None}
