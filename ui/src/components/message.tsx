/** One message: what is known of it, and its payload. */

import type { ComponentChildren } from "preact";
import { Facts } from "./ui";

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

/** JSON is put on several lines, anything else stands as it came. */
function readable(payload: string): string {
  if (/^\s*[[{]/.test(payload)) {
    try {
      return JSON.stringify(JSON.parse(payload), null, 2);
    } catch {
      // It only looked like JSON, or was cut.
    }
  }
  return payload;
}
