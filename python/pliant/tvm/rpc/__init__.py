"""Sessions in this process, with the interface of ``tvm.rpc``.

Pliant has no remote execution. A server is an address in this process, and a session with it runs everything here. It exists for
programs that test their use of sessions with a local server.
"""

from __future__ import annotations

import itertools
import os
import shutil
from typing import Any

from pliant import _core
from pliant._absent import absent_attribute
from pliant.registry import get_global_func
from pliant.runtime import load_module
from pliant.tvm.contrib.utils import tempdir

__all__ = ["LocalSession", "RPCSession", "Server", "connect"]

_ports = itertools.count(9090)
_servers: dict[tuple[str, int], Server] = {}


class Server:
    """The address of sessions in this process. Nothing listens on the port."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> None:
        self.host = host
        self.port = port or next(_ports)
        _servers[(self.host, self.port)] = self

    def terminate(self) -> None:
        """Removes the address."""
        _servers.pop((self.host, self.port), None)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: object) -> None:
        self.terminate()


class LocalSession:
    """A session that runs everything in this process. Uploaded files are in a temporary folder."""

    def __init__(self) -> None:
        self._temp = tempdir()

    def upload(self, data: str | bytes | bytearray, target: str | None = None) -> None:
        """Copies a file, or the bytes of one, to the folder of the session."""
        if isinstance(data, str):
            shutil.copy(data, self._temp.relpath(target or os.path.basename(data)))
            return
        if target is None:
            raise ValueError("upload: bytes need a target, the name of the file")
        with open(self._temp.relpath(target), "wb") as file:
            file.write(data)

    def download(self, path: str) -> bytearray:
        """Returns the bytes of a file in the folder of the session."""
        with open(self._temp.relpath(path), "rb") as file:
            return bytearray(file.read())

    def remove(self, path: str) -> None:
        """Removes a file from the folder of the session."""
        os.remove(self._temp.relpath(path))

    def load_module(self, path: str) -> Any:
        """Loads an executable from the folder of the session."""
        return load_module(self._temp.relpath(path))

    def get_function(self, name: str) -> Any:
        """Returns the packed function with this name."""
        return get_global_func(name)

    def device(self, dev_type: Any, dev_id: int = 0) -> Any:
        """Returns a device of the session."""
        return _core.device(dev_type, dev_id)

    def cpu(self, dev_id: int = 0) -> Any:
        """Returns the CPU."""
        return _core.cpu(dev_id)


RPCSession = LocalSession


def connect(url: str, port: int, key: str = "", session_timeout: float = 0, **options: Any) -> LocalSession:
    """Opens a session with a server of this process.

    Raises ``UnsupportedError`` if the address is not that of a :class:`Server` of this process.
    """
    if (url, port) not in _servers:
        from pliant.error import UnsupportedError

        raise UnsupportedError(f"rpc.connect: {url}:{port} is not a server of this process, and Pliant has no remote execution")
    return LocalSession()


def __getattr__(name: str) -> Any:
    raise absent_attribute(__name__, name)
