"""Tests ``CancelToken``, which stops runs from another thread."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest
from test_timeouts import constant_sum

import pliant

LONG = np.array([1 << 38])
"""A size for which ``constant_sum`` runs for minutes."""


@pytest.fixture(scope="module")
def model() -> pliant.Model:
    return pliant.compile(constant_sum())


def cancel_soon(token: pliant.CancelToken) -> threading.Thread:
    """Cancels a token after a short time, on another thread."""

    def work() -> None:
        time.sleep(0.05)
        token.cancel()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_calls_and_named_runs_are_cancelled(model: pliant.Model) -> None:
    for run in (lambda token: model(LONG, cancel=token), lambda token: model.run(None, {"shape": LONG}, cancel=token)):
        token = pliant.CancelToken()
        assert not token.cancelled
        thread = cancel_soon(token)
        with pytest.raises(pliant.CancelledError, match="'main' was cancelled"):
            run(token)
        thread.join()
        assert token.cancelled and "True" in repr(token)
        with pytest.raises(pliant.CancelledError):
            run(token)
    assert model(np.array([7]), cancel=pliant.CancelToken()).numpy() == 7


def test_the_message_names_the_nodes(model: pliant.Model) -> None:
    token = pliant.CancelToken()
    cancel_soon(token)
    with pytest.raises(pliant.CancelledError, match="ReduceSum"):
        model(LONG, cancel=token)


def test_other_runs_continue(model: pliant.Model) -> None:
    token = pliant.CancelToken()
    future = model.run_async(LONG, cancel=token)
    assert model.run_async(np.array([5])).result(timeout=60).numpy() == 5
    assert not future.done()
    token.cancel()
    with pytest.raises(pliant.CancelledError):
        future.result(timeout=60)


def test_a_cancelled_task_stops_its_run(model: pliant.Model) -> None:
    async def main() -> None:
        token = pliant.CancelToken()
        task = asyncio.ensure_future(model.arun(LONG, cancel=token))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert token.cancelled

    asyncio.run(main())


def test_a_profile_is_cancelled(model: pliant.Model) -> None:
    token = pliant.CancelToken()
    cancel_soon(token)
    with pytest.raises(pliant.CancelledError):
        model.profile(LONG, cancel=token)


@pytest.mark.parametrize("bad", [True, 1.5, "token", threading.Event()])
def test_other_objects_are_rejected(model: pliant.Model, bad: object) -> None:
    with pytest.raises(TypeError, match="'cancel' must be a pliant.CancelToken"):
        model(np.array([3]), cancel=bad)
