"""Input of `rank`: candidates with their scores by path, and the weights of the query and the paths."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hummock_kernels._jit import named, record, types
from hummock_kernels._types import F32_1D, F64, I32_1D, U8_1D, U8_2D, U32_1D, Docs, Flags, Vector, Words

Rows: TypeAlias = NDArray[np.void]

ROW = np.dtype(
    [
        ("doc", np.int64),
        ("create_time", np.float64),
        ("event_time", np.float64),
        ("text_hash", np.uint64),
        ("copy_hash", np.uint64),
        ("session", np.uint64),
        ("name_hash", np.uint64),
        ("session_position", np.int32),
        ("speaker", np.uint32),
        ("file", np.uint32),
        ("kind", np.uint8),
        ("origin", np.uint8),
        ("traits", np.uint8),
    ],
    align=True,
)
"""What is known of a candidate without a query; `hummock.core.candidates.MemoryColumns` says what the fields hold.

`copy_hash` is equal for copies, of which the newest is shown."""

ROWS = types.Array(record(ROW), 1, "C", readonly=True)
OUT_ROWS = types.Array(record(ROW), 1, "C")

VECTOR, KEYWORD, NAMED, KEY_FILE, HOLDER = 1, 2, 4, 8, 16
"""Bits of `found_by`: the paths; NAMED is a domain that the query names, KEY_FILE a fragment of such a domain, HOLDER
one of the few memories that contain the name that the query consists of."""

CODE, SAID, AGELESS, SENTENCE, ASKING, ASKING_FIRST = 1, 2, 4, 8, 16, 32
"""Bits of `marks`: code; said by a user or a model; does not age; a sentence, which gains from its neighbours; a text
that ends in a question; a text with a question and more."""


class Pool(NamedTuple):
    """Candidates with their scores by path.

    Attributes:
        rows: (n,) of ROW.
        cosine: (n,) of the best chunk; NaN without a vector.
        keyword: (n,) BM25, not negative.
        matched: (n,) bit i is set where term i of the query matched.
        evidence: (n,) strength of its matched words; 1 and more is enough without any similarity.
        late: (n,) max-sim of the token vectors; NaN without any.
        found_by: (n,) bits VECTOR, KEYWORD, NAMED, KEY_FILE and HOLDER.
        marks_of: (3, 256) bits CODE, SAID, AGELESS, SENTENCE, ASKING and ASKING_FIRST by kind, by origin and by traits.
        time_match: (n,) agreement of its time with the query's, in [0, 1]; (0,) if the query has none.
        verdict: (n,) factor from its verdicts, above 0; (0,) if there are none.
        tie: (n,) numbers that break ties.
    """

    rows: Rows
    cosine: Vector
    keyword: Vector
    matched: Words
    evidence: Vector
    late: Vector
    found_by: Flags
    marks_of: Flags
    time_match: Vector
    verdict: Vector
    tie: Docs


ORIGINS = 16
"""Number of origins that are counted."""


class Tally(NamedTuple):
    """Counts of a pool's candidates, those left out included; `rank` gives them in this order, then those by origin.

    Attributes:
        echoes: Left out because they repeat the query.
        older_copies: Left out because a newer candidate has the same text.
        dissimilar: Left out because they are not similar enough.
        ties: Decisions by `tie`.
        by_vector: Found by vector.
        by_keyword: Found by keyword.
        by_domain: Found by the name of a domain, or in a key file of one.
        by_name: Domains that the query names, and holders of the name that it is.
        turns: In a session.
        spoken: With a known speaker.
        filed: With a file.
    """

    echoes: int
    older_copies: int
    dissimilar: int
    ties: int
    by_vector: int
    by_keyword: int
    by_domain: int
    by_name: int
    turns: int
    spoken: int
    filed: int


class Weights(NamedTuple):
    """Properties of the query, and weights of the paths.

    Attributes:
        unrelated: Cosine of unrelated texts, below 1; similarity counts from there.
        min_similarity: Smallest cosine of candidates without evidence from words or a name.
        min_of_best: Smallest cosine, under the same condition, of the best candidate of the recall.
        best_cosine: Cosine of that best candidate; several may have it.
        vector_share: Largest share of the vector path and of late interaction, in [0, 1].
        decay_rate: Decrease of the logarithm of a score in a day; 0 switches decay off.
        as_of: Unix seconds from which ages are counted.
        echo_window_s: Age in seconds up to which what was said may be an echo of the query.
        even_similarity: Best similarity of the pool at which the vector path weighs as much as the keyword path.
        steepness: The odds of the vector path grow with that similarity as its power.
        enough_terms: Share of the query's terms from which on their match is strong evidence, in [0, 1].
        scarcity: The odds of the vector path grow with the best candidate's shortfall from it, as its power.
        code_odds: Factor of those odds for code.
        name_odds: Factor of those odds, and of late interaction's share, if a candidate contains the whole query.
        key_file_evidence: Share of the distance to the best score that a fragment of a key file gains, in [0, 1].
        late_share: Largest share of late interaction, in [0, 1].
        late_from: Best similarity of the pool up to which late interaction has no share.
        late_full: Best similarity of the pool from which on late interaction has its largest share.
        neighbour_weight: Share of a sentence's score that its neighbours in the session gain; 0 switches lending off.
        answer_weight: Share of a question's score that its answer gains.
        asking_loss: Share of its own score that a text ending in a question then loses.
        time_share: Share of `time_match`, in [0, 1].
        decay_floor: Share of a score that age never removes, in [0, 1].
    """

    unrelated: float
    min_similarity: float
    min_of_best: float
    best_cosine: float
    vector_share: float
    decay_rate: float
    as_of: float
    echo_window_s: float
    even_similarity: float
    steepness: float
    enough_terms: float
    scarcity: float
    code_odds: float
    name_odds: float
    key_file_evidence: float
    late_share: float
    late_from: float
    late_full: float
    neighbour_weight: float
    answer_weight: float
    asking_loss: float
    time_share: float
    decay_floor: float


POOL = named(Pool, ROWS, F32_1D, F32_1D, U32_1D, F32_1D, F32_1D, U8_1D, U8_2D, F32_1D, F32_1D, I32_1D)
WEIGHTS = named(Weights, *[F64] * len(Weights._fields))
