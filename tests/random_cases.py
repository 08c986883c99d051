"""How many random cases a test tries: few by default, many every night (``TRIVIUM_TEST_NIGHTLY=1``)."""

from __future__ import annotations

import os

IS_NIGHTLY = os.environ.get("TRIVIUM_TEST_NIGHTLY") == "1"
RANDOM_CASES = 1_000 if IS_NIGHTLY else 100
