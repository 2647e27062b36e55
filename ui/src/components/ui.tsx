/** The components that every page is made of. */

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import type { ApiError } from "../api";
import { notify } from "./notice";

type Children = { children?: ComponentChildren };

export function Page({ title, aside, children }: Children & { title: ComponentChildren; aside?: ComponentChildren }) {
  return (
    <>
      <header class="page-head">
        <h1>{title}</h1>
        {aside}
      </header>
      {children}
    </>
  );
}

export function Card({ title, aside, children }: Children & { title?: string; aside?: ComponentChildren }) {
  const id = useId();
  return (
    <section class="card" aria-labelledby={title ? id : undefined}>
      {title && (
        <header class="card-head">
          <h2 id={id}>{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </section>
  );
}

/** One number with its label. */
export function Figure({ label, value, note }: { label: string; value: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        {value}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

export const Figures = ({ children }: Children) => <dl class="figures">{children}</dl>;

/** Details of one object; undefined ones are left out. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export type Tone = "plain" | "good" | "warn" | "bad";

export const Badge = ({ tone = "plain", title, children }: Children & { tone?: Tone; title?: string }) => (
  <span class={`badge ${tone}`} title={title}>
    {children}
  </span>
);

const GOOD = new Set(["running", "live"]);
const BAD = new Set(["down", "stopped", "crashed", "blocked"]);

export function State({ state }: { state: string | undefined }) {
  if (!state) return null;
  return <Badge tone={GOOD.has(state) ? "good" : BAD.has(state) ? "bad" : "warn"}>{state}</Badge>;
}

export function ErrorMessage({ error }: { error: ApiError | undefined }) {
  return error ? (
    <p class="failure" role="alert">
      {error.message}
    </p>
  ) : null;
}

export const Loading = ({ label = "Loading …" }: { label?: string }) => (
  <p class="quiet" role="status">
    {label}
  </p>
);

type ButtonProps = Children & {
  onClick?: () => unknown;
  kind?: "plain" | "main" | "danger";
  type?: "button" | "submit";
  disabled?: boolean;
  title?: string;
};

export function Button({ onClick, kind = "plain", type = "button", disabled, title, children }: ButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const click = async () => {
    if (!onClick) return;
    setBusy(true);
    try {
      await onClick();
    } catch (error) {
      notify(error instanceof Error ? error.message : String(error), "bad");
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type={type} class={kind} disabled={disabled || isBusy} title={title} onClick={onClick ? click : undefined}>
      {children}
    </button>
  );
}

interface FieldProps {
  name: string;
  label: string;
  note?: string;
  value?: string | number;
  required?: boolean;
  type?: string;
  /** Of a number: "any" allows fractions. */
  step?: string;
  placeholder?: string;
  choices?: (string | [string, string])[];
  rows?: number;
  autocomplete?: string;
}

/** One labelled input of a form. */
export function Field({ name, label, note, choices, rows, value, ...rest }: FieldProps) {
  const id = useId();
  const shared = { id, name, "aria-describedby": note ? `${id}-note` : undefined };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {choices ? (
        <select {...shared}>
          {choices.map((choice) => {
            const [key, text] = typeof choice === "string" ? [choice, choice] : choice;
            return (
              <option key={key} value={key} selected={key === String(value)}>
                {text}
              </option>
            );
          })}
        </select>
      ) : rows ? (
        <textarea
          {...shared}
          rows={rows}
          defaultValue={value === undefined ? "" : String(value)}
          placeholder={rest.placeholder}
          required={rest.required}
        />
      ) : (
        <input {...shared} defaultValue={value === undefined ? "" : String(value)} {...(rest as object)} />
      )}
      {note && <small id={`${id}-note`}>{note}</small>}
    </div>
  );
}

export function Checkbox({ name, label, checked }: { name: string; label: string; checked?: boolean }) {
  return (
    <label class="check">
      <input type="checkbox" name={name} defaultChecked={checked ?? false} /> {label}
    </label>
  );
}

export type FormValues = Record<string, string>;

/** A form that passes its values to `action`, and shows below itself why that failed. */
export function Form({
  action,
  submit,
  children,
}: Children & { action: (values: FormValues) => Promise<unknown>; submit: string }) {
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const onSubmit = async (event: Event) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const values: FormValues = {};
    for (const [name, value] of new FormData(form)) values[name] = String(value);
    setError("");
    setBusy(true);
    try {
      await action(values);
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={onSubmit}>
      {children}
      <div class="form-end">
        <button type="submit" class="main" disabled={isBusy}>
          {submit}
        </button>
        {error && (
          <p class="failure" role="alert">
            {error}
          </p>
        )}
      </div>
    </form>
  );
}

export interface Tab {
  name: string;
  label: string;
  content: () => ComponentChildren;
}

export function Tabs({ tabs, current, choose }: { tabs: Tab[]; current: string; choose: (name: string) => void }) {
  const chosen = tabs.find((tab) => tab.name === current) ?? tabs[0];
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step || !chosen) return;
    const next = tabs[(tabs.indexOf(chosen) + step + tabs.length) % tabs.length];
    if (next) {
      choose(next.name);
      document.getElementById(`tab-${next.name}`)?.focus();
    }
  };
  return (
    <>
      <div role="tablist" class="tabs" onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            type="button"
            key={tab.name}
            id={`tab-${tab.name}`}
            role="tab"
            aria-selected={tab === chosen}
            aria-controls="tab-panel"
            tabIndex={tab === chosen ? 0 : -1}
            onClick={() => choose(tab.name)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${chosen?.name}`} tabIndex={0}>
        {chosen?.content()}
      </div>
    </>
  );
}
