"""The tag around a site: neutral to everything but those who ask for it."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import operations as ops
import pytato as pt
import pytest
from looking import arrays_in, number_of_sites
from pytools.tag import Tag, UniqueTag, check_tag_uniqueness

import pytato_provenance as pp
from pytato_provenance._host import host
from pytato_provenance.diagnostic import NotAnArrayError
from pytato_provenance.sites import UNKNOWN, CreationSite, synthetic_site
from pytato_provenance.tags import (
    CreatedAt,
    SitedTags,
    has_site,
    replace_site,
    set_site,
    shallow_copy,
    site_of,
    site_tags,
    with_site,
)


pytestmark = pytest.mark.usefixtures("disabled_afterwards")


class Foo(Tag):
    pass


class Bar(UniqueTag):
    pass


FOO, BAR = Foo(), Bar()


def a_site() -> CreationSite:
    return synthetic_site("a pass")


def dag(x: Any = None) -> Any:
    x = pt.make_placeholder(name="x", shape=(4,), dtype=float) if x is None else x
    return pt.roll(x + 1, 1) * pt.stack([x, x])


# {{{ asking

def test_what_is_asked_must_be_an_array():
    pp.enable()
    inputs = ops.Inputs()
    assert isinstance(pp.created_at(inputs.x), CreationSite)
    wrong = {
        3: "'int'", None: "'NoneType'", "x": "'str'", np.zeros(3).tobytes(): "'bytes'",
        inputs.names: r"DictOfNamedArrays.*result\['name'\]",
        inputs.loopy_call: r"LoopyCall.*result\['name'\]"}
    for value, message in wrong.items():
        with pytest.raises(NotAnArrayError, match=message):
            pp.created_at(value)
        with pytest.raises(TypeError):
            pp.created_at(value)
    with pytest.raises(NotAnArrayError, match="contributors"):
        pp.created_at(pt.generate_loopy(inputs.lam))
    with pytest.raises(NotAnArrayError, match="'ndarray'"):
        pp.created_at(np.zeros(3))


def test_of_any_node():
    pp.enable()
    inputs = ops.Inputs()
    assert site_of(inputs.x) is pp.created_at(inputs.x)
    assert isinstance(site_of(inputs.loopy_call), CreationSite)
    assert site_of(3) is None
    assert not has_site(object())
    if not ops.IS_RELEASED:
        assert str(site_of(inputs.traced)) == str(
            pp.created_at(inputs.function.get_placeholder("in__pt_0")))

# }}}


# {{{ the tag

def test_one_tag_a_site():
    site = a_site()
    assert site_tags(site) is site_tags(site)
    one, other = CreatedAt(site), CreatedAt(synthetic_site("another pass"))
    assert one == one
    assert one != other
    assert len({one, other}) == 2
    assert isinstance(one, UniqueTag)
    assert one.site is site
    assert repr(one) == "CreatedAt(synthetic (made by a pass))"
    check_tag_uniqueness(frozenset({one, FOO, BAR}))
    if host().created_at is not None:
        assert isinstance(one, host().created_at)


@pytest.mark.skipif(ops.IS_RELEASED, reason="keeps no tags apart")
def test_the_tag_is_pickled_as_its_site():
    pp.enable()
    array = dag()
    tag, = array.non_equality_tags
    assert pickle.loads(pickle.dumps(tag)) is tag
    assert copy.deepcopy(tag).site is tag.site
    data = pickle.dumps(array)
    assert number_of_sites(pickle.loads(data)) == 1


def test_it_can_be_read_like_the_hosts_own_tag():
    pp.enable()
    site = pp.created_at(dag())
    stack = CreatedAt(site).traceback
    assert [frame.lineno for frame in stack.frames] == [
        frame.lineno for frame in reversed(site.frames)]
    last = stack.frames[-1]
    assert (last.filename, last.name) == (__file__, "dag")
    assert last.line == site.user_frame.line
    assert last.short_str() == (
        f"{__file__}:{last.lineno}, in dag(): {last.line.strip()}")
    assert len(last.short_str(20)) == 20
    assert repr(last) == last.short_str(10**6)
    summary = stack.to_stacksummary()
    assert [(frame.lineno, frame.line) for frame in summary][-1] == (
        last.lineno, last.line.strip())
    assert "".join(summary.format())
    assert stack.short_str() == (
        f"test_tags.py:{last.lineno} in dag: {last.line.strip()}")
    assert len(stack.short_str(30)) == 30
    assert repr(stack).splitlines()[-1].strip() == str(site.user_frame)

# }}}


# {{{ a set of tags with a site beside its elements

SETS = [frozenset(), frozenset({FOO}), frozenset({FOO, BAR})]


@pytest.mark.parametrize("tags", SETS, ids=len)
def test_a_sited_set_is_like_the_plain_one(tags):
    sited = SitedTags(tags, a_site())
    assert sited == tags
    assert tags == sited
    assert hash(sited) == hash(tags)
    assert repr(sited) == repr(frozenset(sited))
    assert str(sited) == str(frozenset(sited))
    assert isinstance(sited, frozenset)
    assert list(sited) == list(frozenset(sited))
    assert {sited: 1}[tags] == 1
    assert (FOO in sited) == (FOO in tags)
    assert len(sited) == len(tags)
    assert bool(sited) == bool(tags)
    assert sited <= tags <= sited
    assert sited ^ tags == frozenset()


@pytest.mark.parametrize("tags", SETS, ids=len)
def test_what_is_derived_keeps_the_site(tags):
    site = a_site()
    sited = SitedTags(tags, site)
    other = frozenset({BAR})
    derived = {
        "or": (sited | other, tags | other), "ror": (other | sited, other | tags),
        "sub": (sited - other, tags - other), "and": (sited & other, tags & other),
        "union": (sited.union(other, [FOO]), tags.union(other, [FOO])),
        "difference": (sited.difference(other), tags.difference(other)),
        "copy": (sited.copy(), tags), "copy.copy": (copy.copy(sited), tags),
        "deepcopy": (copy.deepcopy(sited), tags),
        "pickle": (pickle.loads(pickle.dumps(sited)),
                   pickle.loads(pickle.dumps(tags)))}
    for name, (result, expected) in derived.items():
        assert type(result) is SitedTags, name
        assert result.created_at is site, name
        assert {type(tag) for tag in result} == {type(tag) for tag in expected}, name
    for operator in ("__or__", "__sub__", "__and__", "__ror__"):
        assert getattr(sited, operator)([BAR]) is NotImplemented
    with pytest.raises(TypeError):
        _ = sited | [BAR]


def test_the_first_site_stays_in_a_union_of_two():
    one, other = SitedTags([FOO], a_site()), SitedTags([BAR], synthetic_site("other"))
    assert (one | other).created_at is one.created_at
    assert (one | other) == frozenset({FOO, BAR})


@pytest.mark.parametrize("tags", SETS, ids=len)
def test_keys_of_caches_on_disk_are_those_of_the_plain_set(tags):
    from loopy.tools import LoopyKeyBuilder
    from pytools.persistent_dict import KeyBuilder
    sited = SitedTags(tags, a_site())
    for builder in (LoopyKeyBuilder(), KeyBuilder()):
        assert builder(sited) == builder(tags)
        assert builder((1, sited)) == builder((1, tags))

# }}}


# {{{ neutrality of whole graphs

def test_equality_and_hash():
    x = pt.make_placeholder(name="x", shape=(4,), dtype=float)
    plain = dag(x)
    with pp.recording():
        recorded = dag(x)
        again = dag(x)
    assert plain == recorded == again
    assert recorded == plain
    assert hash(plain) == hash(recorded) == hash(again)
    assert plain in {recorded}
    assert pp.created_at(recorded) is not None
    assert all(a.tags == b.tags and hash(a.tags) == hash(b.tags) for a, b in zip(
        arrays_in(plain), arrays_in(recorded), strict=True))


def test_generated_code_and_kernels():
    import loopy as lp
    from loopy.tools import LoopyKeyBuilder

    def program():
        return pt.generate_loopy(pt.make_dict_of_named_arrays({"out": dag()}))

    plain = program().program
    with pp.recording():
        recorded = program().program
    assert str(plain) == str(recorded)
    assert plain == recorded
    assert LoopyKeyBuilder()(plain) == LoopyKeyBuilder()(recorded)
    assert lp.generate_code_v2(plain).device_code() == (
        lp.generate_code_v2(recorded).device_code())
    assert plain.default_entrypoint.instructions == (
        recorded.default_entrypoint.instructions)
    # No class of ours goes where loopy pickles it.
    assert b"pytato_provenance" not in pickle.dumps(recorded)


def test_pickle_and_deepcopy_keep_sites_and_share_stacks():
    def deep(depth):
        if depth:
            return deep(depth - 1)
        x = pt.make_placeholder(name="x", shape=(4,), dtype=float)
        plain = x
        for _ in range(60):
            plain = plain + 1
        return plain

    plain = deep(30)
    with pp.recording():
        recorded = deep(30)
    for copied in (pickle.loads(pickle.dumps(recorded)), copy.deepcopy(recorded)):
        for one, other in zip(arrays_in(copied), arrays_in(recorded), strict=True):
            assert site_of(one) is site_of(other) is not None
    # 61 arrays of two lines, 30 frames deep: two stacks.
    assert len(pickle.dumps(recorded)) < len(pickle.dumps(plain)) + 20_000


def test_a_pickle_of_plain_arrays_is_not_ours():
    pp.enable()
    with pp.recording(False):
        assert b"provenance" not in pickle.dumps(dag())


def test_nothing_is_held_alive():
    class Local:
        pass

    def function():
        local = Local()
        array = pt.make_data_wrapper(np.zeros(4)) + 1
        return array, weakref.ref(local), weakref.ref(array.bindings[
            next(iter(array.bindings))].data)

    pp.enable()
    gc.collect()
    gc.disable()
    try:
        array, local, data = function()
        site = pp.created_at(array)
        assert local() is None
        reference = weakref.ref(array)
        del array
        assert reference() is None
        assert data() is None
    finally:
        gc.enable()
    assert site.user_frame.qualname.endswith("function")
    assert not any(hasattr(item, "f_locals") for item in gc.get_referents(site))

# }}}


# {{{ setting sites

def test_with_site_copies():
    pp.enable()
    array = dag()
    old = site_of(array)
    changed = with_site(array, a_site())
    assert changed is not array
    assert changed == array
    assert hash(changed) == hash(array)
    assert site_of(changed) is a_site()
    assert site_of(array) is old
    assert with_site(changed, a_site()) is changed
    assert number_of_sites(changed) == 1
    assert site_of(with_site(array, UNKNOWN)) is UNKNOWN
    call = ops.Inputs().loopy_call
    assert site_of(with_site(call, a_site())) is a_site()
    assert site_of(call) is not a_site()
    assert with_site(call, a_site()) == call


def test_set_site_and_other_tags():
    array = dag()
    set_site(array, a_site())
    assert site_of(array) is a_site()
    assert number_of_sites(array) == 1
    if ops.IS_RELEASED:
        array.tags = array.tags | {FOO}
        assert site_of(array) is a_site()
    else:
        array = array.tagged(FOO)
        object.__setattr__(array, "non_equality_tags", array.non_equality_tags | {BAR})
        assert site_of(array) is a_site()
        replace_site(array, UNKNOWN)
        assert array.non_equality_tags >= {BAR}
    replace_site(array, UNKNOWN)
    assert site_of(array) is UNKNOWN
    assert number_of_sites(array) == 1
    assert array.tags == {FOO}


def test_a_shallow_copy_has_the_fields_only():
    pp.enable()
    array = dag()
    hash(array)
    _ = array.shape, array.dtype
    copied = shallow_copy(array)
    assert type(copied) is type(array)
    assert not [name for name in vars(copied) if "memoize" in name or "hash" in name]
    assert copied == array
    assert hash(copied) == hash(array)
    assert site_of(copied) is site_of(array)

# }}}
