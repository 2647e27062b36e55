/** Where a message would go from an exchange, and why nowhere else; nothing is published. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import { ARGUMENTS_NOTE, Arguments, parseArguments } from "../components/arguments";
import { Table } from "../components/table";
import { Badge, Card, Field, Form, type Tone, type Values } from "../components/ui";
import { count } from "../format";
import type { Judged, Reached, Trace } from "../model";
import { link } from "../router";

const MISSES = 50;
const OUTCOMES: Record<Reached["outcome"], [Tone, string]> = {
  accepted: ["good", "takes it"],
  refused: ["bad", "refuses it"],
  dropped: ["bad", "drops it"],
  expired: ["warn", "lets it expire"],
};

export function RouteTool({ vhost, name }: { vhost: string; name: string }) {
  const [trace, setTrace] = useState<Trace>();
  const look = async (values: Values) => {
    const headers = parseArguments(values.headers ?? "");
    const answer = await post<Trace>(path("warren", "exchanges", vhost, name, "route"), {
      routing_key: values.routing_key ?? "",
      properties: {
        ...parseArguments(values.properties ?? ""),
        ...(Object.keys(headers).length ? { headers } : {}),
      },
      misses: MISSES,
    });
    setTrace(answer);
  };
  return (
    <Card title="Where would a message go?">
      <p class="quiet">Nothing is published, and no counter moves.</p>
      <Form submit="Find out" action={look}>
        <div class="form-row">
          <Field name="routing_key" label="With the routing key" placeholder="order.new.eu" />
          <Field name="headers" label="And headers" rows={2} note={ARGUMENTS_NOTE} placeholder="tenant = acme" />
          <Field name="properties" label="And properties" rows={2} placeholder="priority = 5" />
        </div>
      </Form>
      {trace && <Found vhost={vhost} trace={trace} />}
    </Card>
  );
}

function Found({ vhost, trace }: { vhost: string; trace: Trace }) {
  const { queues, misses } = trace;
  return (
    <div class="found">
      {trace.refusals.map((text) => (
        <p key={text} class="failure" role="alert">
          It would be refused: {text}
        </p>
      ))}
      <h3>
        {trace.is_routed ? `It would reach ${many(trace.queues_total, "queue")}` : "It would reach no queue"}
        {trace.exchanges.length > 1 && `, through ${count(trace.exchanges.length)} exchanges`}
      </h3>
      {trace.is_routed && (
        <Table<Reached>
          label="Queues that it would reach"
          items={queues}
          itemKey={(it) => it.name}
          columns={[
            { label: "Queue", show: (it) => <a href={link("queues", vhost, it.name)}>{it.name}</a> },
            { label: "Which", show: (it) => <Outcome queue={it} /> },
            { label: "Because", show: (it) => <Reasons queue={it} /> },
          ]}
        />
      )}
      <Rest shown={queues.length} total={trace.queues_total} />
      {misses.length > 0 && (
        <>
          <h3>
            Why not along {many(trace.misses_total, "other binding")}
            {trace.misses_total > misses.length && ` (the nearest ${count(misses.length)})`}
          </h3>
          <Table<Judged>
            label="Bindings that do not match"
            items={misses}
            itemKey={(it) => `${it.source} ${it.destination_type} ${it.destination} ${it.properties_key}`}
            columns={[
              { label: "To", show: (it) => <Destination vhost={vhost} judged={it} /> },
              { label: "Bound with", show: (it) => <Bound judged={it} /> },
              { label: "Why not", show: (it) => it.reason },
            ]}
          />
        </>
      )}
    </div>
  );
}

const many = (number: number, what: string): string => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

const Rest = ({ shown, total }: { shown: number; total: number }) =>
  shown < total ? (
    <p class="quiet">
      {count(shown)} of {count(total)} are shown.
    </p>
  ) : null;

function Outcome({ queue }: { queue: Reached }) {
  const [tone, text] = OUTCOMES[queue.outcome];
  return (
    <>
      <Badge tone={tone}>{text}</Badge>
      {!queue.is_certain && <Badge tone="warn">perhaps</Badge>}
      {queue.pushes_out && <Badge tone="warn">older ones go</Badge>}
      {queue.paused && <Badge tone="warn">paused</Badge>}
      {queue.dead_letter && (
        <small>
          what dies goes to {queue.dead_letter.exchange || "the default exchange"}
          {queue.dead_letter.exists ? "" : ", which does not exist"}
        </small>
      )}
    </>
  );
}

function Reasons({ queue }: { queue: Reached }) {
  return (
    <>
      {queue.reason && <p class="reason">{queue.reason}</p>}
      <ul class="arguments">
        {queue.through.map((judged) => (
          <li key={`${judged.source} ${judged.properties_key}`}>
            {judged.source !== undefined && <span class="quiet">{judged.source || "(default)"}: </span>}
            {judged.reason}
          </li>
        ))}
      </ul>
      <Rest shown={queue.through.length} total={queue.bindings} />
    </>
  );
}

function Destination({ vhost, judged }: { vhost: string; judged: Judged }) {
  const kind = judged.destination_type === "exchange" ? "exchanges" : "queues";
  return (
    <>
      <a href={link(kind, vhost, judged.destination ?? "")}>{judged.destination}</a>{" "}
      {judged.destination_type === "exchange" && <Badge>exchange</Badge>}
    </>
  );
}

const Bound = ({ judged }: { judged: Judged }) => (
  <>
    {judged.binding_key && <code>{judged.binding_key}</code>}
    <Arguments table={judged.arguments} />
  </>
);
