/** Dialogs, and buttons that open one. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Button } from "./button";

interface DialogProps {
  title: string;
  close: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={close}>
      <header class="card-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="icon" aria-label="Close" onClick={close}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

interface DialogButtonProps {
  label: string;
  title?: string;
  kind?: "plain" | "main" | "danger";
  children: (close: () => void) => ComponentChildren;
}

/** A button that opens a dialog. */
export function DialogButton({ label, title, kind, children }: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <Button kind={kind ?? "plain"} onClick={() => setOpen(true)}>
        {label}
      </Button>
      {isOpen && (
        <Dialog title={title ?? label} close={close}>
          {children(close)}
        </Dialog>
      )}
    </>
  );
}

interface ConfirmButtonProps {
  label: string;
  /** The object of the action, by name. */
  object: string;
  question: string;
  kind?: "plain" | "danger";
  action: () => Promise<unknown>;
}

/** A button for an action that interrupts something or cannot be undone, which asks for confirmation. */
export function ConfirmButton({ label, object, question, kind = "danger", action }: ConfirmButtonProps) {
  return (
    <DialogButton label={label} title={`${label} ${object}?`} kind={kind}>
      {(close) => (
        <>
          <p>{question}</p>
          <div class="form-end">
            <Button kind={kind === "danger" ? kind : "main"} onClick={() => action().then(close)}>
              {label}
            </Button>
            <Button onClick={close}>Cancel</Button>
          </div>
        </>
      )}
    </DialogButton>
  );
}
