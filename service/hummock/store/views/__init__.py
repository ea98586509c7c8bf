"""Projects in memory: columns, sign bits and the inverted index, each view as it is after a certain write."""
