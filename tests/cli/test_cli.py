import re
import shlex
from pathlib import Path

import pytest
import typer
from run_folder_fixture import build_run
from small_dataset import write_dataset
from synthetic_run import GRID, MAIN, factorial, write_run

from rag_lab import cli
from rag_lab._kit.config_file import read_shipped
from rag_lab.cli.shared_options import parse_settings
from rag_lab.cli.shell import FIRST, GROUPS
from rag_lab.cli.sweep import DEMO
from rag_lab.comparison.comparison import read_comparison
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.experiment.config import checkout_file
from rag_lab.runs.run_folder import MANIFEST_FILE, RunFolder, write_json


def commands(group, *path):
    """The words of every command, its groups before it."""
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *path, name)


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(cli.app))), ids=" ".join)
def test_every_command_explains_itself(rag_lab, command):
    status, out, _ = rag_lab(*command, "--help")
    assert status == 0
    assert "Usage:" in out
    if not command:
        assert "..." not in out.partition("Begin with:")[2].replace("COMMAND [ARGS]...", "")
        assert max(map(len, out.splitlines())) <= 80


def test_help_shows_the_examples_of_a_command_each_of_a_command_that_there_is(rag_lab):
    known = {" ".join(words) for words in commands(typer.main.get_command(cli.app))}
    examples = read_shipped(Path(cli.__file__).with_name("examples.yaml"))
    assert examples.keys() <= known
    assert examples["datasets export"] in re.sub(r"^  ", "", rag_lab("datasets", "export", "--help")[1], flags=re.M)
    shown = [
        shlex.split(line)[1:] for text in examples.values() for line in re.findall(r"^ +(rag-lab .*[^\\])$", text, re.M)
    ]
    assert [words for words in shown if not {words[0], " ".join(words[:2])} & known] == []


def test_help_has_a_text_of_every_argument_and_option_and_no_other():
    texts, root, used = read_shipped(Path(cli.__file__).with_name("help.yaml")), typer.main.get_command(cli.app), set()
    assert texts.keys() <= {" ".join(words) for words in commands(root)} | {"shared"}
    for words in commands(root):
        command, mine = root, texts.get(" ".join(words), {}).keys()
        for word in words:
            command = command.commands[word]
        if not hasattr(command, "commands"):
            names = {one.name for one in command.params}
            assert mine <= names | {"about"}
            assert names <= mine | texts["shared"].keys(), words
            used |= names - mine
    assert used == texts["shared"].keys()


def test_help_lists_every_command_once_in_the_group_where_people_look(rag_lab):
    out = rag_lab("--help")[1]
    listed = re.findall(r"^  (\w+)  ", out.partition("Your documents:")[2], re.MULTILINE)
    assert len(listed) == len(set(listed)) == len(typer.main.get_command(cli.app).commands)
    for title in GROUPS:
        assert f"{title}:" in out
    assert out.index("rag-lab demo") < out.index("Your documents:")


