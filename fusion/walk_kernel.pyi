import numpy as np
import numpy.typing as npt

def walk(
    offsets: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    seeds: npt.NDArray[np.int64],
    start: npt.NDArray[np.float64],
    index: npt.NDArray[np.int32],
    allowed: npt.NDArray[np.uint8],
    steps: int,
    follow: float,
    hops: int,
    cap: int,
    fanout: int,
    seed_fanout: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
