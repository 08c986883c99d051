"""Encoders: documents and queries to vectors of one space."""

import os

# Before a module here imports onnxruntime, which otherwise reports its use to its publisher, and stores an identifier
# of the machine in the home directory.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
