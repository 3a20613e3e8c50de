from __future__ import annotations

import numpy as np
import pytest

from xcfg.errors import ArtifactError
from xcfg.importers.padded import cut, kept, refuse_unmasked, samples
from xcfg.model.recorded import Row


def row(**fields: object) -> Row:
    return Row(place="f.npz", fields=fields)


def test_a_flat_row_is_one_sample() -> None:
    one = row(ids=[1, 2], extra="x")
    assert list(samples(one, "ids", ())) == [one]


def test_a_batch_gives_item_i_of_its_columns_and_shares_the_rest() -> None:
    batch = row(ids=np.array([[1, 2], [3, 4]]), uid=["a", "b"], temperature=0.5, none=None, unread=[1, 2, 3])
    first, second = samples(batch, "ids", ("uid", "temperature", "none", "absent"))
    assert first.place == "f.npz sample 0"
    assert second.fields["ids"].tolist() == [3, 4]
    assert {name: second.fields[name] for name in second.fields if name != "ids"} == {
        "uid": "b",
        "temperature": 0.5,
        "none": None,
    }


def test_a_column_of_another_length_is_refused() -> None:
    with pytest.raises(ArtifactError, match="uid holds 1 items for the 2 sequences of ids"):
        list(samples(row(ids=[[1], [2]], uid=["a"]), "ids", ("uid",)))


@pytest.mark.parametrize(
    ("mask", "found"),
    [
        ([0, 0, 1, 1], slice(2, 4)),
        ([1, 1, 0, 0], slice(0, 2)),
        ([0, 1, 1, 0], slice(1, 3)),
        ([1, 1], slice(0, 2)),
        ([0, 0], slice(0, 0)),
        ([], slice(0, 0)),
    ],
)
def test_tokens_lie_in_one_run(mask: list[int], found: slice) -> None:
    assert kept(np.array(mask, dtype=bool), row(), "m") == found


def test_a_hole_names_its_place() -> None:
    with pytest.raises(ArtifactError, match="m is 0 at 3 between tokens"):
        kept(np.array([0, 1, 1, 0, 1], dtype=bool), row(), "m")


def test_a_cut_needs_the_width_of_the_tokens() -> None:
    assert cut(np.arange(4), slice(1, 3), 4, row(), "v").tolist() == [1, 2]
    with pytest.raises(ArtifactError, match="v is 3 wide for 4 padded tokens"):
        cut(np.arange(3), slice(1, 3), 4, row(), "v")


def test_padded_arrays_need_their_mask_and_lists_do_not() -> None:
    with pytest.raises(ArtifactError, match="ids is an array of padded sequences without m"):
        refuse_unmasked(row(ids=np.zeros((1, 2))), "ids", "m")
    refuse_unmasked(row(ids=np.zeros((1, 2)), m=None), "ids", "m")
    refuse_unmasked(row(ids=[[1, 2]]), "ids", "m")
