"""Sign bits of vectors: a prefilter that reads a sixteenth of the bytes of float16 rows.

A row is reduced to its signs; the query keeps its values in two bits. A sign that differs from the query's counts as
much as the query's value there. That orders rows roughly; the selected ones are scored exactly afterwards.

Bits are in blocks of 256 rows, (blocks, dim + 1, 4) uint64: bit r of [block, d, lane] is that of dim d of row
256 * block + 64 * lane + r, set when it is negative (-0.0 too). Zeros follow the dims of a block. So a processor adds
up 256 rows at once, each bit of their sums in parallel, and dims of weight 0 are not read.

Source: O'Neil & Quass, SIGMOD 1997 (bit slices, and the k best of them); Mula, Kurz & Lemire, The Computer Journal
61(1), 2018 (carry-save adders, sixteen inputs at a time).
"""

from typing import Any

import numpy as np
from llvmlite import ir

from hummock_kernels._jit import IS_COMPILED, cgutils, helper, intrinsic, kernel, types
from hummock_kernels._processor import bit_count, fetch
from hummock_kernels._types import (
    I32_1D,
    I64,
    OUT_I64_1D,
    OUT_U64_1D,
    OUT_U64_2D,
    OUT_U64_3D,
    U8_1D,
    U16_2D,
    U64_2D,
    U64_3D,
    VOID,
    Docs,
    Flags,
    Halves,
    Indices,
    Longs,
    Tuple,
)

WORD_BITS = 64
LANES = 4
BLOCK_ROWS = WORD_BITS * LANES
_GROUP = 16
"""Number of inputs added at once: their sum has four bits and a carry."""
_LINE_WORDS = 8


@intrinsic
def _add_by_cpu(
    typing_context: Any, bits: Any, start: Any, places: Any, first: Any, sums: Any, plane: Any, planes: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, places, sums = (
            context.make_array(signature.args[number])(context, builder, arguments[number]) for number in (0, 2, 4)
        )
        _, start, _, first, _, plane, planes = arguments
        number = ir.IntType(64)
        vector = ir.VectorType(number, LANES)

        def pointer(data: Any, place: Any) -> Any:
            return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())

        def sum_of(plane: Any) -> Any:
            return pointer(sums.data, builder.mul(plane, number(LANES)))

        inputs = []
        for own in range(_GROUP):
            place = builder.load(builder.gep(places.data, [builder.add(first, number(own))]))
            inputs.append(builder.load(pointer(bits.data, builder.add(start, place)), align=8))
        while len(inputs) > 1:
            total = builder.load(sum_of(plane), align=8)
            carries = []
            for one, other in zip(inputs[::2], inputs[1::2], strict=True):
                either = builder.xor(one, other)
                carries.append(builder.or_(builder.and_(one, other), builder.and_(either, total)))
                total = builder.xor(either, total)
            builder.store(total, sum_of(plane), align=8)
            inputs = carries
            plane = builder.add(plane, number(1))
        carry: Any = cgutils.alloca_once_value(builder, inputs[0])  # type: ignore[no-untyped-call] # Numba's own
        with cgutils.for_range_slice(builder, plane, planes, number(1), number) as (higher, _):
            total, carried = builder.load(sum_of(higher), align=8), builder.load(carry)
            builder.store(builder.xor(total, carried), sum_of(higher), align=8)
            builder.store(builder.and_(total, carried), carry)
        return context.get_dummy_value()

    one = types.int64
    return types.void(bits, one, places, one, sums, one, one), generate


def _add_by_hand(bits: Longs, start: int, places: Indices, first: int, sums: Longs, plane: int, planes: int) -> None:
    for place in places[first : first + _GROUP].tolist():
        for lane in range(LANES):
            carry = bits[start + place + lane]
            for higher in range(plane, planes):
                total = sums[higher, lane]
                sums[higher, lane], carry = total ^ carry, total & carry


_add_sixteen = _add_by_cpu if IS_COMPILED else _add_by_hand
"""Add sixteen slices of a block to its sums, as bits of `plane` of `planes`."""


