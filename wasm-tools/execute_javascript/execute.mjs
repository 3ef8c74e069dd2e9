// Runs a program, and returns what it prints and the value of its last line.
import * as std from "qjs:std";
import * as os from "qjs:os";

function text(value) {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

function valueOf(value) {
  if (value === undefined || value === null) return null;
  try {
    const written = JSON.stringify(value);
    return written === undefined ? String(value) : JSON.parse(written);
  } catch {
    return String(value);
  }
}

function failure(error, stdout, stderr) {
  if (!(error instanceof Error)) {
    return { success: false, error: `the program threw ${text(error)}`, output: stdout, data: { stdout, stderr, traceback: "" } };
  }
  const frames = String(error.stack ?? "")
    .split("\n")
    .filter((line) => line.includes("<evalScript>") || line.includes("<input>"));
  const line = /:(\d+)(?::\d+)?\)?$/.exec(frames[0] ?? "")?.[1];
  const said = `${error.name}: ${error.message}`;
  return {
    success: false,
    error: line ? `${said} (line ${line})` : said,
    output: stdout,
    data: { stdout, stderr, traceback: [said, ...frames].join("\n") + "\n" },
  };
}

export default async function ({ code, input }) {
  let stdout = "";
  let stderr = "";
  const prints = (...values) => void (stdout += values.map(text).join(" ") + "\n");
  const warns = (...values) => void (stderr += values.map(text).join(" ") + "\n");
  globalThis.print = prints;
  globalThis.console = { log: prints, info: prints, debug: prints, warn: warns, error: warns, trace: warns };
  globalThis.input = input ?? "";
  Object.assign(globalThis, { std, os });
  let value;
  try {
    value = valueOf(await std.evalScript(code));
  } catch (error) {
    return failure(error, stdout, stderr);
  }
  return { result: value, stdout, stderr };
}
