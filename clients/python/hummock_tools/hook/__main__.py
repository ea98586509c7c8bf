"""Runs the hook: `python -m hummock_tools.hook`."""

from hummock_tools.hook.main import main

main()
