/** Lays out a graph in columns by distance from its centre, each node near its neighbours. */

import type { TopologyEdge, TopologyNode } from "../api-types";

export const WIDTH = 168;
export const HEIGHT = 42;
const GAP_X = 132;
const GAP_Y = 18;
const MARGIN = 16;
/** Rounds of ordering nodes by their neighbours. */
const ROUNDS = 4;
/** Where on an edge its label may be, as parts of its length, the best place first. */
const LABEL_PLACES = [0.6, 0.48, 0.72, 0.36, 0.84, 0.24];
const CHARACTER_WIDTH = 6.2;
const LINE_HEIGHT = 13;

export interface PlacedNode {
  node: TopologyNode;
  x: number;
  y: number;
}

export interface GraphLayout {
  boxes: PlacedNode[];
  paths: { edge: TopologyEdge; d: string; x: number; y: number }[];
  width: number;
  height: number;
}

/** The layout of a graph; `labelOf` is what is written at an edge. */
export function layoutGraph(
  nodes: TopologyNode[],
  edges: TopologyEdge[],
  labelOf: (edge: TopologyEdge) => string = () => "",
): GraphLayout {
  const columns = inColumns(nodes);
  arrange(columns, edges);
  const tallest = Math.max(...columns.map((column) => column.length), 1);
  const height = tallest * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN;
  const boxes = columns.flatMap((column, number) => {
    const top = (height - column.length * (HEIGHT + GAP_Y) + GAP_Y) / 2;
    return column.map((node, row) => ({ node, x: MARGIN + number * (WIDTH + GAP_X), y: top + row * (HEIGHT + GAP_Y) }));
  });
  const width = columns.length * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN;
  const byId = new Map(boxes.map((box) => [box.node.id, box]));
  const labels: Box[] = [];
  const paths = edges.flatMap((edge) => {
    const from = byId.get(edge.from);
    const to = byId.get(edge.to);
    if (!from || !to) return [];
    const { d, points } = curve(from, to);
    return [{ edge, d, ...labelPlace(points, labelOf(edge).length, labels) }];
  });
  return { boxes, paths, width, height };
}

function inColumns(nodes: TopologyNode[]): TopologyNode[][] {
  const numbers = [...new Set(nodes.map(({ layer }) => layer))].sort((one, other) => one - other);
  return numbers.map((number) => nodes.filter(({ layer }) => layer === number));
}

/** Order each column by the mean position of the neighbours, alternating the direction. */
function arrange(columns: TopologyNode[][], edges: TopologyEdge[]): void {
  const neighbours = new Map<string, string[]>();
  for (const { from, to } of edges) {
    neighbours.set(from, [...(neighbours.get(from) ?? []), to]);
    neighbours.set(to, [...(neighbours.get(to) ?? []), from]);
  }
  const places = new Map<string, number>();
  const note = (column: TopologyNode[]) => {
    for (const [row, node] of column.entries()) places.set(node.id, row - (column.length - 1) / 2);
  };
  columns.forEach(note);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const column of round % 2 ? [...columns].reverse() : columns) {
      const pull = (node: TopologyNode): number => {
        const found = (neighbours.get(node.id) ?? []).filter((id) => !column.some((other) => other.id === id));
        if (!found.length) return places.get(node.id) ?? 0;
        return found.reduce((sum, id) => sum + (places.get(id) ?? 0), 0) / found.length;
      };
      const pulls = new Map(column.map((node) => [node.id, pull(node)]));
      column.sort((one, other) => (pulls.get(one.id) ?? 0) - (pulls.get(other.id) ?? 0));
      note(column);
    }
  }
}

type Point = { x: number; y: number };

interface Box {
  left: number;
  right: number;
  bottom: number;
}

/** From the right of one node to the left of another, or around it if it is in the same or an earlier column. */
function curve(from: PlacedNode, to: PlacedNode): { d: string; points: Point[] } {
  const start = { x: from.x + WIDTH, y: from.y + HEIGHT / 2 };
  const isForward = to.x > from.x;
  const end = { x: isForward ? to.x : to.x + WIDTH, y: to.y + HEIGHT / 2 };
  const bend = Math.max(40, (end.x - start.x) / 2);
  const far = Math.max(start.x, end.x) + 46;
  const first = { x: isForward ? start.x + bend : far, y: start.y };
  const second = { x: isForward ? end.x - bend : far, y: end.y };
  const d = `M${start.x} ${start.y} C${first.x} ${first.y} ${second.x} ${second.y} ${end.x} ${end.y}`;
  return { d, points: [start, first, second, end] };
}

/** The first place on a curve where its label does not cover one of `labels`, to which it is added. */
function labelPlace(points: Point[], length: number, labels: Box[]): Point {
  const half = (length * CHARACTER_WIDTH) / 2;
  const boxAt = ({ x, y }: Point): Box => ({ left: x - half, right: x + half, bottom: y });
  const covers = (one: Box, other: Box) =>
    one.left < other.right && other.left < one.right && Math.abs(one.bottom - other.bottom) < LINE_HEIGHT;
  const places = LABEL_PLACES.map((part) => pointOn(points, part));
  const place = places.find((each) => !labels.some((other) => covers(boxAt(each), other))) ?? places[0] ?? { x: 0, y: 0 };
  if (length) labels.push(boxAt(place));
  return place;
}

/** A point of a cubic curve, a little above it. */
function pointOn(points: Point[], part: number): Point {
  const rest = 1 - part;
  const weights = [rest ** 3, 3 * rest ** 2 * part, 3 * rest * part ** 2, part ** 3];
  const sum = (axis: "x" | "y") => points.reduce((all, point, index) => all + (weights[index] ?? 0) * point[axis], 0);
  return { x: sum("x"), y: sum("y") - 4 };
}
