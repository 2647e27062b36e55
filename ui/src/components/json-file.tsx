/** A form field that chooses a JSON file, and reading that file. */

import { formatBytes } from "../format";

const SIZE_MAX = 10_000_000;

/** The JSON value in the chosen `file`; throws an error that says why it cannot be read. */
export async function readJson(file: File | undefined): Promise<unknown> {
  if (!file) throw new Error("Choose a file first.");
  if (file.size > SIZE_MAX)
    throw new Error(
      `${file.name} has ${formatBytes(file.size)}. Files of up to ${formatBytes(SIZE_MAX)} can be imported here; use the HTTP API for larger ones.`,
    );
  try {
    return JSON.parse(await file.text()) as unknown;
  } catch (error) {
    throw new Error(`${file.name} is not valid JSON: ${error instanceof Error ? error.message : error}`);
  }
}

interface FileFieldProps {
  id: string;
  label: string;
  choose: (file: File | undefined) => void;
}

export function FileField({ id, label, choose }: FileFieldProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input id={id} type="file" accept="application/json,.json" onChange={(event) => choose(event.currentTarget.files?.[0])} />
    </div>
  );
}
