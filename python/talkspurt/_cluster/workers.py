"""Connections to workers: to a scheduler of dask.distributed, or to workers started here.

Dask's ports execute any code that reaches them. Workers started here listen on the loopback
interface only, and a scheduler elsewhere has to be reached by TLS.
"""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from talkspurt._storage.interrupts import undisturbed, without_ctrl_c
from talkspurt._text.escaping import visible
from talkspurt.errors import BadInputError, MissingExtraError
from talkspurt.runs.engine import cores

TIMEOUT_S = 10
"""Time to reach the scheduler."""
AGAIN_S = 2
"""The same for one attempt to reach a scheduler that was lost."""


Future: TypeAlias = "futures.Future[Any]"
"""A batch under way, of concurrent.futures, or of dask with the same methods."""


class Dask:
    """The workers of a ``distributed.Client``.

    Attributes:
        again: makes another after it was closed.
        close: closes it, and ends workers that were started here.
    """

    def __init__(
        self,
        client: Any,
        again: Callable[[], Any] | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        self.client = client
        self.again = again
        self.close = close
        self._closing: threading.Thread | None = None

    def release(self) -> None:
        """Begin to close, since no more runs follow: ending workers takes a second."""
        if self.close is not None and self._closing is None:
            self._closing = threading.Thread(target=self.close)
            self._closing.start()

    def wait(self) -> None:
        """Wait until what :meth:`release` began has ended."""
        if self._closing is not None:
            self._closing.join()

    def names(self) -> Mapping[str, int]:
        """The workers that are there, by address, each with its number of runs at once.

        Raises:
            OSError: if the scheduler cannot be reached, as does :meth:`submit`.
        """
        # A client that lost its scheduler looks for it for some seconds, and then closes.
        if self.client.status == "closed" and self.again is not None:
            self.client = self.again()
        if self.client.status != "running":
            raise ConnectionError("the scheduler is not there")
        info = self.client.scheduler_info(n_workers=-1)
        return {address: int(one["nthreads"]) for address, one in info["workers"].items()}

    def submit(self, name: str, function: Callable[..., Any], *given: Any) -> Future:
        """Execute a function at the worker with this address, and at no other."""
        try:
            future: Future = self.client.submit(
                function, *given, workers=[name], allow_other_workers=False, pure=False, retries=0
            )
        except Exception as error:  # of several kinds, if the scheduler has just been lost
            raise ConnectionError(str(error)) from error
        return future


class Pool:
    """An executor of ``concurrent.futures``, whose workers have no names: one for them all."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor

    def names(self) -> Mapping[str, int]:
        """The executor as one worker."""
        return {type(self.executor).__name__: getattr(self.executor, "_max_workers", cores())}

    def submit(self, name: str, function: Callable[..., Any], *given: Any) -> Future:
        future: Future = self.executor.submit(function, *given)
        return future


Workers: TypeAlias = Dask | Pool
"""Workers that can be named."""


def workers_of(executor: Any) -> Workers:
    """The workers of an executor: a ``distributed.Client``, or one of ``concurrent.futures``."""
    if isinstance(executor, Dask):
        return executor
    if hasattr(executor, "scheduler_info"):
        return Dask(executor)
    if hasattr(executor, "submit"):
        context = getattr(executor, "_mp_context", None)
        if context is not None and context.get_start_method() == "fork":
            # A lock that another thread holds at the fork stays locked in the child.
            raise ValueError(
                "the executor forks this process, which has threads, so its workers can deadlock: "
                'use ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))'
            )
        return Pool(executor)
    raise TypeError(f"{executor!r} is no executor: it has no `submit`")


@dataclass(frozen=True)
class Address:
    """Where the workers are.

    Attributes:
        url: ``tcp://HOST:PORT``, ``tls://HOST:PORT`` or ``local:N``.
        tls: files of TLS: ``ca``, ``cert`` and ``key``; without, those of dask's configuration.
        plain: permit tcp:// to other machines.
    """

    url: str
    tls: Mapping[str, Path | None]
    plain: bool = False

    @property
    def local(self) -> int | None:
        """The number of workers to start here, or None."""
        found = re.fullmatch(r"local:([0-9]{1,4})", self.url)
        return int(found[1]) if found else None

    def check(self) -> None:
        """Raise BadInputError unless it can be used."""
        shown = f"--cluster {visible(self.url)}"
        remote = re.fullmatch(
            r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})", self.url
        )
        if not remote and not self.local:
            raise BadInputError(
                f"{shown}: expected tcp://HOST:PORT, tls://HOST:PORT or local:N, such as local:4"
            )
        if remote and remote[1] == "tcp" and not self.plain and not _loopback(remote[2]):
            raise BadInputError(
                f"{shown}: whoever reaches the ports of such a cluster can execute code on it: use "
                "tls://, or say --plain-tcp if the network is trusted"
            )
        given = {name: file for name, file in self.tls.items() if file is not None}
        if given and not self.url.startswith("tls:"):
            raise BadInputError(f"{shown}: --tls-{next(iter(given))} is for tls:// only")
        for name, file in given.items():
            if not file.is_file():
                raise BadInputError(f"--tls-{name} {visible(str(file))}: there is no such file")


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _not_of_distributed(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or kind.__module__.partition(".")[0] != "distributed"


@contextlib.contextmanager
def connected(address: Address) -> Iterator[Workers]:
    address.check()
    try:
        dask: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingExtraError(
            "--cluster needs dask.distributed, not installed: pip install 'talkspurt[cluster]'"
        ) from None
    # What it reports about lost workers is reported here, by name and once.
    for name in [*logging.root.manager.loggerDict]:
        if name.partition(".")[0] == "distributed":  # some have levels of their own
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # Of results that were lost together, distributed retrieves the exception of one.
    logging.getLogger("asyncio").addFilter(_not_of_distributed)
    with contextlib.ExitStack() as stack:
        target: Any = address.url
        if address.local:
            if sys.platform != "win32":
                stack.enter_context(without_ctrl_c())
            # One that is stopped while it starts cannot be closed.
            with undisturbed():
                target = stack.enter_context(
                    dask.LocalCluster(
                        n_workers=address.local,
                        threads_per_worker=1,
                        host="127.0.0.1",
                        dashboard_address=None,
                        worker_dashboard_address=None,
                        # Its pages are on any free port: a second cluster would warn of the first.
                        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                        silence_logs=logging.CRITICAL + 1,
                    )
                )
        security = None
        if any(address.tls.values()):
            tls = {key: str(file) for key, file in address.tls.items() if file}
            security = dask.Security(
                require_encryption=True,
                tls_ca_file=tls.get("ca"),
                tls_client_cert=tls.get("cert"),
                tls_client_key=tls.get("key"),
            )

        def client(timeout: float) -> Any:
            return stack.enter_context(
                dask.Client(target, timeout=timeout, security=security, set_as_default=False)
            )

        try:
            first = client(TIMEOUT_S)
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            if "ssl_context" in reason:  # there are neither options nor dask's configuration
                reason = "TLS needs --tls-ca, --tls-cert and --tls-key, or dask's configuration"
            raise BadInputError(
                f"--cluster {visible(address.url)}: cannot be reached: {visible(reason)}"
            ) from None
        workers = Dask(first, None if address.local else lambda: client(AGAIN_S), stack.close)
        try:
            yield workers
        finally:
            workers.wait()
