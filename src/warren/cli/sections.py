"""Commands in the help of a group, by what they are for, and each with one line.

The line is the first sentence of a command's help; one that is too long is cut where a clause ends.
"""

from collections.abc import Mapping, Sequence

import click

from warren.cli.deprecated_names import current_words

_WITHOUT_SECTION = "Commands"
# Where a sentence ends early if it is too long, the first that helps; and where it may be cut otherwise.
_ENDS = ("; ", ": ")
_COMMA = ", "
_INDENT = 2
_GAP = 2


class SectionedGroup(click.Group):
    """A group whose help lists its commands in sections, in the order in which they are given."""

    def __init__(
        self,
        name: str | None = None,
        *,
        sections: Mapping[str, Sequence[str]] | None = None,
        **more: object,
    ) -> None:
        """`sections`: names of commands by heading; what is in none stands at the end."""
        super().__init__(name, **more)  # type: ignore[arg-type]
        self.sections = sections or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` name, under its current name or a deprecated one."""
        words = current_words(self.name or "", args, is_silent=ctx.resilient_parsing)
        return super().resolve_command(ctx, words)

    def texts(self, ctx: click.Context) -> dict[str, str]:
        """The help of each command that is listed."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return {name: found.help or "" for name, found in commands.items() if found and not found.hidden}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What click calls to write them."""
        texts = self.texts(ctx)
        widest = max(map(len, texts), default=0)
        room = formatter.width - formatter.current_indent - _INDENT - widest - _GAP
        listed = {name for names in self.sections.values() for name in names}
        rest = [name for name in texts if name not in listed]
        for heading, names in (*self.sections.items(), (_WITHOUT_SECTION, rest)):
            rows = [(name.ljust(widest), summary(texts[name], room)) for name in names if name in texts]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows, col_spacing=_GAP)


def summary(text: str, room: int) -> str:
    """The first sentence of `text`, or as many of its clauses as there is `room` for."""
    first = " ".join(text.strip().partition("\n\n")[0].split()).partition("\f")[0]
    whole = first.partition(". ")[0].rstrip(".")
    if len(whole) <= room:
        return whole
    for end in _ENDS:
        if len(whole.partition(end)[0]) <= room:
            return whole.partition(end)[0]
    cut = whole.rfind(_COMMA, 0, room + len(_COMMA))
    return whole[:cut] if cut > 0 else whole[: max(room - 1, 0)] + "…"
