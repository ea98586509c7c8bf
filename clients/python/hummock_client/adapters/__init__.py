"""Hummock where others expect a retriever or tools; each module but `tools` needs the extra of its name."""
