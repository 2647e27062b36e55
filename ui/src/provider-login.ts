/** Logins at OAuth 2 providers: the node does them, and the page goes to an address that it tells. */

import { path, post } from "./api";
import type { ProviderLocation } from "./api-types";

// Where the user was before the login; the tab keeps it, so that no address can lead elsewhere.
const RETURN = "return-to";

/** Go to the provider of the resource server `id`. */
export async function logInAtProvider(id: string): Promise<void> {
  const { location: provider } = await post<ProviderLocation>(path("warren", "session", "provider"), { resource_server: id });
  sessionStorage.setItem(RETURN, location.hash);
  location.assign(provider);
}

/** Go on where the user was before a login at a provider, whether it has succeeded or not. */
export function resume(): void {
  const hash = sessionStorage.getItem(RETURN);
  sessionStorage.removeItem(RETURN);
  if (hash?.startsWith("#/") && !location.hash) location.replace(hash);
}
