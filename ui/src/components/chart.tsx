/** Lines over time, drawn by uPlot. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { short } from "../format";

/** Samples over time; null is not known. */
interface Samples {
  samples?: { sample: number | null; timestamp: number }[];
  rate?: number;
}

export interface Series {
  label: string;
  details: Samples | undefined;
}

interface ChartProps {
  lines: Series[];
  /** What a sample becomes: "rate" is messages a second between two of them, "level" the sample itself. */
  kind: "rate" | "level";
  format?: (value: number) => string;
}

const HEIGHT = 200;
const COLORS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];

export function Chart({ lines, kind, format = short }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const shown = lines.filter(({ details }) => details?.samples?.some(({ sample }) => sample !== null));
  const labels = shown.map(({ label }) => label).join("\n");

  useEffect(() => {
    const element = place.current;
    if (!element || !labels) return;
    const grid = { stroke: colorOf(element, "--edge"), width: 1 };
    const axis = { stroke: colorOf(element, "--quiet"), grid, ticks: { show: false }, font: "12px system-ui" };
    const created = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        cursor: { points: { size: 6 } },
        legend: { show: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.15)] } },
        axes: [
          { ...axis, values: (_, ticks) => ticks.map(clock) },
          { ...axis, size: 56, values: (_, ticks) => ticks.map(format) },
        ],
        series: [
          {},
          ...labels.split("\n").map((label, index) => ({
            label,
            stroke: colorOf(element, COLORS[index % COLORS.length] ?? "--line-1"),
            width: 2,
            points: { show: false },
          })),
        ],
      },
      toData(shown, kind),
      element,
    );
    plot.current = created;
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
    };
  }, [labels, kind]);

  useEffect(() => {
    if (labels) plot.current?.setData(toData(shown, kind));
  });

  if (!labels) return <p class="quiet chart-empty">No data yet.</p>;
  return (
    <>
      <div class="chart" ref={place} role="img" aria-label={describe(shown, kind, format)} />
      <ul class="legend" aria-hidden="true">
        {shown.map((line, index) => (
          <li key={line.label}>
            <span class={`line-${(index % COLORS.length) + 1}`} /> {line.label} <b>{latest(line, kind, format)}</b>
          </li>
        ))}
      </ul>
    </>
  );
}

/** A colour of the style sheet, as a canvas understands it. */
function colorOf(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = "";
  return color;
}

function toData(lines: Series[], kind: ChartProps["kind"]): uPlot.AlignedData {
  const first = inOrder(lines[0]?.details);
  const from = kind === "rate" ? 1 : 0;
  const times = first.slice(from).map(({ timestamp }) => timestamp / 1000);
  const series = lines.map(({ details }) => {
    const samples = inOrder(details);
    return samples.slice(from).map((sample, index) => {
      if (kind === "level") return sample.sample;
      const before = samples[index];
      const seconds = before ? (sample.timestamp - before.timestamp) / 1000 : 0;
      return before && seconds > 0 && sample.sample !== null && before.sample !== null
        ? (sample.sample - before.sample) / seconds
        : null;
    });
  });
  return [times, ...series];
}

function inOrder(details: Samples | undefined) {
  return [...(details?.samples ?? [])].sort((one, other) => one.timestamp - other.timestamp);
}

/** The time of day, to the second where the ticks are that close. */
function clock(seconds: number): string {
  const time = new Date(seconds * 1000);
  return time.toLocaleTimeString("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    second: time.getSeconds() ? "2-digit" : undefined,
  });
}

function latest({ details }: Series, kind: ChartProps["kind"], format: (value: number) => string): string {
  if (kind === "rate") return `${format(details?.rate ?? 0)}/s`;
  const sample = inOrder(details).at(-1)?.sample;
  return sample === null ? "not known" : format(sample ?? 0);
}

/** The latest values in words, for screen readers. */
function describe(lines: Series[], kind: ChartProps["kind"], format: (value: number) => string): string {
  return lines.map((line) => `${line.label}: ${latest(line, kind, format)}`).join(", ");
}
