"""This service, which encodes each query itself. It shares the index of ``ours``."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.products.ours import Product as Ours
from benchmarks.peers.products.product import Doc


class Product(Ours):
    def search(self, text: str, vector: np.ndarray) -> list[Doc]:
        del vector
        return self._search(text, None)
