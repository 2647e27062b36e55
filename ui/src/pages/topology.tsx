/** The exchanges, queues, consumers, bindings and links of a virtual host, as a diagram and as tables. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, path, withQuery } from "../api";
import type { Topology as Graph, TopologyEdge, TopologyLink, TopologyNode } from "../api-types";
import { type GraphLayout, HEIGHT, layoutGraph, type PlacedNode, WIDTH } from "../components/graph-layout";
import { Card, Page } from "../components/layout";
import { LinkState, otherError } from "../components/link-cells";
import { ErrorMessage, Loading } from "../components/status";
import { Table } from "../components/table";
import { useVhosts } from "../components/vhost-select";
import { shortAddress } from "../definition";
import { count, plural, rate } from "../format";
import { useLive } from "../live";
import { federationPage, link, shovelPage, useLocation } from "../router";

const TYPING_MS = 200;
const FOUND_MAX = 8;
const SHAPES: Record<TopologyNode["kind"], number> = { exchange: 20, queue: 6, consumer: 6, broker: 2 };
const KINDS = {
  binding: "bound to",
  alternate: "alternate exchange",
  "dead-letter": "dead-letters to",
  consumer: "consumed by",
  shovel: "shovelled to",
  federation: "federated to",
};

const focus = (vhost: string, kind = "", name = ""): string => withQuery(link("topology"), { vhost, kind, name });

export function Topology() {
  const place = useLocation().query;
  const names = useVhosts();
  const vhost = place.get("vhost") ?? names[0] ?? "";
  const kind = place.get("kind") ?? "";
  const name = place.get("name") ?? "";
  return (
    <Page
      title={name ? `Topology of ${name}` : "Topology"}
      aside={
        <>
          {name && (
            <a class="button" href={focus(vhost)}>
              All exchanges
            </a>
          )}
          <select
            aria-label="Virtual host"
            value={vhost}
            onChange={(event) => (location.hash = focus(event.currentTarget.value))}
          >
            {names.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </>
      }
    >
      {vhost && <Search vhost={vhost} />}
      {vhost && <TopologyView key={`${vhost} ${kind} ${name}`} vhost={vhost} kind={kind} name={name} />}
    </Page>
  );
}

function Search({ vhost }: { vhost: string }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<[string, string][]>();
  useEffect(() => {
    if (!text) return setFound(undefined);
    let isWanted = true;
    const timer = setTimeout(async () => {
      const query = { page: 1, page_size: FOUND_MAX, name: text, columns: "name" };
      const lists = await Promise.all(
        (["exchange", "queue"] as const).map(async (kind) => {
          const page = await get<{ items: { name: string }[] }>(withQuery(path(`${kind}s`, vhost), query));
          return page.items.filter(({ name }) => name).map(({ name }): [string, string] => [kind, name]);
        }),
      );
      if (isWanted) setFound(lists.flat());
    }, TYPING_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [text, vhost]);
  return (
    <div class="topology-search">
      <input
        type="search"
        aria-label="Find an exchange or queue"
        placeholder="Find an exchange or queue"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p class="quiet" role="status">
        {found && !found.length ? "No exchange or queue matches." : ""}
      </p>
      {found && found.length > 0 && (
        <ul>
          {found.map(([kind, name]) => (
            <li key={`${kind} ${name}`}>
              <a href={focus(vhost, kind, name)}>
                <span class={`dot ${kind}`} aria-hidden="true" /> {name} <span class="quiet">{kind}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function TopologyView({ vhost, kind, name }: { vhost: string; kind: string; name: string }) {
  const { data, error } = useLive<Graph>(withQuery(path("warren", "topology", vhost), { kind, name }));
  const nodes = data?.nodes ?? [];
  const shown = useMemo(() => (data ? layoutGraph(data.nodes, data.edges, labelOf) : undefined), [data]);
  if (!data || !shown) return error ? <ErrorMessage error={error} /> : <Loading />;
  const exchanges = nodes.filter((node) => node.kind === "exchange").length;
  return (
    <>
      <ErrorMessage error={error} />
      {!name && data.exchanges_total > exchanges && (
        <p class="quiet">
          The {count(exchanges)} exchanges with the most bindings, of {count(data.exchanges_total)}. Use the search to find
          others.
        </p>
      )}
      {nodes.length ? (
        <>
          <Diagram vhost={vhost} graph={shown} middle={name ? `${kind} ${name}` : ""} />
          <Legend />
          <LinkTable vhost={vhost} graph={data} isAround={name !== ""} />
          <TopologyTable vhost={vhost} graph={data} />
        </>
      ) : (
        <p class="quiet">This virtual host has no links, and no bindings, except those of the default exchange to every queue.</p>
      )}
    </>
  );
}

function Diagram({ vhost, graph, middle }: { vhost: string; graph: GraphLayout; middle: string }) {
  const frame = useRef<HTMLDivElement>(null);
  // Scroll to the node in the middle where the diagram is wider than the screen.
  useEffect(() => {
    const box = graph.boxes.find(({ node }) => node.id === middle);
    if (box && frame.current) frame.current.scrollLeft = box.x + WIDTH / 2 - frame.current.clientWidth / 2;
  }, [middle]);
  return (
    <div
      class="drawing"
      ref={frame}
      tabIndex={0}
      role="group"
      aria-label="Topology diagram; the table below has the same content"
    >
      <svg width={graph.width} height={graph.height} viewBox={`0 0 ${graph.width} ${graph.height}`}>
        {graph.paths.map(({ edge, d }) => (
          <g key={`${edge.from} ${edge.to} ${edge.kind}`} class={`edge ${edge.kind}${isDown(edge) ? " down" : ""}`}>
            <path d={d} />
          </g>
        ))}
        {graph.paths.map(({ edge, x, y }) => (
          <g key={`label ${edge.from} ${edge.to} ${edge.kind}`} class={`edge${isDown(edge) ? " down" : ""}`}>
            {labelOf(edge) && (
              <text x={x} y={y} text-anchor="middle">
                {labelOf(edge)}
                <title>{edge.links?.map(described).join("\n") ?? edge.keys.join("\n")}</title>
              </text>
            )}
          </g>
        ))}
        {graph.boxes.map((box) => (
          <NodeShape key={box.node.id} vhost={vhost} box={box} isMiddle={box.node.id === middle} />
        ))}
      </svg>
    </div>
  );
}

function NodeShape({ vhost, box, isMiddle }: { vhost: string; box: PlacedNode; isMiddle: boolean }) {
  const { node, x, y } = box;
  const name = node.kind === "broker" ? shortAddress(node.name) : node.name || "(default)";
  const inside = (
    <g class={`node ${node.kind}${isMiddle ? " middle" : ""}`} transform={`translate(${x} ${y})`}>
      <rect width={WIDTH} height={HEIGHT} rx={SHAPES[node.kind]} />
      <text x="14" y="18" class="name">
        {cut(name, 18)}
      </text>
      <text x="14" y="33" class="note">
        {note(node)}
      </text>
      <More node={node} />
    </g>
  );
  if (node.kind === "consumer") return inside;
  if (node.kind === "broker") {
    return (
      <g>
        <title>{node.name}</title>
        {inside}
      </g>
    );
  }
  const address = isMiddle ? link(`${node.kind}s`, vhost, node.name || "amq.default") : focus(vhost, node.kind, node.name);
  return (
    <a href={address}>
      <title>{`${node.kind} ${name}, ${note(node)}${isMiddle ? ": open its page" : ""}`}</title>
      {inside}
    </a>
  );
}

const More = ({ node }: { node: TopologyNode }) => (
  <>
    {node.more_downstream !== undefined && (
      <text x={WIDTH - 8} y={HEIGHT + 12} text-anchor="end" class="more">
        +{count(node.more_downstream)} more →
      </text>
    )}
    {node.more_upstream !== undefined && (
      <text x="8" y={HEIGHT + 12} class="more">
        ← +{count(node.more_upstream)} more
      </text>
    )}
  </>
);

function note(node: TopologyNode): string {
  if (node.kind === "exchange") return node.type ?? "";
  if (node.kind === "consumer" || node.kind === "broker") return node.kind;
  const parts = [plural(node.messages ?? 0, "message")];
  if (node.consumers) parts.push(plural(node.consumers, "consumer"));
  if (node.paused) parts.unshift("paused");
  return cut(parts.join(", "), 26);
}

/** As many characters as fit; by code point, so that none is halved. */
function cut(text: string, most: number): string {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}

