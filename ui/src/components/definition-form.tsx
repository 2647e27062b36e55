/** The base of the forms of shovels and upstreams: a field for each common key, the others as lines. */

import { type ComponentChildren, type ComponentProps, createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { ApiError } from "../api";
import type { DryRun, Parameter } from "../api-types";
import { addressesOf, type Definition, refusedFields, typed, writtenAddresses } from "../definition";
import { asText } from "../format";
import { parseArguments } from "./arguments";
import { DryRunSteps } from "./dry-run";
import { Field, FieldErrors, Form, type FormValues } from "./form";
import { VhostField } from "./vhost-select";

interface DefinitionFormProps {
  /** The parameter that is changed. */
  old?: Parameter | undefined;
  /** Its definition; the keys are those of the fields. */
  before: Definition;
  /** The keys with addresses, which are mandatory, and the other keys with a field of their own. */
  addressKeys: string[];
  keys: string[];
  /** True for a key whose value is text even if it looks like a number. */
  isText: (key: string) => boolean;
  /** What is wrong with fields, before the broker is asked. */
  wrong?: (values: FormValues) => Record<string, string>;
  save: (vhost: string, name: string, definition: Definition) => Promise<void>;
  /** Try what the definition would do; `name` is that of an existing parameter. */
  check?: (vhost: string, name: string | undefined, definition: Definition) => Promise<DryRun>;
  /** An example of another key. */
  placeholder: string;
  children: ComponentChildren;
}

const Before = createContext<Definition>({});

export function DefinitionForm({
  old,
  before,
  addressKeys,
  keys,
  isText,
  wrong,
  save,
  check,
  placeholder,
  children,
}: DefinitionFormProps) {
  const [steps, setSteps] = useState<DryRun>();
  const names = [...addressKeys, ...keys];
  const others = Object.entries(before)
    .filter(([key]) => !names.includes(key))
    .map(([key, value]) => `${key} = ${asText(value)}`)
    .join("\n");
  const definitionOf = (values: FormValues): Definition => {
    const definition: Definition = {};
    for (const key of addressKeys) definition[key] = writtenAddresses(values[key] ?? "");
    for (const key of keys) {
      const text = (values[key] ?? "").trim();
      if (text) definition[key] = isText(key) ? text : typed(text);
    }
    const errors = { ...wrong?.(values) };
    try {
      Object.assign(definition, parseArguments(values.others ?? ""));
    } catch (error) {
      errors.others = error instanceof Error ? error.message : String(error);
    }
    if (Object.keys(errors).length) throw new FieldErrors(errors);
    return definition;
  };
  const atFields = async (action: Promise<void>) => {
    try {
      await action;
    } catch (failure) {
      const refused = failure instanceof ApiError ? refusedFields(failure.message, names) : {};
      throw Object.keys(refused).length ? new FieldErrors(refused) : failure;
    }
  };
  const vhostOf = (values: FormValues) => old?.vhost ?? values.vhost ?? "/";
  const submit = (values: FormValues) => atFields(save(vhostOf(values), old?.name ?? values.name ?? "", definitionOf(values)));
  const dryRun = (values: FormValues) => {
    setSteps(undefined);
    return atFields((check?.(vhostOf(values), old?.name, definitionOf(values)) ?? Promise.reject()).then(setSteps));
  };
  return (
    <Before.Provider value={before}>
      <Form
        submit={old ? "Save" : "Create"}
        action={async (values) => submit(values)}
        second={check && { label: "Dry run", action: async (values) => dryRun(values) }}
      >
        {!old && (
          <div class="form-row">
            <VhostField />
            <Field name="name" label="Name" required />
          </div>
        )}
        {children}
        <Field
          name="others"
          label="Other keys"
          rows={2}
          value={others}
          placeholder={placeholder}
          note="one per line: key = value; values that are JSON are sent as JSON, others as text"
        />
        {steps && <DryRunSteps result={steps} />}
      </Form>
    </Before.Provider>
  );
}

/** A field whose name is a key of the definition. */
export function KeyField(props: Omit<ComponentProps<typeof Field>, "value">) {
  const value = useContext(Before)[props.name];
  return <Field {...props} value={value === undefined ? "" : asText(value)} />;
}

/** The addresses of one end, which are tried in turn. */
export function AddressesField({ name, unset = "", note = "" }: { name: string; unset?: string; note?: string }) {
  const value = addressesOf(useContext(Before)[name]).join("\n") || unset;
  return (
    <Field
      name={name}
      label="Addresses"
      rows={2}
      required
      value={value}
      placeholder="amqp://user:password@host:5672/vhost"
      note={`one per line, tried in turn${note}. A password that stays *** is not changed.`}
    />
  );
}

export const PrefetchField = ({ name }: { name: string }) => (
  <KeyField name={name} label="Prefetch count" type="number" placeholder="1000" note="messages on their way at most" />
);

export const ReconnectDelayField = () => (
  <KeyField
    name="reconnect-delay"
    label="Reconnect delay"
    type="number"
    placeholder="5"
    note="seconds until the next attempt to connect"
  />
);

export const AckModeField = () => (
  <KeyField
    name="ack-mode"
    label="Acknowledgement"
    choices={[
      ["", "on-confirm: nothing is lost"],
      ["on-publish", "on-publish: may lose messages if the destination fails"],
      ["no-ack", "no-ack: may lose messages if the link fails"],
    ]}
  />
);
