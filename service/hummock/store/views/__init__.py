"""Views, which are projects in memory after a certain write: columns, sign bits and the inverted index."""