const Legend = () => (
  <ul class="legend topology-legend" aria-hidden="true">
    {(["exchange", "queue", "consumer", "broker"] as const).map((kind) => (
      <li key={kind}>
        <span class={`dot ${kind}`} /> {kind}
      </li>
    ))}
    <li>— binding</li>
    <li>╌ alternate exchange, dead-lettering</li>
    <li>━ shovel, federation; red if it does not run</li>
  </ul>
);

const isDown = (edge: TopologyEdge): boolean => edge.links?.some(({ state }) => state !== "running") ?? false;

/** One key or name, the number of others, and what links forward. */
function labelOf({ keys: [key = ""], count: number, links = [] }: TopologyEdge): string {
  if (!key) return "";
  const forwarded = links.reduce((sum, each) => sum + each.rate, 0);
  return [cut(key, 12), number > 1 && `+${count(number - 1)}`, forwarded > 0 && rate(forwarded)].filter(Boolean).join(" ");
}

const nameOf = (it: TopologyLink): string => (it.upstream === undefined ? it.name : `${it.name} from ${it.upstream}`);

const described = (it: TopologyLink): string =>
  `${nameOf(it)}: ${it.state}, ${rate(it.rate)}${it.why || it.last_error ? `, ${it.why || it.last_error}` : ""}`;

