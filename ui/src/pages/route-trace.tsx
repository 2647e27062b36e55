/** Traces how an exchange would route a message, without publishing it. */

import { useState } from "preact/hooks";
import { path, post } from "../api";
import type { BindingMatch, RoutedQueue, Trace } from "../api-types";
import { ARGUMENTS_NOTE, Arguments, parseArguments } from "../components/arguments";
import { Field, Form, type FormValues } from "../components/form";
import { Card } from "../components/layout";
import { Badge, type Tone } from "../components/status";
import { Table } from "../components/table";
import { count, plural } from "../format";
import { link } from "../router";

const MISSES = 50;
const OUTCOMES: Record<RoutedQueue["outcome"], [Tone, string]> = {
  accepted: ["good", "accepted"],
  refused: ["bad", "rejected"],
  dropped: ["bad", "dropped"],
  expired: ["warn", "expires"],
};

export function RouteTrace({ vhost, name }: { vhost: string; name: string }) {
  const [trace, setTrace] = useState<Trace>();
  const requestTrace = async (values: FormValues) => {
    const headers = parseArguments(values.headers ?? "");
    const answer = await post<Trace>(path("warren", "exchanges", vhost, name, "route"), {
      routing_key: values.routing_key ?? "",
      properties: {
        ...parseArguments(values.properties ?? ""),
        ...(Object.keys(headers).length ? { headers } : {}),
      },
      unmatched: MISSES,
    });
    setTrace(answer);
  };
  return (
    <Card title="Trace route">
      <p class="quiet">Shows how a message would be routed. Nothing is published, and no statistics change.</p>
      <Form submit="Trace" action={requestTrace}>
        <div class="form-row">
          <Field name="routing_key" label="Routing key" placeholder="order.new.eu" />
          <Field name="headers" label="Headers" rows={2} note={ARGUMENTS_NOTE} placeholder="tenant = acme" />
          <Field name="properties" label="Properties" rows={2} placeholder="priority = 5" />
        </div>
      </Form>
      {trace && <TraceResult vhost={vhost} trace={trace} />}
    </Card>
  );
}

function TraceResult({ vhost, trace }: { vhost: string; trace: Trace }) {
  const { queues, unmatched } = trace;
  return (
    <div class="found">
      {trace.refusals.map((text) => (
        <p key={text} class="failure" role="alert">
          Publishing would fail: {text}
        </p>
      ))}
      <h3>
        {trace.is_routed ? `Routed to ${plural(trace.queues_total, "queue")}` : "Not routed to any queue"}
        {trace.exchanges.length > 1 && `, through ${count(trace.exchanges.length)} exchanges`}
      </h3>
      {trace.is_routed && (
        <Table<RoutedQueue>
          label="Destination queues"
          items={queues}
          itemKey={(it) => it.name}
          columns={[
            { label: "Queue", show: (it) => <a href={link("queues", vhost, it.name)}>{it.name}</a> },
            { label: "Outcome", show: (it) => <Outcome queue={it} /> },
            { label: "Matching bindings", show: (it) => <MatchingBindings queue={it} /> },
          ]}
        />
      )}
      <ShownOf shown={queues.length} total={trace.queues_total} />
      {unmatched.length > 0 && (
        <>
          <h3>
            {plural(trace.unmatched_total, "binding")} without a match
            {trace.unmatched_total > unmatched.length && ` (the closest ${count(unmatched.length)})`}
          </h3>
          <Table<BindingMatch>
            label="Bindings that do not match"
            items={unmatched}
            itemKey={(it) => `${it.source} ${it.destination_type} ${it.destination} ${it.properties_key}`}
            columns={[
              { label: "Destination", show: (it) => <Destination vhost={vhost} binding={it} /> },
              { label: "Binding", show: (it) => <BindingKey binding={it} /> },
              { label: "Reason", show: (it) => it.reason },
            ]}
          />
        </>
      )}
    </div>
  );
}

const ShownOf = ({ shown, total }: { shown: number; total: number }) =>
  shown < total ? (
    <p class="quiet">
      {count(shown)} of {count(total)} shown.
    </p>
  ) : null;

function Outcome({ queue }: { queue: RoutedQueue }) {
  const [tone, text] = OUTCOMES[queue.outcome];
  return (
    <>
      <Badge tone={tone}>{text}</Badge>
      {!queue.is_certain && <Badge tone="warn">possible</Badge>}
      {queue.drops_head && <Badge tone="warn">drops older messages</Badge>}
      {queue.paused && <Badge tone="warn">paused</Badge>}
      {queue.dead_letter && (
        <small>
          dead letters go to {queue.dead_letter.exchange || "the default exchange"}
          {queue.dead_letter.exists ? "" : ", which does not exist"}
        </small>
      )}
    </>
  );
}

function MatchingBindings({ queue }: { queue: RoutedQueue }) {
  return (
    <>
      {queue.reason && <p class="reason">{queue.reason}</p>}
      <ul class="arguments">
        {queue.matched_bindings.map((binding) => (
          <li key={`${binding.source} ${binding.properties_key}`}>
            {binding.source !== undefined && <span class="quiet">{binding.source || "(default)"}: </span>}
            {binding.reason}
          </li>
        ))}
      </ul>
      <ShownOf shown={queue.matched_bindings.length} total={queue.bindings} />
    </>
  );
}

function Destination({ vhost, binding }: { vhost: string; binding: BindingMatch }) {
  const kind = binding.destination_type === "exchange" ? "exchanges" : "queues";
  return (
    <>
      <a href={link(kind, vhost, binding.destination ?? "")}>{binding.destination}</a>{" "}
      {binding.destination_type === "exchange" && <Badge>exchange</Badge>}
    </>
  );
}

const BindingKey = ({ binding }: { binding: BindingMatch }) => (
  <>
    {binding.binding_key && <code>{binding.binding_key}</code>}
    <Arguments table={binding.arguments} />
  </>
);
