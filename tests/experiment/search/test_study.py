"""A study in the shared database, where a search that another process began goes on."""

import subprocess
import sys

import pytest
from postgres import needs_postgres, postgres_server

from rag_lab.experiment.search.study import STUDY_FILE, open_trials

pytestmark = [pytest.mark.slow, needs_postgres]

FACTORS = {"rerank.final_k": [5, 3], "retrieval.mode": ["dense", "bm25"], "retrieval.base_k": [20]}
BEGINS = """
import sys
from pathlib import Path
from rag_lab.experiment.search.study import open_trials
factors = {"rerank.final_k": [5, 3], "retrieval.mode": ["dense", "bm25"], "retrieval.base_k": [20]}
trials = open_trials(Path(sys.argv[1]), sys.argv[2], "small", [True, False], factors, "tpe", 0)
asked = trials.asked()
number, _ = next(asked)
trials.tell(number, (0.5, 2.0))
next(asked)
"""


def test_a_search_that_another_process_began_goes_on(tmp_path):
    with postgres_server() as server:
        store = server.address()
        subprocess.run([sys.executable, "-c", BEGINS, str(tmp_path), store], check=True)
        trials = open_trials(tmp_path, store, "small", [True, False], FACTORS, "tpe", 0)
        assert trials.told() == [({"rerank.final_k": 5, "retrieval.mode": "dense", "retrieval.base_k": 20}, (0.5, 2.0))]
        ((number, choice),) = trials.open_ones()
        assert number == 1 and choice["retrieval.base_k"] == 20
        trials.tell(number, None)
        assert trials.open_ones() == [] and next(trials.asked())[0] == 2
        other = open_trials(tmp_path, store, "other", [True, False], FACTORS, "tpe", 0)
        assert other.told() == [] and not (tmp_path / STUDY_FILE).exists()
