from fusion.sort import descending_by_numpy as descending
from fusion.sort import distinct_by_numpy as distinct
from fusion.sort import tied_by_numpy as tied

__all__ = ["descending", "distinct", "tied"]
