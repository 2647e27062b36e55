/** Short notices at the edge of the page: what was done, or why it failed. */

import { useEffect, useState } from "preact/hooks";

type Tone = "good" | "bad";
interface Notice {
  id: number;
  text: string;
  tone: Tone;
}

const SHOWN_MS = 6000;
let add: (notice: Notice) => void = () => undefined;
let last = 0;

export function notify(text: string, tone: Tone = "good"): void {
  last += 1;
  add({ id: last, text, tone });
}

export function Notices() {
  const [notices, setNotices] = useState<Notice[]>([]);
  useEffect(() => {
    add = (notice) => {
      setNotices((all) => [...all, notice]);
      setTimeout(() => setNotices((all) => all.filter(({ id }) => id !== notice.id)), SHOWN_MS);
    };
  }, []);
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.map(({ id, text, tone }) => (
        <p key={id} class={tone}>
          {text}
        </p>
      ))}
    </div>
  );
}
