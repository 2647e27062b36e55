/** Where things of a picture stand: in columns, by how far they are from its middle, each near what it hangs on. */

import type { Line, Thing } from "../model";

export const WIDTH = 168;
export const HEIGHT = 42;
const GAP_X = 104;
const GAP_Y = 18;
const MARGIN = 16;
/** How often neighbours pull at each other's order. */
const ROUNDS = 4;

export interface Box {
  thing: Thing;
  x: number;
  y: number;
}

export interface Drawn {
  boxes: Box[];
  paths: { line: Line; d: string; x: number; y: number }[];
  width: number;
  height: number;
}

export function layout(things: Thing[], lines: Line[]): Drawn {
  const columns = inColumns(things);
  arrange(columns, lines);
  const tallest = Math.max(...columns.map((column) => column.length), 1);
  const height = tallest * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN;
  const boxes = columns.flatMap((column, number) => {
    const top = (height - column.length * (HEIGHT + GAP_Y) + GAP_Y) / 2;
    return column.map((thing, row) => ({ thing, x: MARGIN + number * (WIDTH + GAP_X), y: top + row * (HEIGHT + GAP_Y) }));
  });
  const width = columns.length * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN;
  const byId = new Map(boxes.map((box) => [box.thing.id, box]));
  const paths = lines.flatMap((line) => {
    const from = byId.get(line.from);
    const to = byId.get(line.to);
    return from && to ? [{ line, ...curve(from, to) }] : [];
  });
  return { boxes, paths, width, height };
}

function inColumns(things: Thing[]): Thing[][] {
  const numbers = [...new Set(things.map(({ column }) => column))].sort((one, other) => one - other);
  return numbers.map((number) => things.filter(({ column }) => column === number));
}

/** Order each column by where the neighbours of its things stand, forth and back. */
function arrange(columns: Thing[][], lines: Line[]): void {
  const neighbours = new Map<string, string[]>();
  for (const { from, to } of lines) {
    neighbours.set(from, [...(neighbours.get(from) ?? []), to]);
    neighbours.set(to, [...(neighbours.get(to) ?? []), from]);
  }
  const places = new Map<string, number>();
  const note = (column: Thing[]) => {
    for (const [row, thing] of column.entries()) places.set(thing.id, row - (column.length - 1) / 2);
  };
  columns.forEach(note);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const column of round % 2 ? [...columns].reverse() : columns) {
      const pull = (thing: Thing): number => {
        const found = (neighbours.get(thing.id) ?? []).filter((id) => !column.some((other) => other.id === id));
        if (!found.length) return places.get(thing.id) ?? 0;
        return found.reduce((sum, id) => sum + (places.get(id) ?? 0), 0) / found.length;
      };
      const pulls = new Map(column.map((thing) => [thing.id, pull(thing)]));
      column.sort((one, other) => (pulls.get(one.id) ?? 0) - (pulls.get(other.id) ?? 0));
      note(column);
    }
  }
}

/** From the right of one thing to the left of another; around, if that stands in the same column or before. */
function curve(from: Box, to: Box): { d: string; x: number; y: number } {
  const startY = from.y + HEIGHT / 2;
  const endY = to.y + HEIGHT / 2;
  if (to.x > from.x) {
    const start = from.x + WIDTH;
    const bend = Math.max(40, (to.x - start) / 2);
    const d = `M${start} ${startY} C${start + bend} ${startY} ${to.x - bend} ${endY} ${to.x} ${endY}`;
    // Nearer to where the line ends, as many begin in one place.
    return { d, x: start + (to.x - start) * 0.54, y: startY + (endY - startY) * 0.6 - 4 };
  }
  const start = from.x + WIDTH;
  const end = to.x + WIDTH;
  const far = Math.max(start, end) + 46;
  return { d: `M${start} ${startY} C${far} ${startY} ${far} ${endY} ${end} ${endY}`, x: far - 10, y: (startY + endY) / 2 };
}
