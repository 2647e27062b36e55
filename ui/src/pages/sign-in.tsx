/** The sign-in page: at identity providers, with a password, or either. */

import { useEffect, useState } from "preact/hooks";
import { path } from "../api";
import type { AuthSettings } from "../api-types";
import { Button } from "../components/button";
import { Field, Form } from "../components/form";
import { loginChoices, loginFailure } from "../login-choice";
import { logInAtProvider } from "../provider-login";
import { useFetch } from "../request";
import type { Session } from "../session";

export function SignIn({ signIn }: Pick<Session, "signIn">) {
  const { data, isPending } = useFetch<AuthSettings>(path("auth"));
  const [failure] = useState(() => loginFailure(location.search));
  // The reason is told once, not again when the page is loaded again.
  useEffect(() => {
    if (failure) history.replaceState(null, "", location.pathname + location.hash);
  }, [failure]);
  if (isPending) return null;
  const choices = data ? loginChoices(data) : [];
  const takesPasswords = choices.length === 0 || !data?.oauth_disable_basic_auth;
  return (
    <main class="sign-in">
      <h1>
        <img src="icon.svg" alt="" width="40" height="40" /> Warren
      </h1>
      {failure && (
        <p class="failure" role="alert">
          {failure}
        </p>
      )}
      {choices.length > 0 && (
        <div class="providers">
          {choices.map(({ id, label }) => (
            <Button key={id} kind="main" onClick={() => logInAtProvider(id)}>
              Sign in with {label}
            </Button>
          ))}
        </div>
      )}
      {choices.length > 0 && takesPasswords && <p class="or">or with a password</p>}
      {takesPasswords && (
        <Form submit="Sign in" action={({ username = "", password = "" }) => signIn(username, password)}>
          <Field name="username" label="Username" required autocomplete="username" />
          <Field name="password" label="Password" type="password" autocomplete="current-password" />
        </Form>
      )}
    </main>
  );
}
