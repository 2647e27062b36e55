/** A picture of what hangs together in a virtual host: as much as one can look at, around one exchange or queue. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, path, withQuery } from "../api";
import { type Box, type Drawn, HEIGHT, layout, WIDTH } from "../components/graph-layout";
import { Table } from "../components/table";
import { Card, Failure, Loading, Page } from "../components/ui";
import { useVhosts } from "../components/vhost-select";
import { count } from "../format";
import { useLive } from "../live";
import type { Picture, Thing } from "../model";
import { link, usePlace } from "../router";

const TYPING_MS = 200;
const FOUND_MAX = 8;
const SHAPES: Record<Thing["kind"], number> = { exchange: 20, queue: 6, consumer: 6 };
const KINDS = {
  binding: "is bound to",
  alternate: "has the alternate",
  "dead-letter": "sends dead letters to",
  consumer: "is consumed by",
};

const focus = (vhost: string, kind = "", name = ""): string => withQuery(link("topology"), { vhost, kind, name });

export function Topology() {
  const place = usePlace().query;
  const names = useVhosts();
  const vhost = place.get("vhost") ?? names[0] ?? "";
  const kind = place.get("kind") ?? "";
  const name = place.get("name") ?? "";
  return (
    <Page
      title={name ? `Around ${name}` : "Topology"}
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
      {vhost && <Around key={`${vhost} ${kind} ${name}`} vhost={vhost} kind={kind} name={name} />}
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
        aria-label="Find an exchange or a queue"
        placeholder="Find an exchange or a queue"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p class="quiet" role="status">
        {found && !found.length ? "Nothing has such a name." : ""}
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

function Around({ vhost, kind, name }: { vhost: string; kind: string; name: string }) {
  const { data, error } = useLive<Picture>(withQuery(path("warren", "topology", vhost), { kind, name }));
  const things = data?.things ?? [];
  const shown = useMemo(() => (data ? layout(data.things, data.lines) : undefined), [data]);
  if (!data || !shown) return error ? <Failure error={error} /> : <Loading />;
  const exchanges = things.filter((thing) => thing.kind === "exchange").length;
  return (
    <>
      <Failure error={error} />
      {!name && data.exchanges_total > exchanges && (
        <p class="quiet">
          The {count(exchanges)} exchanges that most is bound to, of {count(data.exchanges_total)}. Find others by name.
        </p>
      )}
      {things.length ? (
        <>
          <Drawing vhost={vhost} drawn={shown} middle={name ? `${kind} ${name}` : ""} />
          <Legend />
          <InWords vhost={vhost} picture={data} />
        </>
      ) : (
        <p class="quiet">Nothing is bound to any exchange here. The default exchange reaches every queue by its name.</p>
      )}
    </>
  );
}

function Drawing({ vhost, drawn, middle }: { vhost: string; drawn: Drawn; middle: string }) {
  const frame = useRef<HTMLDivElement>(null);
  // What stands in the middle is seen first, also where the picture is wider than the screen.
  useEffect(() => {
    const box = drawn.boxes.find(({ thing }) => thing.id === middle);
    if (box && frame.current) frame.current.scrollLeft = box.x + WIDTH / 2 - frame.current.clientWidth / 2;
  }, [middle]);
  return (
    <div class="drawing" ref={frame} tabIndex={0} role="group" aria-label="Picture of the topology; the same in words is below">
      <svg width={drawn.width} height={drawn.height} viewBox={`0 0 ${drawn.width} ${drawn.height}`}>
        {drawn.paths.map(({ line, d, x, y }) => (
          <g key={`${line.from} ${line.to} ${line.kind}`} class={`line ${line.kind}`}>
            <path d={d} />
            {line.keys[0] !== undefined && line.keys[0] !== "" && (
              <text x={x} y={y} text-anchor="middle">
                {cut(line.keys[0], 12)}
                {line.count > 1 && ` +${count(line.count - 1)}`}
                <title>{line.keys.join("\n")}</title>
              </text>
            )}
          </g>
        ))}
        {drawn.boxes.map((box) => (
          <Node key={box.thing.id} vhost={vhost} box={box} isMiddle={box.thing.id === middle} />
        ))}
      </svg>
    </div>
  );
}

function Node({ vhost, box, isMiddle }: { vhost: string; box: Box; isMiddle: boolean }) {
  const { thing, x, y } = box;
  const name = thing.name || "(default)";
  const inside = (
    <g class={`thing ${thing.kind}${isMiddle ? " middle" : ""}`} transform={`translate(${x} ${y})`}>
      <rect width={WIDTH} height={HEIGHT} rx={SHAPES[thing.kind]} />
      <text x="14" y="18" class="name">
        {cut(name, 18)}
      </text>
      <text x="14" y="33" class="note">
        {note(thing)}
      </text>
      <More thing={thing} />
    </g>
  );
  if (thing.kind === "consumer") return inside;
  const address = isMiddle ? link(`${thing.kind}s`, vhost, thing.name || "amq.default") : focus(vhost, thing.kind, thing.name);
  return (
    <a href={address}>
      <title>{`${thing.kind} ${name}, ${note(thing)}${isMiddle ? ": open its page" : ""}`}</title>
      {inside}
    </a>
  );
}

const More = ({ thing }: { thing: Thing }) => (
  <>
    {thing.more_behind !== undefined && (
      <text x={WIDTH - 8} y={HEIGHT + 12} text-anchor="end" class="more">
        +{count(thing.more_behind)} more →
      </text>
    )}
    {thing.more_before !== undefined && (
      <text x="8" y={HEIGHT + 12} class="more">
        ← +{count(thing.more_before)} more
      </text>
    )}
  </>
);

function note(thing: Thing): string {
  if (thing.kind === "exchange") return thing.type ?? "";
  if (thing.kind === "consumer") return "consumer";
  const parts = [many(thing.messages ?? 0, "message")];
  if (thing.consumers) parts.push(many(thing.consumers, "consumer"));
  if (thing.paused) parts.unshift("paused");
  return cut(parts.join(", "), 26);
}

const many = (number: number, what: string): string => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

/** As many characters as fit; by code point, so that none is halved. */
function cut(text: string, most: number): string {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}

const Legend = () => (
  <ul class="legend topology-legend" aria-hidden="true">
    {(["exchange", "queue", "consumer"] as const).map((kind) => (
      <li key={kind}>
        <span class={`dot ${kind}`} /> {kind}
      </li>
    ))}
    <li>— binding</li>
    <li>╌ alternate, dead letters</li>
  </ul>
);

function InWords({ vhost, picture }: { vhost: string; picture: Picture }) {
  const things = new Map(picture.things.map((thing) => [thing.id, thing]));
  const named = (id: string) => {
    const thing = things.get(id);
    if (!thing || thing.kind === "consumer") return <>{thing?.name}</>;
    return <a href={focus(vhost, thing.kind, thing.name)}>{thing.name}</a>;
  };
  return (
    <Card title="The same in words">
      <Table
        label="What leads where"
        items={picture.lines}
        itemKey={(line) => `${line.from} ${line.to} ${line.kind}`}
        empty="Nothing leads anywhere here."
        columns={[
          { label: "From", show: (line) => named(line.from) },
          { label: "How", show: (line) => KINDS[line.kind] },
          { label: "To", show: (line) => named(line.to) },
          { label: "With", show: (line) => line.keys.filter(Boolean).map((key) => <code key={key}>{key} </code>) },
          { label: "Bindings", isNumber: true, show: (line) => (line.kind === "binding" ? count(line.count) : "") },
        ]}
      />
    </Card>
  );
}
