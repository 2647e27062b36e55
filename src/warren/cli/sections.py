"""Command groups whose help lists commands in sections, one line for each.

The line is the first sentence of a command's help, cut at the end of a clause if it is too long.
"""

from collections.abc import Mapping, Sequence

import click

from warren.cli.deprecated_names import current_words

_WITHOUT_SECTION = "Commands"
# Where a sentence that is too long may be cut: the first pattern that makes it fit.
_ENDS = ("; ", ": ")
_COMMA = ", "
_INDENT = 2
_GAP = 2


class SectionedGroup(click.Group):
    """A group whose help lists its commands in sections, in the given order."""

    def __init__(
        self,
        name: str | None = None,
        *,
        sections: Mapping[str, Sequence[str]] | None = None,
        **more: object,
    ) -> None:
        """`sections` contains names of commands by heading; commands in no section are listed at the end."""
        super().__init__(name, **more)  # type: ignore[arg-type]
        self.sections = sections or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` name, by its current or a deprecated name."""
        words = current_words(self.name or "", args, is_silent=ctx.resilient_parsing)
        return super().resolve_command(ctx, words)

    def texts(self, ctx: click.Context) -> dict[str, str]:
        """Return the help of each command in the list."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return {name: found.help or "" for name, found in commands.items() if found and not found.hidden}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections; called by click."""
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
    """Return the first sentence of `text`, or as many of its clauses as fit into `room` characters."""
    first = " ".join(text.strip().partition("\n\n")[0].split()).partition("\f")[0]
    whole = first.partition(". ")[0].rstrip(".")
    if len(whole) <= room:
        return whole
    for end in _ENDS:
        if len(whole.partition(end)[0]) <= room:
            return whole.partition(end)[0]
    cut = whole.rfind(_COMMA, 0, room + len(_COMMA))
    return whole[:cut] if cut > 0 else whole[: max(room - 1, 0)] + "…"