@kernel(OUT_U64_2D(U16_2D))
def sign_bits(rows: Halves) -> Longs:
    """The signs of float16 values in uint16, (n, dim) -> (n, words) uint64, 64 dims a word.

    Bit b of word w is set when dim 64 * w + b is negative (-0.0 too); the last word is padded with zeros.
    """
    dim = rows.shape[1]
    bits = np.zeros((rows.shape[0], -(-dim // WORD_BITS)), np.uint64)
    for row in range(rows.shape[0]):
        for word in range(bits.shape[1]):
            start = word * WORD_BITS
            gathered = np.uint64(0)
            for column in range(start, min(start + WORD_BITS, dim)):
                gathered |= np.uint64(rows[row, column] >> 15) << np.uint64(column - start)
            bits[row, word] = gathered
    return bits


@kernel(VOID(U16_2D, I64, OUT_U64_3D))
def put_signs(rows: Halves, first: int, bits: Longs) -> None:
    """Write the signs of float16 values in uint16, (n, dim), as those of the rows from `first` on.

    Bits of earlier rows are unchanged, also for concurrent readers; those of later rows are lost.
    """
    dim = rows.shape[1]
    gathered = np.empty(dim, np.uint64)
    done = 0
    while done < rows.shape[0]:
        bit = (first + done) % WORD_BITS
        block, lane = (first + done) // BLOCK_ROWS, (first + done) // WORD_BITS % LANES
        earlier = (np.uint64(1) << np.uint64(bit)) - np.uint64(1)
        end = min(rows.shape[0], done + WORD_BITS - bit)
        for column in range(dim):
            gathered[column] = bits[block, column, lane] & earlier
        for row in range(done, end):
            for column in range(dim):
                gathered[column] |= np.uint64(rows[row, column] >> 15) << np.uint64(bit + row - done)
        for column in range(dim):
            bits[block, column, lane] = gathered[column]
        bits[block, dim, lane] = 0
        done = end


@helper()
def _inputs_of(query: Longs, dim: int, places: Indices, planes: Indices) -> tuple[int, int, int, int]:
    """Slices of a block to add, in groups of sixteen, and the plane of each group's bits.

    Dims where the query is negative come first, then the others; zeros pad the last group of each kind.

    Returns:
        Number of groups, number of groups of negative dims, weight of these dims, and weight of all dims.
    """
    size = 0
    negative_groups = 0
    negative_weight = 0
    weight = 0
    for is_positive in range(2):
        for plane in range(2):
            begin = size
            for column in range(dim):
                word, bit = column // WORD_BITS, np.uint64(column % WORD_BITS)
                if (query[0, word] >> bit) & np.uint64(1) == is_positive:
                    continue
                if (query[1 + plane, word] >> bit) & np.uint64(1) != 0:
                    places[size] = column * LANES
                    size += 1
            weight += (size - begin) << plane
            while size % _GROUP != 0:
                places[size] = dim * LANES
                size += 1
            planes[begin // _GROUP : size // _GROUP] = plane
        if is_positive == 0:
            negative_groups, negative_weight = size // _GROUP, weight
    return size // _GROUP, negative_groups, negative_weight, weight


@helper()
def _lines_of(places: Indices, block_words: int) -> Indices:
    """First words of a block's cache lines that hold any of these places, ascending."""
    is_read = np.zeros(-(-block_words // _LINE_WORDS), np.bool_)
    for place in places:
        is_read[place // _LINE_WORDS] = True
    return np.flatnonzero(is_read) * _LINE_WORDS


@helper()
def _passing(row_doc: Docs, allowed: Flags, words: int) -> Longs:
    """A bit for each row whose document is allowed, 64 per word, in `words` words."""
    passing = np.zeros(words, np.uint64)
    for word in range(min(words, -(-row_doc.shape[0] // WORD_BITS))):
        docs = row_doc[word * WORD_BITS : (word + 1) * WORD_BITS]
        first = docs[0]
        apart = np.int32(0)
        for own in range(docs.shape[0]):
            apart = np.int32(apart | np.int32(docs[own] - np.int32(first + own)))
        gathered = np.uint64(0)
        if apart == 0 and docs.shape[0] == WORD_BITS:
            # Consecutive documents of one row each: adjacent flags are read several at once.
            flags = allowed[first : first + WORD_BITS]
            for own in range(WORD_BITS):
                gathered |= np.uint64(flags[own] != 0) << np.uint64(own)
        else:
            for own in range(docs.shape[0]):
                gathered |= np.uint64(allowed[docs[own]] != 0) << np.uint64(own)
        passing[word] = gathered
    return passing


@helper()
def _keep_lightest(sums: Longs, among: Longs, kept: Longs, keep: int) -> int:
    """Mark in `kept` the `keep` rows of `among` with the smallest sums, or all if fewer; returns their number.

    Equal sums go to the first rows. `among` is overwritten.
    """
    left = keep
    for plane in range(sums.shape[0] - 1, -1, -1):
        heavy = sums[plane]
        light = 0
        for word in range(among.shape[0]):
            light += int(bit_count(among[word] & ~heavy[word]))
        if light > left:
            for word in range(among.shape[0]):
                among[word] &= ~heavy[word]
        else:
            left -= light
            for word in range(among.shape[0]):
                kept[word] |= among[word] & ~heavy[word]
                among[word] &= heavy[word]
    for word in range(among.shape[0]):
        while among[word] != 0 and left > 0:
            rest = among[word] & (among[word] - np.uint64(1))
            kept[word] |= among[word] ^ rest
            among[word] = rest
            left -= 1
    return keep - left


@kernel(Tuple((OUT_U64_2D, OUT_U64_1D))(U64_3D, I32_1D, U8_1D, U64_2D))
def weigh_signs(bits: Longs, row_doc: Docs, allowed: Flags, query: Longs) -> tuple[Longs, Longs]:
    """The weight by which each row's signs differ from the query's, and a bit for each row of an allowed document.

    Args:
        bits: (blocks, dim + 1, 4) as in the module; bits after the last row may be anything.
        row_doc: (n,) document of each row, ascending.
        allowed: (docs,) nonzero for documents whose rows may be returned.
        query: (3, words): its signs as in `sign_bits`, and the lower and the higher bit of each dim's weight, 0 to 3.

    Returns:
        (planes, n / 64) bits of the weights, the lowest first, meaningless where a row's bit is 0 in the second;
        (n / 64,), n rounded up to whole blocks.
    """
    rows = row_doc.shape[0]
    dim = bits.shape[1] - 1
    places = np.empty(2 * dim + 4 * _GROUP, np.int64)
    plane_of = np.empty(places.shape[0] // _GROUP, np.int64)
    groups, negative_groups, negative_weight, weight = _inputs_of(query, dim, places, plane_of)
    planes = 6  # of a group's own sum and its carry
    while weight >> planes > 0:
        planes += 1
    words = -(-rows // BLOCK_ROWS) * LANES
    passing = _passing(row_doc, allowed, words)
    sums = np.zeros((planes, words), np.uint64)
    # A block's own sums, side by side: the rows of `sums` lie a power of two apart, in the same cache sets.
    own = np.empty((planes, LANES), np.uint64)
    slices = bits.reshape(-1)
    block_words = bits.shape[1] * LANES
    lines = _lines_of(places[: groups * _GROUP], block_words)
    fetched = -(-lines.shape[0] // max(groups, 1))
    # Rows differ from a negative query where their bits are not set: the first groups are subtracted from the weight.
    begin = (1 << planes) - 1 - negative_weight
    for at in range(0, words, LANES):
        is_passed = np.uint64(0)
        for word in range(at, at + LANES):
            is_passed |= passing[word]
        if is_passed == 0:
            continue
        start = at // LANES * block_words
        ahead = min(start + block_words, bits.size - block_words)
        for plane in range(planes):
            own[plane] = ~np.uint64(0) if begin >> plane & 1 else np.uint64(0)
        for group in range(groups):
            if group == negative_groups:
                for plane in range(planes):
                    for lane in range(LANES):
                        own[plane, lane] = ~own[plane, lane]
            # Prefetch a share of the next block each time: all at once the loads would compete.
            for line in lines[group * fetched : (group + 1) * fetched]:
                fetch(bits, ahead + line)
            _add_sixteen(slices, start, places, group * _GROUP, own, plane_of[group], planes)
        flipped = ~np.uint64(0) if groups == negative_groups else np.uint64(0)
        for plane in range(planes):
            for lane in range(LANES):
                sums[plane, at + lane] = own[plane, lane] ^ flipped
    return sums, passing


@kernel(OUT_I64_1D(U64_2D, OUT_U64_1D, I64))
def take_lightest(weights: Longs, left: Longs, keep: int) -> Indices:
    """The rows with the smallest weights among those whose bit is set in `left`, where the bits taken are cleared.

    Args:
        weights: (planes, words) as from `weigh_signs`.
        left: (words,) bits of rows, as from `weigh_signs`.
        keep: Upper bound on the result; 0 or less gives nothing.

    Returns:
        (at most keep,) row numbers, ascending; ties at the last weight go to the smaller rows.
    """
    kept = np.zeros(left.shape[0], np.uint64)
    found = np.empty(_keep_lightest(weights, left.copy(), kept, max(keep, 0)), np.int64)
    size = 0
    for word in range(left.shape[0]):
        left[word] &= ~kept[word]
        while kept[word] != 0:
            rest = kept[word] & (kept[word] - np.uint64(1))
            found[size] = word * WORD_BITS + np.int64(bit_count((kept[word] ^ rest) - np.uint64(1)))
            kept[word] = rest
            size += 1
    return found
