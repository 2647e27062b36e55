/** The recent rate of a counter as a small line: sampled from the time the page is opened. */

import { useEffect, useState } from "preact/hooks";
import { rate } from "../format";

const SAMPLE_MS = 6000;
const SAMPLES_MAX = 40;
const WIDTH = 96;
const HEIGHT = 22;

interface Sample {
  at: number;
  value: number;
}

/** The rates of a counter that only grows, the oldest first: one for each answer of the broker. */
function useRates(counter: number): number[] {
  const [samples, setSamples] = useState<Sample[]>([]);
  const add = (value: number) => setSamples((before) => [...before.slice(1 - SAMPLES_MAX), { at: Date.now(), value }]);
  useEffect(() => {
    add(counter);
    // A list that does not change is not sent again.
    const timer = setInterval(() => add(counter), SAMPLE_MS);
    return () => clearInterval(timer);
  }, [counter]);
  return samples.slice(1).map(({ at, value }, index) => {
    const before = samples[index] ?? { at, value };
    return (Math.max(0, value - before.value) * 1000) / Math.max(500, at - before.at);
  });
}

interface SparklineProps {
  counter: number;
  /** The present rate, as the broker has sampled it. */
  current: number | undefined;
  label: string;
}

export function Sparkline({ counter, current, label }: SparklineProps) {
  const rates = useRates(counter);
  const most = Math.max(...rates, 0);
  const first = SAMPLES_MAX - 1 - rates.length;
  const points = rates.map((value, index) => {
    const x = ((first + index) / (SAMPLES_MAX - 2)) * WIDTH;
    const y = HEIGHT - 1 - (most ? value / most : 0) * (HEIGHT - 3);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <span class="sparkline">
      <svg
        width={WIDTH}
        height={HEIGHT}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${label}: ${rate(current)} now, at most ${rate(most)} since the page was opened`}
      >
        <polyline points={points.join(" ")} />
      </svg>
      <span class="number">{rate(current)}</span>
    </span>
  );
}
