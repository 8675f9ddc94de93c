"""A run is known by the same name from wherever its folder is seen, and no two runs by one."""

from rag_lab.runs.run_name import known_name, run_name


def test_a_name_stays_with_the_folder_and_two_folders_of_one_name_differ(tmp_path):
    for folder in ("a/my run", "b/my run"):
        (tmp_path / folder).mkdir(parents=True)
    assert known_name(tmp_path / "a/my run") == ""
    first = run_name(tmp_path / "a/my run")
    assert first.startswith("my_run-")
    assert first != run_name(tmp_path / "b/my run")
    (tmp_path / "a/my run").rename(tmp_path / "moved")
    assert run_name(tmp_path / "moved") == known_name(tmp_path / "moved") == first
