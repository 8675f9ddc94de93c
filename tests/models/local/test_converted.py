import threading

import pytest

from rag_lab._kit.home import home
from rag_lab.errors import ModelError
from rag_lab.models.local.local_model import keep_converted


def test_weights_are_made_once_for_all_who_ask_at_once():
    made = []

    def make(partial):
        made.append(partial)
        partial.write_text("whole")

    threads = [threading.Thread(target=keep_converted, args=("copy", make)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert keep_converted("copy", make).read_text() == "whole"


def test_a_failed_conversion_leaves_nothing_under_the_final_name():
    def fail(partial):
        partial.mkdir()
        (partial / "half").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(ModelError, match="No space left on device; free some space or set RAG_LAB_HOME"):
        keep_converted("copy", fail)
    assert not (home() / "weights" / "copy").exists()
    assert keep_converted("copy", lambda partial: partial.write_text("whole")).read_text() == "whole"
