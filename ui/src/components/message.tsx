/** One message: its details and its payload. */

import type { ComponentChildren } from "preact";
import { Facts } from "./layout";

interface MessageCardProps {
  facts: [string, ComponentChildren][];
  payload: string;
  isText: boolean;
}

export const MessageCard = ({ facts, payload, isText }: MessageCardProps) => (
  <article class="message">
    <Facts facts={facts} />
    <pre tabIndex={0} role="group" aria-label="Payload">
      {isText ? readable(payload) : payload}
    </pre>
  </article>
);

/** JSON is indented, other text is shown unchanged. */
function readable(payload: string): string {
  if (/^\s*[[{]/.test(payload)) {
    try {
      return JSON.stringify(JSON.parse(payload), null, 2);
    } catch {
      // Not JSON, or truncated.
    }
  }
  return payload;
}
