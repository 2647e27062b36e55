"""Asks a web server for permissions: RabbitMQ's `auth_http.vhost_path`, `resource_path` and `topic_path`.

    the fields of a question (`access/web_grants`)  ─▶  allow | deny | deny REASON

1. Every question ends within the timeout, and what is not `allow` refuses.
2. Questions that are the same share one request, and those that wait are bounded in number.
3. What is allowed is cached for a while; refusals and failures are not.
"""

import logging
from collections.abc import Mapping

from warren.access.web_grants import WebDecision, WebQuestion, WebQuestionKind
from warren.limits_access import WEB_DECISIONS_CACHED_MAX, WEB_QUESTIONS_WAITING_MAX
from warren.node.auth_server import AuthServer, NoAnswer
from warren.runtime.clock import Clock
from warren.runtime.shared_tasks import SharedTasks

logger = logging.getLogger("warren.login")

_ALLOW, _DENY = "allow", "deny"
_BACKEND = "backend rabbit_auth_backend_http"


class HttpPermissions:
    """The permissions that the web server of one node has decided."""

    def __init__(
        self,
        server: AuthServer,
        urls: Mapping[WebQuestionKind, str],
        clock: Clock,
        *,
        cache_ttl_ms: int,
        discloses_reasons: bool,
    ) -> None:
        """With `discloses_reasons`, clients are told why the server refuses."""
        self._server = server
        self._urls = urls
        self._clock = clock
        self._cache_ttl_ms = cache_ttl_ms
        self._discloses_reasons = discloses_reasons
        # What is allowed, with the time until which it is; the oldest is first.
        self._allowed: dict[WebQuestion, int] = {}
        self._questions: SharedTasks[WebQuestion, WebDecision] = SharedTasks(WEB_QUESTIONS_WAITING_MAX)

    async def decide(self, question: WebQuestion) -> WebDecision:
        """The answer to `question`; a server that gives none refuses."""
        allowed_until = self._allowed.get(question)
        if allowed_until is not None and self._clock.now() < allowed_until:
            return WebDecision(True)
        if self._questions.is_full_for(question):
            return _failure("too many questions are waiting for it")
        return await self._questions.result(question, lambda: self._asked(question))

    async def close(self) -> None:
        """Cancel the questions that wait, and close the connections."""
        await self._questions.close()
        await self._server.close()

    async def _asked(self, question: WebQuestion) -> WebDecision:
        url = self._urls[question.kind]
        try:
            answer = await self._server.answer(url, question.fields)
        except NoAnswer as error:
            logger.error("cannot ask for a permission of user %r: %s", question.fields[0][1], error)
            return _failure(error.reason)
        first, _, reason = answer.partition(" ")
        if first.lower() == _DENY:
            if reason:
                logger.info("the web server refused user %r: %s", question.fields[0][1], reason)
            shown = reason if self._discloses_reasons else ""
            return WebDecision(False, f" by {_BACKEND}: {shown}" if shown else "")
        if answer.lower() != _ALLOW:
            logger.error("%s answered %r", url, answer[:80])
            return _failure("bad_response")
        self._keep(question)
        return WebDecision(True)

    def _keep(self, question: WebQuestion) -> None:
        self._allowed.pop(question, None)
        if not self._cache_ttl_ms:
            return
        if len(self._allowed) >= WEB_DECISIONS_CACHED_MAX:
            del self._allowed[next(iter(self._allowed))]
        self._allowed[question] = self._clock.now() + self._cache_ttl_ms


def _failure(reason: str) -> WebDecision:
    """A refusal with RabbitMQ's text for a backend that fails."""
    return WebDecision(False, f", {_BACKEND} returned an error: {reason}")
