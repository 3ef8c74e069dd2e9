// Calls the script of a tool: imports it, warms up, waits for a call's arguments, and returns its result. Everything
// before the input is read happens once for all calls. Usage: driver.mjs SCRIPT FOLDER...
import * as std from "qjs:std";
import * as os from "qjs:os";

const folder = "/caisson";
const script = scriptArgs[1];
const { parse, stringify } = JSON; // as they are now: a script may replace them
const maxErrors = 8; // causes and members of an error that are shown
let printed = "";
let began = false;

// What is printed goes to the log: at once in a call, and with each call if it was printed before.
function log(...values) {
  const text = values.map((value) => (typeof value === "string" ? value : describe(value))).join(" ") + "\n";
  if (began) std.err.puts(text);
  else printed += text;
}

function describe(value) {
  try {
    return value instanceof Error ? report(value) : (stringify(value) ?? String(value));
  } catch {
    try {
      return String(value);
    } catch {
      return `a value of type ${typeof value} that cannot be shown`;
    }
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

const titleOf = (error) => (`${error.message}` === "" ? `${error.name}` : `${error.name}: ${error.message}`);

function report(error, depth = 0) {
  if (!(error instanceof Error)) return describe(error);
  const lines = [titleOf(error), ...frames(error)];
  if (depth < maxErrors) {
    for (const one of membersOf(error)) lines.push("with " + report(one, maxErrors));
    if (error.cause !== undefined) lines.push("caused by " + report(error.cause, depth + 1));
  }
  return lines.join("\n");
}

// membersOf returns the errors of an AggregateError.
function membersOf(error) {
  return Array.isArray(error.errors) ? error.errors.slice(0, maxErrors) : [];
}

function failure(error) {
  if (!(error instanceof Error)) {
    return { said: { success: false, error: typeof error === "string" ? error : "it threw " + describe(error) }, trace: "" };
  }
  const place = /([^\s(]+?):(\d+)(?::\d+)?\)?$/.exec(frames(error).find((line) => !line.includes(folder + "/")) ?? "");
  const where = place ? ` (${shown(place[1])}, line ${place[2]})` : "";
  const members = membersOf(error).map((one) => (one instanceof Error ? titleOf(one) : describe(one)));
  return { said: { success: false, error: [titleOf(error), ...members].join("; ") + where }, trace: report(error) + "\n" };
}

// failed returns the text of the result object for what was thrown, and the lines for the log.
function failed(error) {
  try {
    const { said, trace } = failure(error);
    return [stringify(said), trace];
  } catch { // what a script throws can be of its own making
    return ['{"success":false,"error":"it threw what cannot be shown"}', ""];
  }
}

function result(value) {
  if (value === undefined || value === null) return '{"success":true}';
  if (typeof value === "string") return stringify({ success: true, output: value });
  const data = stringify(value);
  if (data === undefined) throw new TypeError(typeof value);
  if (typeof value === "object" && typeof value.success === "boolean") return data;
  return `{"success":true,"output":${stringify(data)},"data":${data}}`;
}

async function call(run, text) {
  let value;
  try {
    value = await run(parse(text));
  } catch (error) {
    return failed(error);
  }
  try {
    return [result(value), ""];
  } catch (error) {
    const reason = error instanceof TypeError ? error.message : describe(error);
    return [stringify({ success: false, error: `it returned what is no JSON: ${reason}` }), ""];
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
    const [said, trace] = failed(error);
    log(trace.trimEnd());
    run = () => parse(said);
  }
  std.gc();
  const text = input();
  began = true;
  const written = std.open(folder + "/result", "w"); // before the script has used up the descriptors
  if (printed) std.err.puts(printed);
  const [said, trace] = await call(run, text || "{}");
  try {
    if (trace) std.err.puts(trace);
    std.err.flush();
    std.out.flush();
  } catch {} // the script closed it
  written.puts(said.toWellFormed());
  if (written.close() !== 0) std.exit(1);
  std.exit(0);
}

main();
