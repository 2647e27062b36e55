"""Text tables with numbers aligned to the right."""

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> str:
    """Return the rows under their heads; the first `words` columns are text, the others numbers."""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [heads, ["-" * width for width in widths], *rows]
    ]
    return "\n".join(lines)


def figure(value: float | None) -> str:
    """Format a figure with three significant digits; a dash for None."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def ratio(value: float | None) -> str:
    """Format the factor by which a figure is better."""
    return "-" if value is None else f"{figure(value)} x"
