"""Faults of what a child writes, and of its ranks."""

from attrs import frozen

from .place import Done, Place
from .rows_processes import Trains
from .table import Fault


@frozen
class OnTwoRanks:
    """Run the experiment with a training side of two ranks under torch's elastic launcher."""

    scorer: str

    def __call__(self, place: Place) -> Done:
        sides = {"rollout.dtype": "bfloat16", "training.compute_dtype": "bfloat16", "training.world_size": 2}
        place.write(self.scorer, baseline=sides)
        return place.run()


def _unpickled(place: Place) -> Done:
    done = Trains("Pickled")(place)
    assert not (place.home / "unpickled").exists()
    return done


def _other_version(place: Place) -> Done:
    place.write("fake", training={"scorer": "fake", "checkpoint": {"path": "model", "weight_version": "step-8"}})
    return place.run()


INVALID = {"status": "invalid_artifact", "code": 6, "kept": "1 sealed, 1 failed"}
ROWS = (
    Fault(
        name="half an artifact",
        how="half of the tensor file reaches the disk",
        do=Trains("HalfTensor"),
        says="rank 0: schema or tensors are not what it recorded",
        **INVALID,
    ),
    Fault(
        name="killed in the middle of its artifact",
        how="SIGKILL when the tensors are written and their record is not",
        do=Trains("KilledBetween"),
        status="scorer_error",
        code=7,
        kept="1 sealed, 1 failed",
        says=r"the process ended with signal 9 \(score\)",
    ),
    Fault(
        name="a tensor of another shape",
        how="one logprob too few in the tensor file",
        do=Trains("OtherShape"),
        says=r"rank 0: unusable tensors: action_mask and logprobs must hold 5 tokens",
        **INVALID,
    ),
    Fault(
        name="a tensor of another dtype",
        how="logprobs in float64",
        do=Trains("OtherDtype"),
        says="rank 0: unusable tensors: logprobs must be float32 and action_mask bool",
        **INVALID,
    ),
    Fault(
        name="an artifact with a pickle inside",
        how="the tensor file is a pickle; it is never loaded",
        do=_unpickled,
        says="rank 0: unusable tensors",
        **INVALID,
    ),
    Fault(
        name="NaN",
        how="the logprob of the first active token is NaN",
        do=Trains("fake_nan"),
        status="non_finite",
        code=6,
        kept="2 sealed",
        says="not finite.*",
    ),
    Fault(
        name="wrong weights",
        how="the engine loaded another checkpoint than the plan's",
        do=Trains("WrongWeights"),
        status="invalid_identity",
        code=6,
        kept="1 sealed, 1 failed",
        says=r"the engine's checkpoint_digest is SHA-256, the plan's is SHA-256",
    ),
    Fault(
        name="wrong weight version",
        how="the sides declare step-7 and step-8",
        do=_other_version,
        status="invalid_identity",
        code=6,
        kept="2 sealed",
        says="weight_version.*step-8",
    ),
    Fault(
        name="weights change while they score",
        how="one weight moves by one unit in the last place",
        do=Trains("fake_state_changed"),
        status="invalid_identity",
        code=6,
        kept="2 sealed",
        says="training model state changed while scoring[^|]*",
    ),
    Fault(
        name="a rank is missing",
        how="two ranks are reported and the rows of one are there",
        do=Trains("fake_dropped_rank"),
        says="rank 0 saw 2 ranks, 1 were launched",
        **INVALID,
    ),
    Fault(
        name="a launched rank is lost",
        how="one of two launched ranks is killed while it scores",
        do=OnTwoRanks("SharedLost"),
        status="scorer_error",
        code=7,
        kept="1 sealed, 1 failed",
        says=r"the process ended with exit code 1 \(score\)",
        needs="torch",
    ),
    Fault(
        name="a rank is there twice",
        how="its rows are reported a second time",
        do=Trains("RankTwice"),
        status="invalid_artifact",
        code=6,
        kept="2 sealed",
        says="training has sequence.*",
    ),
    Fault(
        name="two ranks say they are the same",
        how="both of two launched ranks report rank 0",
        do=OnTwoRanks("SharedTwice"),
        says=r"rank 1 wrote rows or metadata of ranks \[0, 1\]",
        needs="torch",
        **INVALID,
    ),
    Fault(
        name="rows out of order",
        how="reported from the last to the first; they are put in order",
        do=Trains("OutOfOrder"),
        status="pass",
        code=0,
        kept="2 sealed",
    ),
    Fault(
        name="ranks out of order",
        how="rank 1 is done long before rank 0",
        do=OnTwoRanks("SharedLate"),
        status="pass",
        code=0,
        kept="2 sealed",
        needs="torch",
    ),
)
