"""Projects: their facts and settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from hummock.core.errors import InvalidRequest, ProjectNotFound
from hummock.core.memory import Origin
from hummock.core.project import DeletedProject, Project
from hummock.core.recall import Preset
from hummock.core.render import PartialQuotas, Quotas, RenderForm
from hummock.core.review import ReviewPolicy
from hummock.core.session import HISTORY_CHARACTERS, HISTORY_MESSAGES
from hummock.core.settings import (
    PINNED_TOKENS,
    REVIEW_POLICY,
    SECRET_POLICY,
    SETTING_PATHS,
    FormBudgets,
    HistorySettings,
    PresetSettings,
    ProjectSettings,
    ReviewSettings,
    SecretSettings,
    Setting,
    SettingOrigin,
    SettingsShown,
    SmallTalkPolicy,
    TurnSettings,
)
from hummock.memories.screening import Passage
from hummock.memories.sessions import NoReply
from hummock.ports.store import Store
from hummock.ports.writes import ProjectRemoval, UnitOfWork, WriteRequest
from hummock.recall.plan import PRESETS
from hummock.render.compose import FORMS
from hummock.text.attacks import families_in


class Projects:
    """Reads, changes and deletes projects. Safe to call from several threads."""

    def __init__(self, store: Store, forget: Sequence[Callable[[str], None]] = ()) -> None:
        """`forget` are callbacks for deleted projects, to drop cached data."""
        self._store = store
        self._forget = forget
        # A page is read without a step between; see `ports.Store.projects`.
        self.page = store.projects

    def get(self, name: str) -> Project:
        """A project. Raises: ProjectNotFound."""
        feedback = self._store.read_learning(name, lambda learning: learning.state().feedback)
        return replace(self.stored(name), feedback=feedback, graph=self._store.graph(name))

    def stored(self, name: str) -> Project:
        """Return a project without counts of feedback. Raises: ProjectNotFound."""
        project = self._store.project(name)
        if project is None:
            raise ProjectNotFound(name)
        return project

    def require(self, name: str, *, allow_stale: bool = False) -> None:
        """Raises: ProjectNotFound; StoreUnreachable, unless `allow_stale` accepts the last known state."""
        if not allow_stale:
            self.stored(name)
        elif not self._store.read(name, lambda project: project.seq, allow_stale=True):
            raise ProjectNotFound(name)

    def update(
        self,
        name: str,
        request_id: str,
        tech_stack: tuple[str, ...] | None,
        path: str | None,
        origin: Origin,
        fingerprint: bytes,
    ) -> Project:
        """Change the facts that are not None, as `ProjectInfo.said` does; a missing project is created.

        Raises: InvalidRequest: it reads like an instruction to a model. Facts go into prompts and cannot be held for
            review.
        """
        said = Passage((("info.tech_stack", "\n".join(tech_stack or ())), ("info.path", path or "")))
        families = families_in([said.text])

        def apply(work: UnitOfWork) -> NoReply:
            if families and work.settings().review_policy() is ReviewPolicy.HOLD:
                rule = f"reads like an instruction to a model ({', '.join(families)}); name what the project is made of"
                raise InvalidRequest(said.field_of(families), rule)
            work.set_info(work.info().said(origin, tech_stack=tech_stack, path=path))
            return NoReply()

        request = WriteRequest(request_id=request_id, fingerprint=fingerprint, reply_type=NoReply, apply=apply)
        self._store.write(name, request).result()
        return self.get(name)

    def delete(self, name: str, request_id: str, fingerprint: bytes) -> DeletedProject:
        """Delete a project with its contents. Returns a receipt of them, also to a repeated request.

        Raises: ProjectNotFound, RequestIdReused.
        """
        removal = ProjectRemoval(request_id=request_id, fingerprint=fingerprint)
        deleted = self._store.remove_project(name, removal).result().reply
        for forget in self._forget:
            forget(name)
        return deleted


class Settings:
    """Reads and changes projects' settings. Safe to call from several threads."""

    def __init__(self, store: Store, near_twin_bar: float) -> None:
        """The bar is the one that the model's registry entry names."""
        self._store = store
        self._defaults = _defaults(near_twin_bar)

    def get(self, project: str) -> SettingsShown:
        """What applies to a project. Raises: ProjectNotFound."""
        if self._store.project(project) is None:
            raise ProjectNotFound(project)
        generation = self._store.generation(project)
        return SettingsShown(
            own=generation.settings,
            settings=tuple(self._setting(generation.settings, path) for path in SETTING_PATHS),
            seq=generation.seq,
            content_seq=generation.content_seq,
        )

    def change(
        self, project: str, request_id: str, values: ProjectSettings, paths: Collection[str], fingerprint: bytes
    ) -> SettingsShown:
        """Give the named settings these values, None the default; the project is created when it does not exist."""

        def apply(work: UnitOfWork) -> NoReply:
            work.set_settings(work.settings().changed(values, paths))
            return NoReply()

        request = WriteRequest(request_id=request_id, fingerprint=fingerprint, reply_type=NoReply, apply=apply)
        self._store.write(project, request).result()
        return self.get(project)

    def _setting(self, own: ProjectSettings, path: str) -> Setting:
        said, default = own.value(path), self._defaults.value(path)
        return Setting(
            path=path,
            value=default if said is None else said,
            origin=SettingOrigin.DEFAULT if said is None else SettingOrigin.PROJECT,
            default=default,
        )


def _defaults(near_twin_bar: float) -> ProjectSettings:
    usual = Quotas()
    return ProjectSettings(
        chat=_preset(Preset.CHAT, near_twin_bar),
        code=_preset(Preset.CODE, near_twin_bar),
        agent=_preset(Preset.AGENT, near_twin_bar),
        codex=_preset(Preset.CODEX, near_twin_bar),
        budget_tokens=FormBudgets(
            **{form.name.lower(): FORMS[form].budget_tokens for form in RenderForm}, pinned=PINNED_TOKENS
        ),
        quotas=PartialQuotas(
            domains=usual.domains,
            learning_records=usual.learning_records,
            code_fragments=usual.code_fragments,
            text_characters=usual.text_characters,
        ),
        history=HistorySettings(max_messages=HISTORY_MESSAGES, max_characters=HISTORY_CHARACTERS),
        secrets=SecretSettings(policy=SECRET_POLICY),
        review=ReviewSettings(policy=REVIEW_POLICY),
        turns=TurnSettings(small_talk=SmallTalkPolicy.SKIP),
    )


def _preset(preset: Preset, near_twin_bar: float) -> PresetSettings:
    usual = PRESETS[preset]
    return PresetSettings(
        candidates=usual.candidates,
        top_k=usual.top_k,
        code_top_k=usual.code_top_k,
        domain_top_k=usual.domain_top_k,
        min_similarity=usual.min_similarity,
        origins=frozenset[Origin](usual.origins),
        decay_mode=usual.decay_mode,
        half_life_days=usual.half_life_days,
        decay_floor=usual.decay_floor,
        relevance_weight=usual.relevance_weight,
        near_twin_bar=near_twin_bar,
        writer_cap=usual.writer_cap,
        window_turns=usual.window_turns,
    )
