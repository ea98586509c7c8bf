"""Repository indexing: a folder of source files as memories."""
