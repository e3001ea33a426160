"""What does the service do when nobody asks? Forget what is old, check plans after a change."""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.concurrency import run_in_threadpool

from pear.errors import PearError
from pear.service.errors import ServiceError
from pear.service.logs import note
from pear.service.service import Service


async def keep_up(service: Service) -> None:
    """Forget and re-check now, and then every so often, until cancelled."""
    while True:
        try:
            await forget_old(service)
            await recheck_open(service)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # one bad round must not end all later ones
            note("upkeep failed", level=logging.ERROR, exc_info=error)
        await asyncio.sleep(service.settings.sweep_seconds)


async def forget_old(service: Service) -> int:
    """Delete conversations whose link ended longer ago than the retention time."""
    before = time.time() - 86400 * service.settings.retention_days
    gone = await run_in_threadpool(service.store.delete_old, before)
    if gone:
        note("forgotten", conversations=gone)
    return gone


async def recheck_open(service: Service) -> int:
    """After a change of model or problem: work out every open conversation again."""
    checked = 0
    stale = await run_in_threadpool(
        service.store.under_other_model,
        service.problem.fingerprint,
        service.conversations.model_fingerprint,
    )
    for number in stale:
        conversation = await run_in_threadpool(service.store.by_id, number)
        if conversation is None:
            continue
        try:
            await service.conversations.refresh(conversation)
            checked += 1
        except (PearError, ServiceError) as error:
            note("recheck failed", level=logging.WARNING, conversation=number, exc_info=error)
        await asyncio.sleep(0.05)  # people who wait for a question come first
    if checked:
        note("rechecked", conversations=checked)
    return checked
