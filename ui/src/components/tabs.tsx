/** Tabs, of which one is shown. */

import type { ComponentChildren } from "preact";

export interface Tab {
  name: string;
  label: string;
  content: () => ComponentChildren;
}

export function Tabs({ tabs, current, choose }: { tabs: Tab[]; current: string; choose: (name: string) => void }) {
  const chosen = tabs.find((tab) => tab.name === current) ?? tabs[0];
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step || !chosen) return;
    const next = tabs[(tabs.indexOf(chosen) + step + tabs.length) % tabs.length];
    if (next) {
      choose(next.name);
      document.getElementById(`tab-${next.name}`)?.focus();
    }
  };
  return (
    <>
      <div role="tablist" class="tabs" onKeyDown={move}>
        {tabs.map((tab) => (
          <button
            type="button"
            key={tab.name}
            id={`tab-${tab.name}`}
            role="tab"
            aria-selected={tab === chosen}
            aria-controls="tab-panel"
            tabIndex={tab === chosen ? 0 : -1}
            onClick={() => choose(tab.name)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${chosen?.name}`} tabIndex={0}>
        {chosen?.content()}
      </div>
    </>
  );
}
