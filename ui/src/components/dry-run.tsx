/** What a shovel or federation link would do, step by step; nothing was changed. */

import { useState } from "preact/hooks";
import type { DryRun, DryRunStep } from "../api-types";
import { shortAddress } from "../definition";
import { Button } from "./button";
import { Card } from "./layout";
import { Badge, type Tone } from "./status";
import { Table } from "./table";

const TONES: Record<string, Tone> = { exists: "good", create: "plain", refused: "bad", unknown: "warn" };
const WORDS: Record<string, string> = {
  exists: "exists",
  create: "would be made",
  refused: "not possible",
  unknown: "not known",
};

export function DryRunSteps({ result }: { result: DryRun }) {
  const refused = result.steps.filter(({ state }) => state === "refused").length;
  const unknown = result.steps.filter(({ state }) => state === "unknown").length;
  return (
    <section aria-label="Dry run" class="preview">
      <p role="status">
        {!result.steps.length
          ? "Nothing would be done."
          : refused
            ? `${refused} of ${result.steps.length} steps cannot be done. Nothing was changed.`
            : unknown
              ? `It cannot be told whether it would run. Nothing was changed.`
              : "It would run. Nothing was changed."}
      </p>
      {result.steps.length > 0 && (
        <Table
          label="Steps"
          items={result.steps.map((step, number) => ({ ...step, number }))}
          itemKey={({ number }) => String(number)}
          columns={[
            { label: "Step", show: (step) => <Step step={step} /> },
            { label: "At", show: ({ end, uri }) => [end, <small key="uri">{shortAddress(uri)}</small>] },
            {
              label: "Result",
              show: ({ action, state, text }) => [
                <Badge key="state" tone={TONES[state] ?? "plain"}>
                  {state === "exists" && !/^(declare|bind)/.test(action) ? "possible" : (WORDS[state] ?? state)}
                </Badge>,
                text && (
                  <small key="text" class="why">
                    {text}
                  </small>
                ),
              ],
            },
          ]}
        />
      )}
    </section>
  );
}

const Step = ({ step: { action, name } }: { step: DryRunStep }) => (
  <>
    {action} {name && <code>{name}</code>}
  </>
);

/** A card with a button that asks for a dry run, and its result. */
export function DryRunCard({ ask }: { ask: () => Promise<DryRun> }) {
  const [result, setResult] = useState<DryRun>();
  return (
    <Card title="Dry run" aside={<Button onClick={async () => setResult(await ask())}>Dry run</Button>}>
      {result ? (
        <DryRunSteps result={result} />
      ) : (
        <p class="quiet">Tells what the link needs at both ends, and which rights are missing, and changes nothing.</p>
      )}
    </Card>
  );
}
