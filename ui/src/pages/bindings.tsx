/** Bindings of an exchange or a queue: the table and the form. */

import { path, post, remove } from "../api";
import type { Binding } from "../api-types";
import { ARGUMENTS_NOTE, Arguments, parseArguments } from "../components/arguments";
import { ConfirmButton } from "../components/dialog";
import { Field, Form, type FormValues } from "../components/form";
import { LiveTable } from "../components/table";
import type { Live } from "../live";
import { link } from "../router";

interface BindingTableProps {
  live: Live<Binding[]>;
  /** The end to show; the other one is the object of the page. */
  end: "source" | "destination";
}

export function BindingTable({ live, end }: BindingTableProps) {
  return (
    <LiveTable
      label="Bindings"
      live={live}
      itemKey={(it) => [it.source, it.destination_type, it.destination, it.properties_key].join("\n")}
      empty="There are no bindings."
      columns={[
        end === "destination"
          ? { label: "To", show: (it) => <Destination binding={it} /> }
          : { label: "From", show: (it) => (it.source ? <Source binding={it} /> : "(default exchange)") },
        { label: "Routing key", show: (it) => <code>{it.routing_key}</code> },
        { label: "Arguments", show: (it) => <Arguments table={it.arguments} /> },
        {
          label: "Actions",
          show: (it) =>
            it.source && (
              <ConfirmButton
                label="Unbind"
                object={`“${it.destination}” from “${it.source}”`}
                question={`Messages are no longer routed from “${it.source}” to “${it.destination}” by this binding.`}
                action={() => remove(addressOf(it)).then(live.refresh)}
              />
            ),
        },
      ]}
    />
  );
}

const Source = ({ binding }: { binding: Binding }) => (
  <a href={link("exchanges", binding.vhost, binding.source)}>{binding.source}</a>
);

function Destination({ binding }: { binding: Binding }) {
  const kind = binding.destination_type === "queue" ? "queues" : "exchanges";
  return (
    <>
      <a href={link(kind, binding.vhost, binding.destination)}>{binding.destination}</a>{" "}
      <span class="quiet">{binding.destination_type}</span>
    </>
  );
}

function addressOf(it: Binding): string {
  const kind = it.destination_type === "queue" ? "q" : "e";
  return path("bindings", it.vhost, "e", it.source, kind, it.destination, it.properties_key);
}

type BindFormProps = { vhost: string; close: () => void } & ({ source: string } | { queue: string });

export function BindForm(props: BindFormProps) {
  const bind = async (values: FormValues) => {
    const [source, kind, destination] =
      "source" in props ? [props.source, values.kind ?? "q", values.other ?? ""] : [values.other ?? "", "q", props.queue];
    await post(path("bindings", props.vhost, "e", source, kind, destination), {
      routing_key: values.routing_key ?? "",
      arguments: parseArguments(values.arguments ?? ""),
    });
    props.close();
  };
  return (
    <Form submit="Bind" action={bind}>
      {"source" in props ? (
        <>
          <Field
            name="kind"
            label="Destination type"
            choices={[
              ["q", "queue"],
              ["e", "exchange"],
            ]}
          />
          <Field name="other" label="Destination" required />
        </>
      ) : (
        <Field name="other" label="Source exchange" required />
      )}
      <Field name="routing_key" label="Routing key" />
      <Field name="arguments" label="Arguments" rows={2} note={ARGUMENTS_NOTE} />
    </Form>
  );
}
