import { expect, test } from "vitest";
import type { TopologyEdge, TopologyNode } from "../src/api-types";
import { HEIGHT, layoutGraph, WIDTH } from "../src/components/graph-layout";

const node = (id: string, layer: number): TopologyNode => ({ id, kind: "queue", name: id, layer });
const edge = (from: string, to: string): TopologyEdge => ({ from, to, kind: "binding", keys: [], count: 1 });
const orderOf = (graph: ReturnType<typeof layoutGraph>, layer: number): string[] =>
  graph.boxes
    .filter(({ node }) => node.layer === layer)
    .sort((one, other) => one.y - other.y)
    .map(({ node }) => node.id);

test("an empty graph has a size that can be graph", () => {
  const graph = layoutGraph([], []);
  expect(graph.boxes).toEqual([]);
  expect(graph.height).toBeGreaterThan(0);
});

test("nodes of one layer stand below each other without touching", () => {
  const { boxes } = layoutGraph([node("a", 0), node("b", 0), node("c", 0)], []);
  const tops = boxes.map(({ y }) => y).sort((one, other) => one - other);
  expect(new Set(boxes.map(({ x }) => x)).size).toBe(1);
  for (const [index, y] of tops.slice(1).entries()) expect(y - (tops[index] ?? 0)).toBeGreaterThan(HEIGHT);
});

test("layers stand from left to right by their numbers, and leave none out", () => {
  const { boxes } = layoutGraph([node("right", 7), node("left", -3), node("middle", 0)], []);
  const byX = [...boxes].sort((one, other) => one.x - other.x);
  expect(byX.map(({ node }) => node.id)).toEqual(["left", "middle", "right"]);
  const [left, middle, right] = byX.map(({ x }) => x);
  expect((right ?? 0) - (middle ?? 0)).toBe((middle ?? 0) - (left ?? 0));
});

test("every node is inside of the drawing", () => {
  const nodes = [0, 1, 2].flatMap((layer) => [...Array(layer * 3 + 1).keys()].map((row) => node(`${layer} ${row}`, layer)));
  const { boxes, width, height } = layoutGraph(nodes, []);
  for (const { x, y } of boxes) {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(y).toBeGreaterThanOrEqual(0);
    expect(x + WIDTH).toBeLessThanOrEqual(width);
    expect(y + HEIGHT).toBeLessThanOrEqual(height);
  }
});

test("nodes are ordered beside their neighbours, so that edges do not cross", () => {
  const nodes = [node("a", 0), node("b", 0), node("to b", 1), node("to a", 1)];
  const graph = layoutGraph(nodes, [edge("a", "to a"), edge("b", "to b")]);
  expect(orderOf(graph, 0).map((id) => `to ${id}`)).toEqual(orderOf(graph, 1));
});

test("an edge to a node that is not shown is left out", () => {
  const { paths } = layoutGraph([node("a", 0)], [edge("a", "elsewhere")]);
  expect(paths).toEqual([]);
});

test("an edge forward ends at the left of its node, and an edge back goes around", () => {
  const nodes = [node("a", 0), node("b", 1)];
  const { boxes, paths } = layoutGraph(nodes, [edge("a", "b"), edge("b", "a")]);
  const [a, b] = boxes;
  expect(paths[0]?.d.endsWith(`${b?.x} ${(b?.y ?? 0) + HEIGHT / 2}`)).toBe(true);
  expect(paths[1]?.d.endsWith(`${(a?.x ?? 0) + WIDTH} ${(a?.y ?? 0) + HEIGHT / 2}`)).toBe(true);
  expect(paths[1]?.x).toBeGreaterThan((a?.x ?? 0) + WIDTH);
});

test("labels of edges that meet do not cover each other", () => {
  const nodes = [node("a", 0), node("b", 0), node("c", 0), node("to", 1)];
  const edges = ["a", "b", "c"].map((id) => edge(id, "to"));
  const { paths } = layoutGraph(nodes, edges, () => "twelve chars");
  for (const [index, one] of paths.entries()) {
    for (const other of paths.slice(index + 1)) {
      expect(Math.abs(one.x - other.x) > 74 || Math.abs(one.y - other.y) >= 13).toBe(true);
    }
  }
});
