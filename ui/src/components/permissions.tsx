/** Permissions of users: their columns, and a card that shows, sets and clears them. */

import type { ComponentChildren } from "preact";
import { remove } from "../api";
import type { Permission } from "../api-types";
import type { Live } from "../live";
import { ConfirmButton } from "./dialog";
import { Field, Form, type FormValues } from "./form";
import { Card } from "./layout";
import { type Column, LiveTable } from "./table";
import { VhostField } from "./vhost-select";

/** The patterns that permissions and topic permissions have. */
export const PATTERN_COLUMNS: Column<{ write: string; read: string }>[] = [
  { label: "Write", show: ({ write }) => <code>{write}</code> },
  { label: "Read", show: ({ read }) => <code>{read}</code> },
];

export const PERMISSION_COLUMNS: Column<Permission>[] = [
  { label: "Configure", show: ({ configure }) => <code>{configure}</code> },
  ...PATTERN_COLUMNS,
];

export const PatternField = ({ name, label }: { name: string; label: string }) => (
  <Field name={name} label={label} value=".*" note="a regular expression; empty: no resources" />
);

interface PermissionCardProps<T> {
  title: string;
  live: Live<T[]>;
  columns: Column<T>[];
  itemKey: (item: T) => string;
  empty: string;
  set: (values: FormValues) => Promise<unknown>;
  /** What clearing `item` removes, what follows from that, and the API address of `item`. */
  clear: (item: T) => { object: string; consequence: string; address: string };
  /** The fields of the form between the virtual host and the patterns. */
  children: ComponentChildren;
}

export function PermissionCard<T>({ title, live, columns, itemKey, empty, set, clear, children }: PermissionCardProps<T>) {
  const { refresh } = live;
  const clearButton = (item: T) => {
    const { object, consequence, address } = clear(item);
    const action = () => remove(address).then(refresh);
    return <ConfirmButton label="Clear" object={object} question={consequence} action={action} />;
  };
  return (
    <Card title={title}>
      <LiveTable
        label={title}
        live={live}
        itemKey={itemKey}
        empty={empty}
        columns={[...columns, { label: "Actions", show: clearButton }]}
      />
      <Form submit="Set permission" action={(values) => set(values).then(refresh)}>
        <div class="form-row">
          <VhostField />
          {children}
          <PatternField name="write" label="Write" />
          <PatternField name="read" label="Read" />
        </div>
      </Form>
    </Card>
  );
}
