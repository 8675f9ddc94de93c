"""Records of judges' trials, one file a judge and language of its prompts, and what a report says of a judge."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab._kit.home import PRIVATE, home
from rag_lab._kit.whole_file import whole_file
from rag_lab.evaluation.judge_trial.result import JudgeCheck
from rag_lab.evaluation.metric import model_name
from rag_lab.redaction import hide_known_json

_LOG = logging.getLogger(__name__)
_FOLDER = "judge_checks"
_COMMAND = "rag-lab judge check"


def save_check(check: JudgeCheck, folder: Path | str | None = None) -> Path:
    """Write the record where `judge_banner` finds it, below `home()`; return its path."""
    path = _record_path(check.identity, check.language, Path(folder or home()))
    path.parent.mkdir(PRIVATE, parents=True, exist_ok=True)
    with whole_file(path) as partial:
        partial.write_text(hide_known_json(check.to_json()), encoding="utf-8")
    return path


def load_check(
    judge: Mapping[str, Any] | str, folder: Path | str | None = None, language: str = ""
) -> JudgeCheck | None:
    """Return the record of a judge's last trial, by identity or by `provider:name` (the latest); None without one."""
    root = Path(folder or home())
    if not isinstance(judge, str):
        return _read(_record_path(judge, language, root))
    found = [check for path in (root / _FOLDER).glob("*.json") if (check := _read(path)) and check.judge == judge]
    found = [check for check in found if check.language == language]
    return max(found, key=lambda check: check.checked_at, default=None)


def judge_banner(judge: Mapping[str, Any] | str, folder: Path | str | None = None, language: str = "") -> str:
    """Return what a report says of a judge beside its scores: the verdict of its trial, or that there was none.

    Args:
        judge: the model's identity, or `provider:name` as a score has it; empty where nothing was judged.
        folder: where records are kept; `home()` where None.
        language: of the examples in the judge's prompts, as in the experiment file; English where empty.
    """
    if not judge:
        return ""
    name = judge if isinstance(judge, str) else model_name(judge)
    check = load_check(judge, folder, language)
    if check is None:
        command = f"{_COMMAND} {name}{f' --language {language}' if language else ''}"
        return f"The judge {name} was not checked: run `{command}` before its scores are believed."
    prompts = f"prompts in {language}, " if language else ""
    tried = f"{_COMMAND}, {prompts}{check.n_questions} questions of {check.dataset}, {check.checked_at[:10]}"
    return f"{check.verdict} ({tried})"


def _record_path(identity: Mapping[str, Any], language: str, root: Path) -> Path:
    return root / _FOLDER / f"{digest({'judge': dict(identity), 'language': language})}.json"


def _read(path: Path) -> JudgeCheck | None:
    if not path.is_file():
        return None
    try:
        return JudgeCheck.from_json(path.read_text(encoding="utf-8"))
    except ValueError:
        _LOG.warning("%s is no record of a judge's trial: run `%s` again.", path, _COMMAND)
        return None
