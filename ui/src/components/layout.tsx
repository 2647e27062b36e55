/** The parts of a page: its header, cards, figures and details. */

import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

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
