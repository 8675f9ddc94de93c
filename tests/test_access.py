from hypothesis import given
from hypothesis import strategies as st

from rag_lab.access import NOBODY, access_label, allowed_labels, may_see
from rag_lab.records import Question

names = st.text(max_size=8)
groups = st.lists(names, max_size=4)

PUBLIC = access_label("", ())
STAFF = access_label("", ["staff"])
EITHER = access_label("", ["staff", "audit"])
NORTH = access_label("north", ())
NORTH_STAFF = access_label("north", ["staff"])
ALL = (PUBLIC, STAFF, EITHER, NORTH, NORTH_STAFF)


def asker(**changes):
    return Question("q", "?", **changes)


def test_an_unrestricted_asker_needs_no_filter():
    assert allowed_labels(ALL, asker()) is None


def test_a_restricted_asker_sees_what_is_public_or_shares_a_permission():
    assert allowed_labels(ALL, asker(may_see=())) == {PUBLIC, NORTH}
    assert allowed_labels(ALL, asker(may_see=("audit",))) == {PUBLIC, NORTH, EITHER}
    assert allowed_labels(ALL, asker(may_see=("staff", "x"))) == set(ALL)
    assert allowed_labels(ALL, asker(may_see=("sta",))) == {PUBLIC, NORTH}


def test_what_nobody_may_see_is_seen_by_the_unrestricted_alone():
    closed = access_label("", NOBODY)
    assert allowed_labels([closed], asker(may_see=NOBODY)) == set()
    assert may_see(asker(), "", NOBODY)


def test_a_namespace_is_searched_alone_whoever_asks():
    assert allowed_labels(ALL, asker(namespace="north")) == {NORTH, NORTH_STAFF}
    assert allowed_labels(ALL, asker(namespace="north", may_see=())) == {NORTH}
    assert allowed_labels(ALL, asker(namespace="")) == {PUBLIC, STAFF, EITHER}
    assert allowed_labels(ALL, asker(namespace="nowhere")) == set()


@given(names, groups, st.randoms())
def test_a_label_does_not_depend_on_the_order_of_permissions(namespace, permissions, random):
    shuffled = [*permissions, *permissions]
    random.shuffle(shuffled)
    assert access_label(namespace, shuffled) == access_label(namespace, permissions)


@given(names, groups, names, groups)
def test_attributes_that_differ_have_labels_that_differ(namespace, permissions, other, others):
    same = namespace == other and set(permissions) == set(others)
    assert (access_label(namespace, permissions) == access_label(other, others)) == same


@given(names, groups, st.none() | names, st.none() | groups)
def test_the_filter_is_the_rule_applied_to_each_label(namespace, permissions, asked, held):
    question = asker(namespace=asked, may_see=None if held is None else tuple(held))
    in_namespace = asked is None or asked == namespace
    permitted = held is None or not permissions or bool((set(permissions) & set(held)) - set(NOBODY))
    assert may_see(question, namespace, permissions) == (in_namespace and permitted)
    allowed = allowed_labels([access_label(namespace, permissions)], question)
    assert allowed is None or (len(allowed) == 1) == (in_namespace and permitted)
