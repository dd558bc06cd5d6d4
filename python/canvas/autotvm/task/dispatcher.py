"""Which config a template gets: of the innermost `with` block that has one for its workload."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any, ClassVar

from ...arguments import shown
from ...te.place import mistake
from ...te.target import Target
from .space import ConfigSpace, FallbackConfigEntity

logger = logging.getLogger("autotvm")


class DispatchContext:
    """A `with` block that chooses the config of a workload."""

    current: ClassVar[DispatchContext]

    def __init__(self) -> None:
        self._old_ctx: DispatchContext | None = None

    def query(self, target: Target | None, workload: Any) -> ConfigSpace:
        found = self._query_inside(target, workload)
        if found is None:
            assert self._old_ctx is not None  # the outermost one always has a config
            return self._old_ctx.query(target, workload)
        return found

    def update(self, target: Target | None, workload: Any, cfg: ConfigSpace) -> None:
        raise NotImplementedError

    def _query_inside(self, target: Target | None, workload: Any) -> ConfigSpace | None:
        raise NotImplementedError

    def __enter__(self) -> DispatchContext:
        self._old_ctx = DispatchContext.current
        DispatchContext.current = self
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        assert self._old_ctx is not None
        DispatchContext.current = self._old_ctx


class ApplyConfig(DispatchContext):
    """One config for all templates."""

    def __init__(self, config: ConfigSpace) -> None:
        super().__init__()
        if not isinstance(config, ConfigSpace):
            raise mistake(
                "ApplyConfig takes a config, as ConfigSpace.get and ConfigEntity.from_json_dict "
                f"make it, not {shown(config)}"
            )
        self._config = config
        self.workload: Any = None

    def _query_inside(self, target: Target | None, workload: Any) -> ConfigSpace:
        self.workload = workload
        return self._config

    def update(self, target: Target | None, workload: Any, cfg: ConfigSpace) -> None:
        self.workload, self._config = workload, cfg


class FallbackContext(DispatchContext):
    """The outermost one: a config marked as a fallback, which nobody chose."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[Any, ConfigSpace] = {}

    def _query_inside(self, target: Target | None, workload: Any) -> ConfigSpace:
        key = (str(target), workload)
        if key not in self.memory:
            logger.warning("no config for target %s, workload %s: the fallback is used", *key)
            self.memory[key] = FallbackConfigEntity()
        return self.memory[key]

    def clear_cache(self, target: Target | None, workload: Any) -> None:
        self.memory.pop((str(target), workload), None)

    def update(self, target: Target | None, workload: Any, cfg: ConfigSpace) -> None:
        self.memory[str(target), workload] = cfg


DispatchContext.current = FallbackContext()
