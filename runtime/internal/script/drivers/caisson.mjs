// What a script can ask the host for: HTTP requests, secrets, other tools, progress, and its own call. Each needs the
// permission of the same name in the manifest, except progress and the call's own data.
import * as os from "qjs:os";

const statuses = { 1: "denied", 2: "invalid", 3: "limit", 4: "deadline", 5: "not_found", 6: "io", 7: "unavailable" };

const tooBig = 22; // WASI's EFBIG

/** The host did not do what it was asked for. status is a word, such as "limit", and detail is what the host said. */
export class HostError extends Error {
  constructor(status, detail) {
    super(detail.message ?? detail.rule ?? `${status}: ${detail.limit ?? ""}`);
    this.name = status === "denied" ? "Denied" : "HostError";
    this.status = status;
    this.detail = detail;
  }
}

export function encode(text) {
  const escaped = unescape(encodeURIComponent(String(text).toWellFormed()));
  const bytes = new Uint8Array(escaped.length);
  for (let i = 0; i < escaped.length; i++) bytes[i] = escaped.charCodeAt(i);
  return bytes;
}

/** Decodes UTF-8; what is not UTF-8 becomes U+FFFD. */
export function decode(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    const first = bytes[i++];
    if (first < 0x80) {
      text += String.fromCharCode(first);
      continue;
    }
    const more = first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : 0;
    let point = first & (0x3f >> more);
    let valid = more > 0 && first < 0xf5;
    for (let k = 0; valid && k < more; k++) {
      if ((bytes[i] & 0xc0) !== 0x80) valid = false;
      else point = (point << 6) | (bytes[i++] & 0x3f);
    }
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000) || point < [0, 0x80, 0x800, 0x10000][more]) valid = false;
    text += valid ? String.fromCodePoint(point) : "\ufffd";
  }
  return text;
}

function ask(name, request, body = new Uint8Array(0)) {
  const text = encode(JSON.stringify(request));
  const line = encode(`${name} ${text.length} ${body.length}\n`);
  const all = new Uint8Array(line.length + text.length + body.length);
  all.set(line);
  all.set(text, line.length);
  all.set(body, line.length + text.length);
  const device = os.open("/caisson/host", os.O_RDWR);
  try {
    for (let at = 0; at < all.length; ) {
      const n = os.write(device, all.buffer, at, all.length - at);
      if (n === -tooBig) throw new HostError("limit", { message: `the request is too long: it has ${text.length + body.length} bytes` });
      if (n <= 0) throw new HostError("invalid", { message: `the request was refused (${n})` });
      at += n;
    }
    const head = new Uint8Array(1);
    let header = "";
    for (;;) {
      os.read(device, head.buffer, 0, 1);
      if (head[0] === 10) break;
      header += String.fromCharCode(head[0]);
    }
    const [status, length] = header.split(" ").map(Number);
    const response = new Uint8Array(length);
    for (let at = 0; at < length; ) at += os.read(device, response.buffer, at, length - at);
    if (status === 0) return response;
    throw new HostError(statuses[status] ?? String(status), JSON.parse(decode(response) || "{}"));
  } finally {
    os.close(device);
  }
}

/** An HTTP response: status, url after redirects, headers as a list of pairs, body, and whether it was cut off at a limit. */
export class Response {
  constructor(header, body) {
    Object.assign(this, { status: header.status, url: header.url, headers: header.headers, truncated: header.truncated === true, body });
  }
  get ok() {
    return this.status >= 200 && this.status < 300;
  }
  header(name) {
    return this.headers.find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
  }
  text() {
    return decode(this.body);
  }
  json() {
    return JSON.parse(this.text());
  }
}

/** Sends an HTTP request, and returns its response. A body that is neither bytes nor text is sent as JSON. */
export function fetch(url, { method = "GET", headers = {}, body, timeout } = {}) {
  const list = Object.entries(headers);
  let bytes = new Uint8Array(0);
  if (ArrayBuffer.isView(body)) bytes = new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  else if (body instanceof ArrayBuffer) bytes = new Uint8Array(body);
  else if (typeof body === "string") bytes = encode(body);
  else if (body !== undefined && body !== null) {
    bytes = encode(JSON.stringify(body));
    if (!list.some(([name]) => name.toLowerCase() === "content-type")) list.push(["Content-Type", "application/json"]);
  }
  const request = { method, url: String(url), headers: list.map(([name, value]) => [name, String(value)]) };
  if (timeout !== undefined) request.timeout_ms = Math.max(1, Math.trunc(timeout * 1000));
  const answer = ask("caisson:net@1.request", request, bytes);
  const end = 4 + new DataView(answer.buffer).getUint32(0, true);
  return new Response(JSON.parse(decode(answer.subarray(4, end))), answer.slice(end));
}

/** Reports whether the operator granted a secret of this name. */
export function hasSecret(name) {
  return JSON.parse(decode(ask("caisson:secrets@1.exists", { name }))).exists;
}

/** Calls another tool, and returns its record, in which result is an object. */
export function callTool(name, args = {}) {
  const record = JSON.parse(decode(ask("caisson:tools@1.call", { name, arguments: args })));
  record.result = JSON.parse(record.result);
  return record;
}

/** Returns what the host says of the call: call_id, tool, context, files and so on. */
export function context() {
  return JSON.parse(decode(ask("caisson:context@1.get", {})));
}

/** Shows something before the call has ended, as ABI.md describes. */
export function emit(emission) {
  ask("caisson:stream@1.emit", emission);
}

/** Says what is being done, and how much of it is done, from 0 to 1. */
export function progress(text, fraction) {
  emit({ type: "progress", ...(text === undefined ? {} : { text }), ...(fraction === undefined ? {} : { fraction }) });
}
