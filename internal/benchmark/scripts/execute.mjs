// Runs JavaScript code, as a tool that executes code for a model does.
export default function run({ code }) {
  let stdout = "";
  let stderr = "";
  let result;
  const show = (values) => values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(" ") + "\n";
  globalThis.console = {
    log: (...values) => void (stdout += show(values)),
    error: (...values) => void (stderr += show(values)),
  };
  try {
    result = (0, eval)(code);
  } catch (error) {
    stderr += `${error.name}: ${error.message}\n${error.stack}`;
  }
  return { stdout, stderr, result: result === undefined ? null : String(result) };
}
