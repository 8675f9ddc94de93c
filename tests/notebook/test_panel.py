from __future__ import annotations

import ipywidgets
import pytest

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import ConfigError
from rag_lab.notebook import panel as panel_module
from rag_lab.notebook.panel import MODULE_SWITCHES, TogglePanel


@pytest.fixture(autouse=True)
def _new_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_module, "_PANELS", {})


def status(panel: TogglePanel) -> str:
    """What the panel says below its switches when it is shown."""
    return next(w.value for w in shown(panel).children if isinstance(w, ipywidgets.HTML))


def shown(panel: TogglePanel) -> ipywidgets.VBox:
    view = panel._repr_mimebundle_()["application/vnd.jupyter.widget-view+json"]
    return ipywidgets.widgets.widget._instances[view["model_id"]]


def test_an_untouched_panel_is_the_configuration() -> None:
    config = PipelineConfig().override({"rerank.name": "query_likelihood", "retrieval.base_k": 7})
    panel = TogglePanel(config)
    assert panel.config == config
    assert panel.changes == {}


def test_widgets_change_the_configuration() -> None:
    panel = TogglePanel(PipelineConfig())
    panel.widgets["rerank.name"].value = "query_likelihood"
    panel.widgets["retrieval.hyde_k"].value = 3
    classes = {box.description: box for box in panel.widgets["query.class_to_hyde"].children[1:]}
    classes["specific"].value = True
    assert panel.config.rerank.name == "query_likelihood"
    assert panel.config.retrieval.hyde_k == 3
    assert panel.config.query.class_to_hyde["specific"] is True
    assert set(panel.changes) == {"rerank.name", "retrieval.hyde_k", "query.class_to_hyde"}


def test_widgets_offer_what_the_fields_allow() -> None:
    panel = TogglePanel(PipelineConfig())
    assert panel.widgets["query.hyde"].options == ("none", "always", "classified")
    assert "cross_encoder" in panel.widgets["rerank.name"].options
    panel.widgets["rerank.final_k"].value = 1000  # the field allows 100
    assert panel.config.rerank.final_k == 100
    assert "results of each search by question" in panel.widgets["retrieval.base_k"].tooltip


def test_classes_are_greyed_out_unless_hyde_asks_for_them() -> None:
    panel = TogglePanel(PipelineConfig().override({"query.hyde": "none"}))
    boxes = panel.widgets["query.class_to_hyde"].children[1:]
    assert all(box.disabled for box in boxes)
    panel.widgets["query.hyde"].value = "classified"
    assert not any(box.disabled for box in boxes)


def test_every_field_of_the_configuration_can_be_offered() -> None:
    panel = TogglePanel(PipelineConfig(), dotted_keys())
    assert panel.config == PipelineConfig()
    assert "application/vnd.jupyter.widget-view+json" in panel._repr_mimebundle_()
    assert all(isinstance(widget, ipywidgets.Widget) for widget in panel.widgets.values())


def test_values_that_do_not_go_together_are_refused() -> None:
    panel = TogglePanel(PipelineConfig(), ["corpus.chunk_size", "corpus.chunk_overlap"])
    panel.widgets["corpus.chunk_overlap"].value = 900
    with pytest.raises(ConfigError, match="smaller than chunk_size"):
        _ = panel.config


def test_unknown_keys_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"'rerank\.nam'.*did you mean 'rerank\.name'"):
        TogglePanel(PipelineConfig(), ["rerank.nam"])
    assert set(MODULE_SWITCHES) <= set(dotted_keys())


def test_a_panel_made_again_goes_on_where_the_last_one_stood() -> None:
    first = TogglePanel(PipelineConfig())
    first.widgets["query.hyde"].value = "none"
    next(box for box in first.widgets["query.class_to_hyde"].children[1:] if box.description == "specific").value = True
    again = TogglePanel(PipelineConfig())
    assert again.config == first.config != PipelineConfig()
    assert "query.hyde = none (starts as classified)" in status(again)
    assert "specific, fuzzy, procedural, creative" in status(again)
    assert all(box.disabled for box in again.widgets["query.class_to_hyde"].children[1:])


def test_panels_of_other_names_start_anew() -> None:
    TogglePanel(PipelineConfig(), name="left").widgets["query.hyde"].value = "none"
    assert TogglePanel(PipelineConfig(), name="right").changes == {}


def test_a_start_that_has_changed_wins_and_says_so() -> None:
    first = TogglePanel(PipelineConfig())
    first.widgets["query.hyde"].value = "none"
    first.widgets["rerank.final_k"].value = 9
    started = PipelineConfig().override({"query.hyde": "always", "retrieval.base_k": 7})
    again = TogglePanel(started)
    assert again.config == started.override({"rerank.final_k": 9})
    assert "query.hyde starts as always now, which replaces none." in status(again)
    assert "query.hyde starts" not in status(TogglePanel(started))


def test_reset_leads_back_to_the_start() -> None:
    panel = TogglePanel(PipelineConfig())
    box = shown(panel)
    button, said = box.children[-1], box.children[-2]
    assert button.disabled and "Nothing changed" in said.value
    panel.widgets["query.hyde"].value = "none"
    panel.widgets["query.class_to_hyde"].children[1].value = True
    assert not button.disabled and "query.hyde = none" in said.value
    button.click()
    assert panel.config == PipelineConfig() and button.disabled and "Nothing changed" in said.value
    assert TogglePanel(PipelineConfig()).changes == {}
