import { expect, test } from "vitest";
import { parseArguments } from "../src/components/arguments";

test("each line is one argument, whose value is JSON or else text", () => {
  const text =
    'x-max-length = 10\nx-overflow = reject-publish\n\nx-single-active-consumer = true\nlist = [1, "two"]\nquoted = "10"';
  expect(parseArguments(text)).toEqual({
    "x-max-length": 10,
    "x-overflow": "reject-publish",
    "x-single-active-consumer": true,
    list: [1, "two"],
    quoted: "10",
  });
});

test("a value keeps the equals signs in it", () => {
  expect(parseArguments("filter = a=b")).toEqual({ filter: "a=b" });
});

test("a line without a name is refused with its text", () => {
  expect(() => parseArguments("x-max-length 10")).toThrow("x-max-length 10");
  expect(() => parseArguments("= 10")).toThrow("= 10");
});
