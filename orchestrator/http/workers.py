"""Several processes behind one port: the parent accepts connections and distributes them round-robin.

If processes accept from one shared socket, the first to wake gets a connection: in a burst one process gets most.
docs/decisions/0021-even-workers.md has the measurements and the alternatives.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing import parent_process
from types import TracebackType
from typing import Any

import uvloop
from uvicorn.config import STARTUP_FAILURE, Config
from uvicorn.supervisors import Multiprocess

LOOP = f"{__name__}:ReceivingLoop"
"""The event loop of a worker, as uvicorn names it."""

_log = logging.getLogger(__name__)

_READY, _CONNECTION = b"r", b"c"
"""The message of a worker that is ready, and the one that is sent with each connection."""
_POLL_S = 0.5
"""Maximum seconds until the thread ends after :meth:`ConnectionDistributor.__exit__`."""
_NO_DESCRIPTORS_S = 0.05
"""Seconds to wait if too many files are open to accept a connection."""


class Workers(Multiprocess):
    """uvicorn's supervisor of processes, with connections that :class:`ConnectionDistributor` distributes."""

    def __init__(self, config: Config, listener: socket.socket) -> None:
        self._distributor = ConnectionDistributor(listener)
        super().__init__(config, [])

    @property
    def sockets(self) -> list[socket.socket]:  # uvicorn reads it once for each new process
        """The channel of a new process."""
        return [self._distributor.new_channel()]

    @sockets.setter
    def sockets(self, value: list[socket.socket]) -> None:
        """Ignored: uvicorn's constructor sets it."""

    def run(self) -> None:
        """Serve until a signal ends it, or a worker cannot start.

        :raises SystemExit: with code 1 if a worker could not start.
        """
        with self._distributor:
            super().run()
        if any(process.exitcode == STARTUP_FAILURE for process in self.processes):
            raise SystemExit(1)

    def keep_subprocess_alive(self) -> None:
        """See uvicorn. A worker that has ended is noticed at once: this process has no copy of its end of the pipe."""
        for process in self.processes:
            process.child_conn.close()
            if process.exitcode not in (None, STARTUP_FAILURE) and not self.should_exit.is_set():
                _log.error("worker %s ended with exit code %s: another one is started", process.pid, process.exitcode)
        super().keep_subprocess_alive()


class ConnectionDistributor:
    """Accepts connections in a thread, and sends each over the channel of the next worker that is ready.

    A worker is skipped if it has not started, has ended, or its channel is full. While no worker is ready,
    connections wait in the listener's queue.
    """

    def __init__(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        listener.listen(2_048)
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._ready: deque[socket.socket] = deque()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="connections", daemon=True)

    def __enter__(self) -> ConnectionDistributor:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            self._close(key.fileobj)  # type: ignore[arg-type]  # they are sockets
        self._selector.close()
        self._listener.close()

    def new_channel(self) -> socket.socket:
        """Create a channel and return the worker's end."""
        own, workers = socket.socketpair()
        own.setblocking(False)
        # This copy of the worker's end is closed when the worker is ready: then the worker's exit ends the channel.
        self._selector.register(own, selectors.EVENT_READ, data=workers)
        return workers

    def _run(self) -> None:
        while not self._stopped.is_set():
            for key, _ in self._selector.select(_POLL_S):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._read(key)

    def _read(self, key: selectors.SelectorKey) -> None:
        """Read that a worker is ready, or that its channel has ended."""
        channel: socket.socket = key.fileobj  # type: ignore[assignment]
        try:
            message = channel.recv(1)
        except OSError:
            message = b""
        if message != _READY:
            self._close(channel)
            return
        key.data.close()
        self._ready.append(channel)
        if len(self._ready) == 1:
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            _log.error("a connection could not be accepted: %s", error)
            time.sleep(_NO_DESCRIPTORS_S)
            return
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(len(self._ready)):
                channel = self._ready[0]
                self._ready.rotate(-1)
                try:
                    socket.send_fds(channel, [_CONNECTION], [connection.fileno()])
                except BlockingIOError:
                    continue
                except OSError:
                    self._close(channel)
                else:
                    return
        _log.error("a connection was closed: no worker could accept it")

    def _close(self, channel: socket.socket) -> None:
        if channel in self._ready:
            self._ready.remove(channel)
            if not self._ready:
                self._selector.unregister(self._listener)
        if channel is not self._listener:
            self._selector.unregister(channel).data.close()
            channel.close()


class ReceivingLoop(uvloop.Loop):
    """An event loop that serves the connections of a channel, if uvicorn passes one instead of a listener."""

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        """See :meth:`asyncio.loop.create_server`."""
        channel: socket.socket | None = options.get("sock")
        if channel is None or channel.family != socket.AF_UNIX:
            return await super().create_server(protocol_factory, *args, **options)
        return _ReceivingServer(self, protocol_factory, channel)


class _ReceivingServer:
    """Serves the connections that come over a channel, with the methods of a server that uvicorn calls."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        channel: socket.socket,
    ) -> None:
        self._loop = loop
        self._protocol_factory = protocol_factory
        self._channel = channel
        self._connecting: set[asyncio.Task[Any]] = set()
        self._is_closed = False
        channel.setblocking(False)
        loop.add_reader(channel, self._receive)
        # If the parent is killed before it has read all of a channel, that is an error of the socket, not its end.
        self._parent = parent_process()
        if self._parent:
            loop.add_reader(self._parent.sentinel, self._end_with_parent)
        channel.send(_READY)

    def close(self) -> None:
        """Accept only the connections that were sent already."""
        if self._is_closed:
            return
        self._is_closed = True
        self._channel.shutdown(socket.SHUT_RD)
        self._receive()
        self._remove_readers()

    async def wait_closed(self) -> None:
        """Return when every connection has its protocol."""
        if self._connecting:
            await asyncio.wait(self._connecting)

    def _end_with_parent(self) -> None:
        """This process gets no more connections."""
        self._remove_readers()
        _log.warning("the parent process has ended, so this one ends, too")
        signal.raise_signal(signal.SIGTERM)

    def _remove_readers(self) -> None:
        self._loop.remove_reader(self._channel)
        if self._parent:
            self._loop.remove_reader(self._parent.sentinel)

    def _receive(self) -> None:
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(self._channel, 1, 1)
            except BlockingIOError:
                return
            if not message:
                if not self._is_closed:
                    self._end_with_parent()
                return
            for descriptor in descriptors:
                connection = socket.socket(fileno=descriptor)
                connection.setblocking(False)
                task = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol_factory, connection))
                self._connecting.add(task)
                task.add_done_callback(self._connecting.discard)
