"""RAGAs' prompts in another language: its own adaptation, by which a model translates the examples of each prompt.

The instructions stay in English, as RAGAs' default has it. Importing this module imports RAGAs.
"""

from __future__ import annotations

from typing import Any

from ragas.prompt.metrics.base_prompt import BasePrompt

from rag_lab.evaluation.judge.reply import JudgeError

_ATTEMPTS = 2  # the session samples the second


async def adapted_prompts(metric: Any, language: str, session: Any) -> dict[str, Any]:
    """Return the metric's prompts by attribute, translated by the model of `session`.

    Raises:
        JudgeError: if the model gives no usable translation.
    """
    prompts = {name: value for name, value in vars(metric).items() if isinstance(value, BasePrompt)}
    return {name: await _adapted(prompt, language, session) for name, prompt in prompts.items()}


async def _adapted(prompt: Any, language: str, session: Any) -> Any:
    problem = ""
    for _ in range(_ATTEMPTS):
        try:
            return await prompt.adapt(language, session)
        except JudgeError as error:
            reason = f"the prompts could not be put into {language}: {error.reason}"
            raise JudgeError(reason, lasting=error.lasting) from None
        except ValueError as error:  # RAGAs counts the translated strings
            problem = str(error)
    raise JudgeError(f"the prompts could not be put into {language}: {problem}")
