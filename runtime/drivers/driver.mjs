// Calls the script of a tool: imports it, warms up, waits for a call's arguments, and returns its result. Everything
// before the input is read happens once for all calls. Usage: driver.mjs SCRIPT FOLDER...
import * as std from "qjs:std";
import * as os from "qjs:os";

const folder = "/caisson";
const script = scriptArgs[1];
let printed = "";
let began = false;

// What is printed goes to the log: at once in a call, and with each call if it was printed before.
function log(...values) {
  const text = values.map((value) => (typeof value === "string" ? value : describe(value))).join(" ") + "\n";
  if (began) std.err.puts(text);
  else printed += text;
}

function describe(value) {
  if (value instanceof Error) return report(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

globalThis.print = log;
globalThis.setTimeout ??= os.setTimeout;
globalThis.clearTimeout ??= os.clearTimeout;
globalThis.console = { log, info: log, warn: log, error: log, debug: log, trace: log };
delete globalThis.scriptArgs;

// Random numbers are drawn from the host's, which differ in each call; the engine's own are seeded once for all.
const draws = new Uint32Array(2048);
let drawn = draws.length;
Math.random = function random() {
  if (!began) return 0.5; // the same in all calls, as anything would be that is drawn now
  if (drawn >= draws.length) {
    const device = os.open(folder + "/random", os.O_RDONLY);
    os.read(device, draws.buffer, 0, draws.byteLength);
    os.close(device);
    drawn = 0;
  }
  const high = draws[drawn++] >>> 5;
  return (high * 67108864 + (draws[drawn++] >>> 6)) / 9007199254740992;
};

function shown(path) {
  return path.startsWith(folder + "/tool/") ? path.slice(folder.length + 6) : path;
}

// frames returns the lines of a stack, without those of this file.
function frames(error) {
  return String(error.stack ?? "")
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.includes(folder + "/driver.mjs") && !line.includes("(native)"))
    .map((line) => line.replaceAll(folder + "/tool/", ""));
}

function report(error) {
  if (!(error instanceof Error)) return "Uncaught: " + describe(error);
  return [`${error.name}: ${error.message}`, ...frames(error)].join("\n");
}

function failure(error) {
  if (!(error instanceof Error)) {
    return { said: { success: false, error: typeof error === "string" ? error : "it threw " + describe(error) }, trace: "" };
  }
  const place = /([^\s(]+?):(\d+)(?::\d+)?\)?$/.exec(frames(error).find((line) => !line.includes(folder + "/")) ?? "");
  const where = place ? ` (${shown(place[1])}, line ${place[2]})` : "";
  return { said: { success: false, error: `${error.name}: ${error.message}${where}` }, trace: report(error) + "\n" };
}

function result(value) {
  if (value !== null && typeof value === "object" && typeof value.success === "boolean") return JSON.stringify(value);
  if (value === undefined || value === null) return '{"success":true}';
  if (typeof value === "string") return JSON.stringify({ success: true, output: value });
  const data = JSON.stringify(value);
  if (data === undefined) throw new TypeError(`it returned a ${typeof value}, which is no JSON`);
  return `{"success":true,"output":${JSON.stringify(data)},"data":${data}}`;
}

async function call(run, text) {
  let value;
  try {
    value = await run(JSON.parse(text));
  } catch (error) {
    const { said, trace } = failure(error);
    return [JSON.stringify(said), trace];
  }
  try {
    return [result(value), ""];
  } catch (error) {
    return [JSON.stringify({ success: false, error: `it returned what is no JSON: ${error.message}` }), ""];
  }
}

function input() {
  const file = std.fdopen(0, "r");
  return file.readAsString();
}

async function load() {
  const tool = await import(script);
  if (typeof tool.default !== "function") {
    throw new TypeError(`${shown(script)} has no default export that is a function: write export default function (arguments) { … }`);
  }
  const sample = std.loadFile(folder + "/sample.json");
  if (sample !== null) {
    const [, trace] = await call(tool.default, sample);
    if (trace) log(trace + "(with the manifest's sample)");
  }
  return tool.default;
}

async function main() {
  for (let i = 0; i < 3; i++) await call((value) => value, '{"a":[1.5,"\\u00fc",null,true],"b":{"c":-1}}');
  await call(() => null.x, "{}");
  let run;
  try {
    run = await load();
  } catch (error) {
    const { said, trace } = failure(error);
    log(trace.trimEnd());
    run = () => said;
  }
  std.gc();
  const text = input();
  began = true;
  if (printed) std.err.puts(printed);
  const [said, trace] = await call(run, text || "{}");
  if (trace) std.err.puts(trace);
  std.err.flush();
  std.out.flush();
  const written = std.open(folder + "/result", "w");
  written.puts(said.toWellFormed());
  if (written.close() !== 0) std.exit(1);
  std.exit(0);
}

main();