def test_what_help_teaches_first_are_commands_that_there_are():
    commands = typer.main.get_command(cli.app).commands
    assert {shlex.split(line)[1] for line in FIRST} <= set(commands)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sweep", "nowhere.yaml"], "nowhere.yaml"),
        (["report", "."], "no run folder"),
        (["index", "nowhere"], "nowhere"),
        (["ask", "  "], "question is empty"),
        (["ask", "sal\udcffary"], r"'sal\udcffary' holds bytes that are no text"),
        (["ask", "Why?", "--dataset", "nowhere"], "nowhere"),
        (["ask", "Why?", "--set", "rerank.nmae=none"], "did you mean 'rerank.name'"),
        (["ask", "Why?", "--set", "mode=bm25"], "did you mean 'retrieval.mode'"),
        (["race", "e.yaml"], "no command 'race'; did you mean `rag-lab vary KEY=A,B --design racing`?"),
        (["ask", "Why?", "--set", "rerank.final_k=0"], "greater than or equal to 1"),
        (["ask", "Why?", "--set", "rerank.name"], "key=value"),
        (["ask", "Why?", "--set", "models.generation=llamacpp:no.gguf"], "no.gguf"),
        (["ask", "Why?", "--set", "models.generation=gemini:gemini-2.5-flash"], "GOOGLE_API_KEY"),
        (["datasets", "check", "nowhere"], "nowhere"),
        (["datasets", "import", "nowhere.json", "target"], "nowhere.json"),
        (["datasets", "import", ".", "target", "--format", "pdf"], "pdf"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_a_sentence_and_status_2(rag_lab, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    status, out, err = rag_lab(*arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert err.startswith("rag-lab: ")
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1


def test_a_wrong_option_is_status_2_without_a_traceback(rag_lab):
    status, _, err = rag_lab("sweep", "x.yaml", "--job", "2")
    assert status == 2 and "Traceback" not in err


def test_all_problems_of_an_experiment_are_told_and_nothing_is_written(rag_lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.yaml").write_text(
        "name: e\nquestion: q\ndataset: nowhere\nfactors: {rerank.nmae: [a], rerank.final_k: [0]}\nmetrics: [foo]\n"
    )
    status, _, err = rag_lab("sweep", "e.yaml")
    assert status == 2
    assert err.startswith("rag-lab: e.yaml has 4 problems, and nothing was run:")
    assert not (tmp_path / "results").exists()


def test_a_dry_run_shows_the_plan_and_runs_nothing(rag_lab, experiment, tmp_path):
    status, out, _ = rag_lab("sweep", "e.yaml", "--dry-run")
    assert status == 0
    assert "final_k-3" in out and "What it can show is not known" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.yaml", "small"]


def test_a_dry_run_shows_the_variants_of_a_design_of_ones_own(rag_lab, experiment, tmp_path):
    (tmp_path / "mine.py").write_text(
        "def ends(base, factors):\n    return [{k: v[i] for k, v in factors.items()} for i in (0, -1)]\n"
    )
    text = "name: e\nquestion: q\ndataset: ./small\nfactors: {rerank.final_k: [5, 3, 8]}\ndesign: mine:%s\n"
    experiment.write_text(text % "ends")
    status, out, _ = rag_lab("sweep", "e.yaml", "--dry-run")
    assert status == 0
    assert "2 variants (mine:ends):" in out and "final_k-8" in out and "final_k-3" not in out
    experiment.write_text(text % "end")
    status, _, err = rag_lab("sweep", "e.yaml", "--dry-run")
    assert status == 2
    assert err.startswith("rag-lab: e.yaml: design: The design 'mine:end' is not there") and "Traceback" not in err


def test_what_cannot_be_measured_is_said_before_a_sweep_starts(rag_lab, experiment, monkeypatch):
    def stop(*_):
        raise RagLabError("Stopped before anything ran.")

    monkeypatch.setattr("rag_lab.experiment.run.sweep.run_plan", stop)
    status, _, err = rag_lab("sweep", "e.yaml")
    assert status == 2
    assert err.index("Metric retrieval.ndcg@10 is not applicable to 1 of 4 questions") < err.index("Stopped before")


def test_the_demo_is_ready_to_run(rag_lab):
    status, out, _ = rag_lab("sweep", checkout_file(DEMO), "--dry-run")
    assert status == 0
    assert int(out.split(" variants (one_factor)")[0].split()[-1]) == 7


def test_an_export_tells_what_it_loses(rag_lab, tmp_path):
    asked = {"id": "own", "question": "Why?", "may_see": ["staff"], "evidence": [{"source": "oven.txt"}]}
    path = write_dataset(tmp_path, extra_questions=[asked])
    status, out, err = rag_lab("datasets", "export", path, tmp_path / "out")
    assert status == 0 and out == f"{tmp_path / 'out'}: written, without what follows:\n"
    assert "`may_see` of 1 question was not written" in err.splitlines()[0]


def test_an_export_of_a_run_chooses_a_folder_that_is_not_there(rag_lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build_run(tmp_path / "results" / "one", questions=4)
    for folder in ("one_trec", "one_trec_2"):
        status, out, _ = rag_lab("export", "results/one")
        assert status == 0 and out.startswith(f"{folder}: topics, qrels and ")
        assert (tmp_path / folder / "topics.txt").is_file()


def test_datasets_are_listed_and_checked_with_their_documents(rag_lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    broken = {"id": "q5", "question": "Where?", "answers": ["x"], "evidence": [{"source": "gone.pdf"}]}
    path = write_dataset(tmp_path / "datasets", extra_questions=[broken])
    (path / "corpus" / "empty.txt").touch()
    (path / "corpus" / "bad.pdf").write_bytes(b"%PDF-1.4 nonsense")
    assert "small" in rag_lab("datasets", "list")[1]
    status, out, _ = rag_lab("datasets", "check", "small")
    assert status == 0 and all(said in out for said in ("gone.pdf", "empty.txt", "bad.pdf"))


def test_a_table_is_imported(rag_lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(
        'user_input,reference,reference_contexts\nWhat is it?,A press.,"[""The machine in hall 2 is a press.""]"\n'
    )
    status, out, err = rag_lab("datasets", "import", "t.csv", "datasets/mine")
    assert status == 0
    assert "rag-lab datasets check datasets/mine" in err.partition("Next:")[2]
    assert out.startswith("mine: 1 questions")
    assert "mine" in rag_lab("datasets", "list")[1]
    assert rag_lab("datasets", "import", "t.csv", "datasets/mine")[0] == 2
    assert rag_lab("datasets", "import", "t.csv", "datasets/mine", "--force")[0] == 0


def test_doctor_says_whether_a_key_is_set_and_never_what_it_is(rag_lab, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "very-secret")
    status, out, err = rag_lab("doctor")
    assert status == 0
    assert "very-secret" not in out + err
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert lines["GOOGLE_API_KEY"].endswith(" set")
    assert lines["OPENAI_API_KEY"].endswith("not set")


def test_settings_are_read_as_yaml_reads_them():
    model = "openai:a:3b?base_url=http://h/v1"
    settings = ["rerank.final_k=3", "query.hyde=none", "answer.thinking=true", f"models.hyde={model}"]
    read = {"rerank.final_k": 3, "query.hyde": "none", "answer.thinking": True, "models.hyde": model}
    assert parse_settings(settings) == read
    with pytest.raises(ConfigError) as error:
        parse_settings(["a", "=3", "b=[1"])
    assert str(error.value).count("key=value") == 3


def test_a_variant_that_failed_is_status_1_and_the_others_are_reported(rag_lab, experiment, tmp_path, monkeypatch):

    def run_plan(checked, out, options):
        run = checked.run_folder(tmp_path / "run")
        run.write_plan()
        states = {"baseline": {"status": "ok", "reason": "", "traces": 4}}
        states["final_k-3"] = {"status": "failed", "reason": "The kernel died."}
        write_json(run.path / MANIFEST_FILE, {"variants": states})
        return run

    monkeypatch.setattr("rag_lab.experiment.run.sweep.run_plan", run_plan)
    status, _, err = rag_lab("sweep", "e.yaml")
    assert status == 1
    assert "Variant final_k-3 failed: The kernel died." in err
    assert f"rag-lab compare {tmp_path / 'run'}" in err.partition("Next:")[2]


def test_a_sweep_that_is_stopped_is_status_130_and_says_what_goes_on(rag_lab, experiment, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rag_lab.experiment.run.sweep.run_plan", stop)
    status, _, err = rag_lab("sweep", "e.yaml", "--jobs", "2")
    assert status == 130
    assert err.endswith("Start it again and it goes on where it was: rag-lab sweep e.yaml --jobs 2\n")
    monkeypatch.setattr("rag_lab.cli.shared_options.open_pipeline", stop)
    status, _, err = rag_lab("ask", "Why?")
    assert status == 130 and "Traceback" not in err


def test_the_demo_without_its_files_says_how_to_begin(rag_lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rag_lab.experiment.config._PACKAGE", tmp_path / "site-packages/rag_lab")
    status, _, err = rag_lab("demo")
    assert status == 2 and len(err.splitlines()) == 1
    assert "rag-lab ask" in err


def test_a_margin_may_be_given_when_a_run_is_over_and_is_not_recorded(rag_lab, tmp_path):
    run = write_run(tmp_path / "run", GRID, {MAIN: factorial()})
    for command in ("compare", "report"):
        assert rag_lab(command, run.path, "--margin", f"{MAIN}=0.05")[0] == 0
        status, _, err = rag_lab(command, run.path, "--margin", f"{MAIN}=5")
        assert status == 2 and "wider than the metric's range" in err
    assert read_comparison(run.path, margins={MAIN: 0.05}).run.post_hoc_margins == (MAIN,)
    assert RunFolder.open(run.path).margins == {}
    status, _, err = rag_lab("compare", run.path, run.path, "--margin", f"{MAIN}=0.05")
    assert status == 2 and "A margin is of one run" in err


def test_a_plan_without_a_run_says_what_to_do_and_a_pilot_can_be_looked_at_first(rag_lab, experiment, tmp_path):
    status, out, _ = rag_lab("plan", "e.yaml")
    assert status == 0 and "`rag-lab plan e.yaml --pilot 40` asks them" in " ".join(out.split())
    status, out, _ = rag_lab("plan", "e.yaml", "--pilot", "40", "--dry-run")
    assert status == 0 and "\n\ne-pilot: q\n" in out and not (tmp_path / "results").exists()
    assert out.startswith("1 of 2 variants cannot be compared with the baseline: retrieval.ndcg@10 sees 6 ranks of one")
    status, _, err = rag_lab("plan", "e.yaml", "--pilot", "39")
    assert status == 2 and err == (
        "rag-lab: --pilot is 39: by so few questions nobody can tell how much variants differ; give 40 or more.\n"
    )
    status, _, err = rag_lab("plan", "e.yaml", "--from", "nowhere")
    assert status == 2 and err.startswith("rag-lab: nowhere is no run folder")
