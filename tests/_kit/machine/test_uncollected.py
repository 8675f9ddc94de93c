import gc

import pytest

from rag_lab._kit.machine.uncollected import without_collection


def test_collection_is_as_it_was_afterwards():
    with pytest.raises(KeyError), without_collection():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
