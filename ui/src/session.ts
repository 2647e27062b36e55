/** The signed-in user. The session is a cookie that scripts cannot read; the password is not stored. */

import { useEffect, useState } from "preact/hooks";
import { get, path, post, remove, WHOAMI, whenSignedOut } from "./api";
import type { CurrentUser, ProviderLocation } from "./api-types";
import { resume } from "./provider-login";

const SESSION = path("warren", "session");

export interface Session {
  /** undefined: not known yet; null: nobody is signed in. */
  user: CurrentUser | null | undefined;
  signIn: (username: string, password: string) => Promise<void>;
  signOut: () => Promise<void>;
}

export function useSession(): Session {
  const [user, setUser] = useState<CurrentUser | null>();
  const load = () =>
    get<CurrentUser>(WHOAMI)
      .catch(() => null)
      .then((found) => {
        resume();
        setUser(found);
      });
  useEffect(() => {
    whenSignedOut(() => setUser(null));
    void load();
  }, []);
  return {
    user,
    signIn: async (username, password) => {
      await post(SESSION, { username, password });
      await load();
    },
    signOut: async () => {
      const provider = await remove<ProviderLocation | null>(SESSION);
      setUser(null);
      // The session at the provider ends there.
      if (provider) location.assign(provider.location);
    },
  };
}

export const isAdministrator = (user: CurrentUser): boolean => user.tags.includes("administrator");

export const mayMonitor = (user: CurrentUser): boolean => isAdministrator(user) || user.tags.includes("monitoring");

export const mayMakePolicies = (user: CurrentUser): boolean => isAdministrator(user) || user.tags.includes("policymaker");
