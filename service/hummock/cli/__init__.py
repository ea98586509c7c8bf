"""The command line. Its light commands need the client's packages only; `serve` and its like import the rest late."""
