"""The service."""

import os

# Otherwise ONNX Runtime keeps an id of this machine, and sends its maker an event for each model that is loaded. It
# looks when it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
