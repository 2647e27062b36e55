/** Badges, states, errors and what is shown while data loads. */

import type { ComponentChildren } from "preact";
import type { ApiError } from "../api";

export type Tone = "plain" | "good" | "warn" | "bad";

export const Badge = ({
  tone = "plain",
  title,
  children,
}: { children?: ComponentChildren } & { tone?: Tone; title?: string }) => (
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

/** Says which nodes of the cluster have not answered, so that what is on them is not in the data below. */
export function NodesMissing({ names = [] }: { names: string[] | undefined }) {
  if (!names.length) return null;
  const why = names.length === 1 ? "this node does not answer" : "these nodes do not answer";
  return (
    <p class="paused condition" role="status">
      What is on {names.join(" and ")} is not counted here: {why}.
    </p>
  );
}

export const Loading = ({ label = "Loading …" }: { label?: string }) => (
  <p class="quiet" role="status">
    {label}
  </p>
);
