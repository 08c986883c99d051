import numpy as np
import numpy.typing as npt

def nearest(
    query: npt.NDArray[np.int16],
    codes: npt.NDArray[np.uint8],
    neighbours: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.uint64],
    level_starts: npt.NDArray[np.int32],
    entry: int,
    top_level: int,
    allowed: npt.NDArray[np.uint8],
    count: int,
    width: int,
) -> npt.NDArray[np.int64]: ...
