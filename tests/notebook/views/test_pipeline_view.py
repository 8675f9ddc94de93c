from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.notebook.views.pipeline_view import box_of, boxes
from rag_lab.pipeline import SLOTS


def test_every_key_that_can_be_changed_has_its_box():
    assert {box_of(key) for key in dotted_keys()} == {box.name for box in boxes(PipelineConfig(), {})}


def test_an_object_in_any_slot_is_shown_in_one_box():
    for slot in SLOTS:
        assert sum("mine" in box.said for box in boxes(PipelineConfig(), {slot: "mine"})) == 1, slot


def test_a_changed_memory_of_conversations_is_drawn():
    (box,) = [one for one in boxes(PipelineConfig().override({"conversation.memory": "none"}), {}) if one.changes]
    assert (box.name, box.changes) == ("Understanding", ("conversation.memory = none",))
