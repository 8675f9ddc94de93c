"""A store whose vectors may lie on a server, which may have lost them since they were written."""

from __future__ import annotations

import logging
from abc import abstractmethod

from filelock import FileLock

from rag_lab.stores.vector.engine import EngineStore
from rag_lab.stores.vector.server import Server

_LOGGER = logging.getLogger(__name__)


class ServedStore(EngineStore):
    """An `EngineStore` of which a subclass also writes `_is_filled`."""

    def _served(self, server: Server) -> Server:
        """Return the server that is searched, its collection filled again where the server lost some or all of it."""
        if self._is_filled(server):
            return server
        with FileLock(f"{self.path}.lock"):
            if not self._is_filled(server):
                _LOGGER.warning("%s at %s is not whole; it is filled again.", server.collection, server.url)
                self._fill()
        return server

    @abstractmethod
    def _is_filled(self, server: Server) -> bool:
        """Tell whether the server has a row for each of these."""
