/** A button that is disabled while its action runs, and reports its failure as a notice. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { notify } from "./notice";

interface ButtonProps {
  children?: ComponentChildren;
  onClick?: () => unknown;
  kind?: "plain" | "main" | "danger";
  type?: "button" | "submit";
  disabled?: boolean;
  title?: string;
}

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
