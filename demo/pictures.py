"""Makes the pictures of the README in docs/images: the web interface and a DataFrame.

A broker is started, the shop of the demo publishes to it, and Chromium takes the pictures. The DataFrame
shows what Spark has read from a queue of this shop. `make pictures` runs it.
"""

import argparse
import ast
import shutil
import struct
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from pyspark.sql import SparkSession

from run import Place, broker
from shop import open_shop, trade
from warren.cli.spark.options import SparkSettings
from warren.cli.spark.session import spark_session

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SCHEMES = {"light": "default", "dark": "github-dark"}  # with the colours of code
WIDTH, HEIGHT = 1280, 785
SCALE = 1.5
BYTES_MAX = 200_000
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRAWN_S = 2.0
INTERFACE = ""  # the page of the web interface: the overview
CODE = """\
dead = spark.read.format("warren").options(**broker).load("orders.dead")  # consumes nothing

dead.selectExpr(
    "headers['x-first-death-queue'] as died_in",
    "headers['x-first-death-reason'] as reason",
    "from_json(cast(body as string), 'product string, cents bigint') as order",
).groupBy("died_in", "reason", "order.product").agg(
    count("*").alias("orders"), (sum("order.cents") / 100).alias("euros")
).orderBy(desc("euros")).limit(6)
"""
STYLE = """
:root { --page: #fff; --code: #f6f8fa; --line: #d0d7de; --text: #1f2328; --dim: #59636e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --code: #161b22; --line: #30363d; --text: #e6edf3; --dim: #9198a1; }
}
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 sans-serif, sans-serif; }
main { padding: 20px 24px; display: grid; grid-template-columns: 4em auto; gap: 14px 8px; }
aside { color: var(--dim); font: 14px/1.5 monospace; padding-top: 12px; }
pre { margin: 0; font: 14px/1.5 monospace; }
.highlight { background: var(--code); border: 1px solid var(--line); border-radius: 6px; padding: 12px 16px; }
table { border-collapse: collapse; border: 0; margin-top: 6px; }
th, td { border: 0; padding: 5px 18px 5px 0; text-align: left; }
th { border-bottom: 1px solid var(--line); }
th:nth-child(n+4), td:nth-child(n+4) { text-align: right; font-variant-numeric: tabular-nums; }
"""


def main() -> int:
    """Make all pictures; 0 if each is small enough."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=100, help="how long the shop trades")
    parser.add_argument("--warren", default="warren", help="the command that starts a broker")
    chosen = parser.parse_args()
    if CHROMIUM is None:
        print("pictures: chromium is not installed", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="warren-pictures-") as folder,
        broker(chosen.warren, Path(folder) / "broker") as place,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        open_shop(place.uri)
        shop = threading.Thread(target=trade, args=(place.uri, chosen.seconds, lambda _, __: None))
        shop.start()
        # Charts need samples of some minutes.
        time.sleep(chosen.seconds * 0.8)
        sizes = list(interface(chromium, place))
        shop.join()
        sizes += dataframe(chromium, place)
        chromium.close()
    return 1 if max(sizes) > BYTES_MAX else 0


def interface(chromium: Browser, place: Place) -> Iterator[int]:
    """The web interface while the shop is open."""
    for scheme in SCHEMES:
        with page_of(chromium, scheme) as page:
            page.goto(place.web)
            page.get_by_label("Username").fill("guest")
            page.get_by_label("Password").fill("guest")
            page.get_by_role("button", name="Sign in").click()
            page.locator("#main").wait_for()
            page.goto(f"{place.web}/#/{INTERFACE}")
            page.get_by_role("heading", level=1).wait_for()
            page.wait_for_timeout(DRAWN_S * 1000)
            yield keep(page, f"interface-{scheme}")


def dataframe(chromium: Browser, place: Place) -> Iterator[int]:
    """The cell of a notebook, and the output of Spark."""
    settings = SparkSettings(
        broker=place.options, master="local[2]", remote=None, configuration={}, is_json=False, is_quiet=True,
        is_verbose=False,
    )  # fmt: skip
    with spark_session(settings, "pictures") as spark:
        spark.conf.set("spark.sql.repl.eagerEval.enabled", "true")
        answer = evaluated(CODE, spark, place)
    for scheme, colours in SCHEMES.items():
        code = HtmlFormatter(style=colours, noclasses=True, nobackground=True)
        with page_of(chromium, scheme) as page:
            page.set_content(
                f"<style>{escape(STYLE, quote=False)}</style><main><aside>In [1]:</aside>"
                f"<section>{highlight(CODE, PythonLexer(), code)}</section>"
                f"<aside>Out[1]:</aside><section>{answer}</section></main>"
            )
            yield keep(page, f"dataframe-{scheme}", whole=False)


def evaluated(code: str, spark: SparkSession, place: Place) -> str:
    """The value of the last expression of `code`, as Jupyter shows it."""
    names: dict[str, object] = {"spark": spark, "broker": place.options}
    *before, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    exec("from pyspark.sql.functions import count, desc, sum", names)
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    table: str = eval(compile(ast.Expression(last.value), "cell", "eval"), names)._repr_html_()
    return table


@contextmanager
def page_of(chromium: Browser, scheme: str) -> Iterator[Page]:
    """A separate window in the colour scheme `scheme`."""
    context = chromium.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": WIDTH, "height": HEIGHT},
        device_scale_factor=SCALE,
    )
    try:
        yield context.new_page()
    finally:
        context.close()


def keep(page: Page, name: str, *, whole: bool = True) -> int:
    """Take a picture of the window, or of the main part of its page; returns its size in bytes."""
    png = smaller(page.screenshot() if whole else page.locator("main").screenshot())
    path = IMAGES / f"{name}.png"
    path.write_bytes(png)
    print(f"{path.name}: {len(png):,} bytes")
    return len(png)


def smaller(png: bytes) -> bytes:
    """The picture without metadata, compressed as well as zlib can."""
    chunks, at = [], 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += 12 + length
    lines = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    header = next(data for kind, data in chunks if kind == b"IHDR")
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    return png[:8] + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


if __name__ == "__main__":
    sys.exit(main())
