"""Days in the time zones of requests, of projects, and of callers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import settings_pb2
from tests.rpc.edge import refusal_of
from tests.service.calls import ask, learn
from tests.service.inputs import note
from tests.service.running import Stubs

SHANGHAI = "Asia/Shanghai"
DIARY = {
    "the day before": "2026-11-25T10:00+08:00",
    "yesterday": "2026-11-26T10:00+08:00",
    "this morning": "2026-11-27T06:50+08:00",
}
MORNING, EVENING = "2026-11-27T07:00+08:00", "2026-11-27T20:00+08:00"


def stamp(written: str) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(datetime.fromisoformat(written).astimezone(UTC))
    return found


@pytest.fixture
def diary(service: Stubs, project: str) -> str:
    texts = ("整理了阳台上的花盆", "去河边拍了照片", "买了两斤橘子")
    told = zip(DIARY.items(), texts, strict=True)
    learn(service, project, *(note(text, id=id_, event_time=stamp(at)) for (id_, at), text in told))
    return project


def live_in(service: Stubs, project: str, zone: str) -> None:
    chosen = settings_pb2.ProjectSettings(times=settings_pb2.TimeSettings(zone=zone))
    service.project.UpdateProjectSettings(
        projects.UpdateProjectSettingsRequest(
            project=project, settings=chosen, update_mask=FieldMask(paths=["times.zone"])
        )
    )


def first(service: Stubs, project: str, at: str, **options: Any) -> str:
    return ask(service, project, "我昨天做了什么？", as_of=stamp(at), **options).hits[0].memory.id


@pytest.mark.parametrize("at", [MORNING, EVENING])
@pytest.mark.parametrize("preset", [recall.PRESET_AGENT, recall.PRESET_CHAT])
def test_yesterday_is_the_askers(service: Stubs, diary: str, at: str, preset: recall.Preset.ValueType) -> None:
    """The zone is set by the request, by the project, or by both, where the request's counts."""
    assert first(service, diary, at, preset=preset, time_zone=SHANGHAI) == "yesterday"
    assert first(service, diary, at, preset=preset, time_zone="+08:00") == "yesterday"
    live_in(service, diary, SHANGHAI)
    assert first(service, diary, at, preset=preset) == "yesterday"
    live_in(service, diary, "America/New_York")
    assert first(service, diary, at, preset=preset, time_zone=SHANGHAI) == "yesterday"


def test_the_receipt_says_which_day_was_meant(service: Stubs, diary: str) -> None:
    live_in(service, diary, SHANGHAI)
    answer = ask(service, diary, "我昨天做了什么？", as_of=stamp(MORNING))
    (told,) = answer.receipt.times
    assert told.start_time == stamp("2026-11-26T00:00+08:00")
    assert told.end_time == stamp("2026-11-27T00:00+08:00")
    assert "times.zone" in answer.receipt.project_settings


def test_a_search_and_a_rendering_follow_the_zone_too(service: Stubs, diary: str) -> None:
    """S4-31."""
    asked = "我昨天做了什么？"
    found = service.context.Search(
        context.SearchRequest(project=diary, query_text=asked, as_of=stamp(MORNING), time_zone=SHANGHAI)
    )
    assert found.results[0].memory_id == "yesterday"
    request = context.RenderRequest(
        project=diary,
        recall=recall.RecallRequest(query_text=asked, as_of=stamp(MORNING), time_zone=SHANGHAI),
        form=context.RENDER_FORM_MEMORIES,
    )
    assert "[2026-11-26 10:00]" in service.context.Render(request).text
    request.utc_offset_minutes = -60
    assert "[2026-11-26 01:00]" in service.context.Render(request).text
    request.ClearField("utc_offset_minutes")
    request.recall.ClearField("time_zone")
    assert "[2026-11-26 02:00]" in service.context.Render(request).text
    live_in(service, diary, SHANGHAI)
    assert "[2026-11-26 10:00]" in service.context.Render(request).text


@pytest.mark.parametrize("name", ["Asia/Nowhere", "../../etc/passwd", "UTC+8", "+25:00"])
def test_an_unknown_zone_is_refused_by_its_field(service: Stubs, diary: str, name: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        ask(service, diary, "昨天", time_zone=name)
    assert "time_zone" in refusal_of(refused.value).violations
    with pytest.raises(grpc.RpcError) as refused:
        live_in(service, diary, name)
    assert "settings.times.zone" in refusal_of(refused.value).violations
