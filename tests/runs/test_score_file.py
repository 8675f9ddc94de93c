import pyarrow.parquet as pq

from rag_lab.records import Score
from rag_lab.runs.variant_files import COLUMNS, read_scores, to_frame, write_scores

SCORES = [
    Score("q1", "retrieval.ndcg@10", 0.5),
    Score("q2", "ragas.faithfulness", None, "failed", "no JSON", repeat=1, judge="j", seconds=2.5, calls=3),
]


def test_the_file_has_the_contract_s_columns_and_nulls(tmp_path):
    path = tmp_path / "scores.parquet"
    write_scores(path, {"baseline": SCORES, "no_hyde": SCORES[:1]})
    table = pq.read_table(path)
    assert table.column_names == [
        "variant_id",
        "question_id",
        "metric",
        "repeat",
        "value",
        "status",
        "reason",
        "judge",
        "seconds",
        "calls",
        "truncated_tokens",
    ]
    assert table["value"].to_pylist() == [0.5, None, 0.5]
    assert table["variant_id"].to_pylist() == ["baseline", "baseline", "no_hyde"]
    assert list(tmp_path.iterdir()) == [path]


def test_reading_gives_back_what_was_written(tmp_path):
    write_scores(tmp_path / "s.parquet", {"v": SCORES})
    frame = read_scores(tmp_path / "s.parquet")
    assert frame.equals(to_frame({"v": SCORES}))
    assert frame.iloc[1].drop("value").to_dict() == {
        "variant_id": "v",
        "question_id": "q2",
        "metric": "ragas.faithfulness",
        "repeat": 1,
        "status": "failed",
        "reason": "no JSON",
        "judge": "j",
        "seconds": 2.5,
        "calls": 3,
        "truncated_tokens": 0,
    }


def test_no_scores_keep_their_types(tmp_path):
    write_scores(tmp_path / "s.parquet", {})
    assert read_scores(tmp_path / "s.parquet").dtypes.astype(str).to_dict() == COLUMNS
