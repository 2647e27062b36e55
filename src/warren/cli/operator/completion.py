"""Shell completion of the names of queues, virtual hosts and other objects, with one short request."""

import re
from collections.abc import Callable

import click

from warren.cli.operator.failures import Failure
from warren.cli.operator.management_client import filled
from warren.cli.operator.options import api_of, common_of

_SHOWN_MAX = 100
_TIMEOUT_S = 1.0
# Names that need no quotes in a shell; others are not offered.
_WORD = re.compile(r"[\w.:@%/+=,-]+", re.ASCII)
Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def name_completion(path: str) -> Completion:
    """Return a completion function for the names in the list at `path`; empty without a quick reply."""

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        common = common_of(context) | {"timeout": _TIMEOUT_S}
        where = {"vhost": context.params.get("vhost") or "/"}
        query = {
            "columns": "name", "page": 1, "page_size": _SHOWN_MAX,
            "name": f"^{re.escape(begun)}", "use_regex": "true",
        }  # fmt: skip
        try:
            api = api_of(common, _nobody)
            answer = api.get(filled(path, where), query)
        except Failure:
            return []
        names = [row["name"] for row in (answer["items"] if isinstance(answer, dict) else answer)]
        return [name for name in names if name.startswith(begun) and _WORD.fullmatch(name)]

    return complete


def _nobody(prompt: str) -> str:
    raise Failure(prompt)
