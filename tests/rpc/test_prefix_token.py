"""Prefix tokens: whoever knows the project's name can make one, so what it holds is checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hummock.core.errors import InvalidRequest
from hummock.core.render import Locale, PrefixState, SeenMemory
from hummock.rpc.tokens import prefix_state, prefix_token

SEEN = SeenMemory(memory_id="世界.图鉴", turns=2, last_turn=3)
STATE = PrefixState(turn=3, base_turn=1, as_of=1.5, locale=Locale.ZH, prefix_ids=("世界.图鉴",), seen=(SEEN,))


def test_a_token_gives_back_the_state_that_it_was_made_of() -> None:
    """1.1-11."""
    for state in (STATE, replace(STATE, prefix_ids=(), seen=()), replace(STATE, seen=(SEEN,) * 128)):
        assert prefix_state("p", prefix_token("p", state)) == state
    assert prefix_state("p", b"") is None


@pytest.mark.parametrize(
    ("field", "state"),
    [
        ("prefix_ids", replace(STATE, prefix_ids=("a",) * 129)),
        ("prefix_ids", replace(STATE, prefix_ids=("长" * 86,))),
        ("seen", replace(STATE, seen=(SEEN,) * 129)),
        ("seen", replace(STATE, seen=(replace(SEEN, turns=-1),))),
        ("seen", replace(STATE, seen=(replace(SEEN, last_turn=1 << 31),))),
        ("seen", replace(STATE, seen=(replace(SEEN, memory_id="a" * 257),))),
        ("turn", replace(STATE, turn=1 << 31)),
        ("turn", replace(STATE, turn=-1)),
        ("turn", replace(STATE, base_turn=-1)),
        ("all_tokens", replace(STATE, prefix_tokens=-1)),
        ("all_tokens", replace(STATE, all_tokens=1 << 63)),
        ("as_of", replace(STATE, as_of=float("nan"))),
        ("as_of", replace(STATE, as_of=float("-inf"))),
    ],
)
def test_a_token_with_a_number_that_no_render_writes_is_refused(field: str, state: PrefixState) -> None:
    """1.1-11: as the caller's mistake, not as a failure of the service."""
    with pytest.raises(InvalidRequest) as refused:
        prefix_state("p", prefix_token("p", state))
    assert refused.value.field == f"prefix_token.{field}"


def test_a_token_is_bound_to_the_whole_name_of_its_project() -> None:
    """S0-06: also where names are long and begin alike."""
    token = prefix_token("项目" * 20 + "a", STATE)
    assert prefix_state("项目" * 20 + "a", token) == STATE
    for other in ("项目" * 20 + "b", "项目" * 20, "项" * 21, ""):
        with pytest.raises(InvalidRequest, match="prefix_token"):
            prefix_state(other, token)
