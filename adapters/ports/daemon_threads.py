"""Threads for code of users, which may never return."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from threading import Semaphore, Thread
from typing import Any

from adapters.model.errors import Unavailable


class DaemonThreads(Executor):
    """Runs each call in a thread of its own. The end of the process does not wait for it.

    :param name: of what is called, in error messages.
    :param count: calls that may run at once, those included that are not waited for any more.
    """

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count
        self._slots = Semaphore(count)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :meth:`concurrent.futures.Executor.submit`.

        :raises Unavailable: if as many calls are running already.
        """
        if not self._slots.acquire(blocking=False):
            raise Unavailable(f"{self._name} already runs {self._count} times, which is the maximum")
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                self._slots.release()
                future.set_exception(error)
            else:
                self._slots.release()
                future.set_result(result)

        Thread(target=run, name=self._name, daemon=True).start()
        return future
