/** The three patterns of a permission, as columns of a table. */

import type { Permission } from "../model";
import type { Column } from "./table";

export const RIGHTS: Column<Permission>[] = [
  { label: "Configure", show: ({ configure }) => <code>{configure}</code> },
  { label: "Write", show: ({ write }) => <code>{write}</code> },
  { label: "Read", show: ({ read }) => <code>{read}</code> },
];
