/** Lays out a graph in columns by distance from its centre, each node near its neighbours. */

import type { TopologyEdge, TopologyNode } from "../api-types";

export const WIDTH = 168;
export const HEIGHT = 42;
const GAP_X = 104;
const GAP_Y = 18;
const MARGIN = 16;
/** Rounds of ordering nodes by their neighbours. */
const ROUNDS = 4;

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

export function layoutGraph(nodes: TopologyNode[], edges: TopologyEdge[]): GraphLayout {
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
  const paths = edges.flatMap((edge) => {
    const from = byId.get(edge.from);
    const to = byId.get(edge.to);
    return from && to ? [{ edge, ...curve(from, to) }] : [];
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

/** From the right of one node to the left of another, or around it if it is in the same or an earlier column. */
function curve(from: PlacedNode, to: PlacedNode): { d: string; x: number; y: number } {
  const startY = from.y + HEIGHT / 2;
  const endY = to.y + HEIGHT / 2;
  if (to.x > from.x) {
    const start = from.x + WIDTH;
    const bend = Math.max(40, (to.x - start) / 2);
    const d = `M${start} ${startY} C${start + bend} ${startY} ${to.x - bend} ${endY} ${to.x} ${endY}`;
    // The label is nearer to the end, as many edges start at one node.
    return { d, x: start + (to.x - start) * 0.54, y: startY + (endY - startY) * 0.6 - 4 };
  }
  const start = from.x + WIDTH;
  const end = to.x + WIDTH;
  const far = Math.max(start, end) + 46;
  return { d: `M${start} ${startY} C${far} ${startY} ${far} ${endY} ${end} ${endY}`, x: far - 10, y: (startY + endY) / 2 };
}
