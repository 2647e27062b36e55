/** Forms and their fields. */

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";

type Children = { children?: ComponentChildren };

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

/** What is wrong with single fields of a form, by their names. */
export class FieldErrors extends Error {
  constructor(readonly byName: Record<string, string>) {
    super(Object.values(byName).join("\n"));
  }
}

const SECOND = "second";
const Errors = createContext<Record<string, string>>({});

/** One labelled input of a form. */
export function Field({ name, label, note, choices, rows, value, ...rest }: FieldProps) {
  const id = useId();
  const wrong = useContext(Errors)[name];
  const described = [note && `${id}-note`, wrong && `${id}-wrong`].filter(Boolean).join(" ");
  const shared = { id, name, "aria-describedby": described || undefined, "aria-invalid": wrong ? true : undefined };
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
      {wrong && (
        <small id={`${id}-wrong`} class="wrong" role="alert">
          {wrong}
        </small>
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

type FormAction = (values: FormValues) => Promise<unknown>;

interface FormProps extends Children {
  submit: string;
  action: FormAction;
  /** Another button, which passes the values to its own action. */
  second?: { label: string; action: FormAction } | undefined;
}

/** A form that passes its values to `action`, and shows below itself, or at its fields, why that failed. */
export function Form({ action, submit, second, children }: FormProps) {
  const [error, setError] = useState("");
  const [wrong, setWrong] = useState<Record<string, string>>({});
  const [isBusy, setBusy] = useState(false);
  const element = useRef<HTMLFormElement>(null);
  useEffect(() => element.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus(), [wrong]);
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    const isSecond = second && (event.submitter as HTMLButtonElement | null)?.value === SECOND;
    const form = event.target as HTMLFormElement;
    const values: FormValues = {};
    for (const [name, value] of new FormData(form)) values[name] = String(value);
    setError("");
    setWrong({});
    setBusy(true);
    try {
      await (isSecond ? second.action : action)(values);
    } catch (failure) {
      if (failure instanceof FieldErrors) setWrong(failure.byName);
      else setError(failure instanceof Error ? failure.message : String(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form ref={element} onSubmit={onSubmit}>
      <Errors.Provider value={wrong}>{children}</Errors.Provider>
      <div class="form-end">
        <button type="submit" class="main" disabled={isBusy}>
          {submit}
        </button>
        {second && (
          <button type="submit" value={SECOND} disabled={isBusy}>
            {second.label}
          </button>
        )}
        {error && (
          <p class="failure" role="alert">
            {error}
          </p>
        )}
      </div>
    </form>
  );
}
