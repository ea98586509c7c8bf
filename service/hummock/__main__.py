"""`python -m hummock` is the command `hummock`."""

from hummock.cli.main import main

if __name__ == "__main__":
    main()
