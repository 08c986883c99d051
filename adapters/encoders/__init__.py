"""Encoders of documents and queries into one vector space."""

import os

# Set before a module here imports onnxruntime, which otherwise sends telemetry and stores an identifier of the machine
# in the home directory.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
