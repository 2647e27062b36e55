"""The text format of Prometheus."""

from warren.management.prometheus.exposition import GAUGE, MetricFamily, ScrapeStatistics, head, labels, line


def test_samples_follow_the_header_of_their_family() -> None:
    assert head("x_y", MetricFamily("y", GAUGE, "What it is")) == "# TYPE x_y gauge\n# HELP x_y What it is\n"
    assert line("x_y", "", 3) == "x_y 3\n"
    assert line("x_y", labels(vhost="/", queue="q"), 0.5) == 'x_y{vhost="/",queue="q"} 0.5\n'


def test_label_values_are_escaped() -> None:
    assert labels(queue='a"b\\c\nd') == 'queue="a\\"b\\\\c\\nd"'
    assert labels(queue="\udcff") == 'queue="?"'


def test_scrape_statistics_are_summed_by_registry() -> None:
    scrapes = ScrapeStatistics()
    assert "_count" not in scrapes.text()
    scrapes.note("default", 100, 0.5)
    scrapes.note("default", 50, 0.25)
    scrapes.note("detailed", 7, 1.0)
    lines = scrapes.text().splitlines()
    about = 'registry="default",content_type="text/plain; version=0.0.4; charset=utf-8"'
    assert f"telemetry_scrape_size_bytes_count{{{about}}} 2" in lines
    assert f"telemetry_scrape_size_bytes_sum{{{about}}} 150" in lines
    assert f"telemetry_scrape_duration_seconds_sum{{{about}}} 0.75" in lines
    assert f'telemetry_scrape_encoded_size_bytes_sum{{{about},encoding="identity"}} 150' in lines
    assert sum(line.startswith("#") for line in lines) == 6


def test_a_deprecated_family_names_its_replacement() -> None:
    family = MetricFamily("x_bytes", GAUGE, "Size", "x_octets")
    assert head("x_octets", family.deprecated()) == (
        "# TYPE x_octets gauge\n# HELP x_octets Deprecated: use x_bytes. Size\n"
    )
