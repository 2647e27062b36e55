/** The sign-in page. */

import { Field, Form } from "../components/form";
import type { Session } from "../session";

export function SignIn({ signIn }: Pick<Session, "signIn">) {
  return (
    <main class="sign-in">
      <h1>
        <img src="icon.svg" alt="" width="40" height="40" /> Warren
      </h1>
      <Form submit="Sign in" action={({ username = "", password = "" }) => signIn(username, password)}>
        <Field name="username" label="Username" required autocomplete="username" />
        <Field name="password" label="Password" type="password" autocomplete="current-password" />
      </Form>
    </main>
  );
}