/** What a node is called, with a link to its part of the topology. */
function NodeName({ vhost, node }: { vhost: string; node: TopologyNode | undefined }) {
  if (!node || node.kind === "consumer") return <>{node?.name}</>;
  if (node.kind === "broker") return <>{shortAddress(node.name)}</>;
  return <a href={focus(vhost, node.kind, node.name)}>{node.name}</a>;
}

function LinkTable({ vhost, graph, isAround }: { vhost: string; graph: Graph; isAround: boolean }) {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const rows = graph.edges.flatMap((edge) => (edge.links ?? []).map((it) => ({ edge, it })));
  if (!graph.links_total) return null;
  return (
    <Card title="Shovels and federation links">
      {rows.length < graph.links_total && (
        <p class="quiet">
          {count(rows.length)} of {count(graph.links_total)} in this virtual host,{" "}
          {isAround ? "with an end in this diagram" : "those that do not run first"}. The pages{" "}
          <a href={link("shovels")}>Shovels</a> and <a href={link("federation")}>Federation</a> list all.
        </p>
      )}
      <Table
        label="Shovels and federation links"
        items={rows}
        itemKey={({ edge, it }) => `${edge.from} ${edge.to} ${it.vhost} ${it.name} ${it.id}`}
        empty="None of them has an end here."
        columns={[
          {
            label: "Name",
            show: ({ it }) => (
              <a href={it.id === undefined ? shovelPage(it.vhost, it.name) : federationPage(it.vhost ?? "", it.id)}>
                {nameOf(it)}
              </a>
            ),
          },
          { label: "State", show: ({ it }) => <LinkState link={it} state={it.state} /> },
          { label: "From", show: ({ edge }) => <NodeName vhost={vhost} node={nodes.get(edge.from)} /> },
          { label: "To", show: ({ edge }) => <NodeName vhost={vhost} node={nodes.get(edge.to)} /> },
          { label: "Rate", isNumber: true, show: ({ it }) => rate(it.rate) },
          { label: "Last error", show: ({ it }) => otherError(it) || "–" },
        ]}
      />
    </Card>
  );
}

function TopologyTable({ vhost, graph }: { vhost: string; graph: Graph }) {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const named = (id: string) => <NodeName vhost={vhost} node={nodes.get(id)} />;
  return (
    <Card title="Bindings">
      <Table
        label="Bindings"
        items={graph.edges.filter(({ links }) => !links)}
        itemKey={(edge) => `${edge.from} ${edge.to} ${edge.kind}`}
        empty="There are no bindings."
        columns={[
          { label: "From", show: (edge) => named(edge.from) },
          { label: "Relation", show: (edge) => KINDS[edge.kind] },
          { label: "To", show: (edge) => named(edge.to) },
          { label: "Routing keys", show: (edge) => edge.keys.filter(Boolean).map((key) => <code key={key}>{key} </code>) },
          { label: "Bindings", isNumber: true, show: (edge) => (edge.kind === "binding" ? count(edge.count) : "") },
        ]}
      />
    </Card>
  );
}
