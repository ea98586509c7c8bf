"""sqlite-vec and FTS5 in one SQLite file: a filter by project and tag inside both; joining and MMR in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import numpy as np
import sqlite_vec

from bench.peers.work import CANDIDATES, Memory, Question, Search, different, joined, run

_NEAREST = (
    "SELECT rowid FROM vectors WHERE embedding MATCH ? AND k = ? AND project = ? "
    "AND rowid IN (SELECT place FROM tagged WHERE project = ? AND tag = ?)"
)
_WORDS = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words, 0, 0, 1) LIMIT ?"


def _connected(directory: Path) -> apsw.Connection:
    # Not the interpreter's own sqlite3: many are built without extensions.
    database = apsw.Connection(str(directory / "memories.db"))
    database.enable_load_extension(True)
    database.load_extension(sqlite_vec.loadable_path())
    return database


def store(memories: Sequence[Memory], directory: Path) -> None:
    """Texts, tags, vectors partitioned by project, and words with project and tags as columns of their own."""
    with closing(_connected(directory)) as database:
        database.execute(
            f"""
            PRAGMA journal_mode = WAL;
            CREATE TABLE memories (place INTEGER PRIMARY KEY, text TEXT);
            CREATE TABLE tagged (project TEXT, tag TEXT, place INTEGER, PRIMARY KEY (project, tag, place))
                WITHOUT ROWID;
            CREATE VIRTUAL TABLE vectors USING vec0(
                project TEXT PARTITION KEY, embedding FLOAT[{len(memories[0].vector)}] DISTANCE_METRIC = cosine
            );
            CREATE VIRTUAL TABLE words USING fts5(project, tags, terms, content = '');
            """
        ).fetchall()
        with database:
            for memory in memories:
                place, project = memory.place, memory.project
                database.execute("INSERT INTO memories VALUES (?, ?)", (place, memory.text))
                database.executemany(
                    "INSERT INTO tagged VALUES (?, ?, ?)", [(project, tag, place) for tag in memory.tags]
                )
                vector = memory.vector.tobytes()
                database.execute(
                    "INSERT INTO vectors (rowid, project, embedding) VALUES (?, ?, ?)", (place, project, vector)
                )
                fields = (place, project, " ".join(memory.tags), memory.terms)
                database.execute("INSERT INTO words (rowid, project, tags, terms) VALUES (?, ?, ?, ?)", fields)
        with database:
            database.execute("INSERT INTO words (words) VALUES ('optimize')")
        database.execute("ANALYZE")


@contextmanager
def opened(directory: Path) -> Iterator[Search]:
    """Four statements a search."""
    with closing(_connected(directory)) as database:

        def search(question: Question) -> list[str]:
            project, tag, vector = question.project, question.tag, question.vector.tobytes()
            near = database.execute(_NEAREST, (vector, CANDIDATES, project, project, tag))
            terms = " OR ".join(f'"{term}"' for term in question.terms.split())
            match = f'project : "{project}" AND tags : "{tag}" AND terms : ({terms})'
            said = database.execute(_WORDS, (match, CANDIDATES))
            places = joined([row[0] for row in near], [row[0] for row in said])
            marks = ", ".join("?" * len(places))
            held = dict(database.execute(f"SELECT rowid, embedding FROM vectors WHERE rowid IN ({marks})", places))  # noqa: S608 - question marks
            vectors = np.stack([np.frombuffer(held[place], np.float32) for place in places])
            chosen = [places[row] for row in different(question.vector, vectors)]
            marks = ", ".join("?" * len(chosen))
            texts = dict(database.execute(f"SELECT place, text FROM memories WHERE place IN ({marks})", chosen))  # noqa: S608 - question marks
            return [texts[place] for place in chosen]

        yield search


if __name__ == "__main__":
    run("sqlite-vec", store, opened)
