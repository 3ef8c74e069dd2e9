// The plug-in in AssemblyScript, written with Extism's kit, and for what the kit lacks with its functions
// of the host.
import { Config, Host, LogLevel, Memory, Var } from "@extism/as-pdk";
import { error_set, free, http_request, length, load_u8, store_u8 } from "@extism/as-pdk/lib/env";

@external("extism:host/env", "http_status_code")
declare function http_status_code(): i32;

// abort is what the compiler calls where a program cannot go on.
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  unreachable();
}

function encoded(text: string): Uint8Array {
  return Uint8Array.wrap(String.UTF8.encode(text));
}

function output(text: string): i32 {
  Host.output(encoded(text));
  return 0;
}

function failure(text: string, code: i32): i32 {
  error_set(Memory.allocateString(text).offset);
  return code;
}

export function echo(): i32 {
  Host.output(Host.input());
  return 0;
}

export function reverse(): i32 {
  const text = Host.inputString();
  const backwards = new Uint16Array(text.length);
  let to = text.length;
  for (let from = 0; from < text.length; from++) {
    const unit = text.charCodeAt(from);
    const pair = (unit & 0xFC00) == 0xD800;
    if (pair) backwards[--to] = <u16>text.charCodeAt(++from);
    backwards[--to] = <u16>unit;
  }
  return output(String.UTF16.decode(backwards.buffer));
}

export function count_vowels(): i32 {
  const input = Host.input();
  let count = 0;
  for (let i = 0; i < input.length; i++) {
    switch (input[i] | 32) {
      case 97: case 101: case 105: case 111: case 117: // a e i o u
        count += i32((input[i] & 64) != 0);
    }
  }
  return output('{"count":' + count.toString() + "}");
}

const inMemory = memory.data(8); // in the memory of the instance

export function count_memory(): i32 {
  store<u64>(inMemory, load<u64>(inMemory) + 1);
  return output(load<u64>(inMemory).toString());
}

let calls: u64 = 0; // a global of the module, outside of memory

export function count_global(): i32 {
  calls++;
  return output(calls.toString());
}

export function count_var(): i32 {
  const before = Var.getString("calls");
  const count = (before === null ? 0 : U64.parseInt(before)) + 1;
  Var.set("calls", encoded(count.toString()));
  return output(count.toString());
}

export function config(): i32 {
  const key = Host.inputString();
  const value = Config.get(key);
  if (value === null) return failure("no value for " + key, 1);
  return output(value);
}

// The kit has no level "trace".
export function log_levels(): i32 {
  const message = Host.inputString();
  Host.log(LogLevel.Debug, message);
  Host.log(LogLevel.Info, message);
  Host.log(LogLevel.Warn, message);
  Host.log(LogLevel.Error, message);
  return output("logged");
}

export function fail(): i32 {
  return failure(Host.inputString(), 7);
}

export function trap(): i32 {
  throw new Error(Host.inputString());
}

export function get(): i32 {
  const request = '{"method":"GET","headers":{},"url":"' + Host.inputString() + '"}';
  const block = http_request(Memory.allocateString(request).offset, 0);
  const status = http_status_code();
  return output(status.toString() + " " + new Memory(block, length(block)).toString());
}

// allocate makes as many blocks in the host's memory as the input says, and frees every other one.
export function allocate(): i32 {
  const text = Host.inputString();
  if (text.length == 0) return failure("not a number", 1);
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i);
    if (digit < 48 || digit > 57) return failure("not a number", 1);
  }
  const blocks = U64.parseInt(text);
  let sum: u64 = 0;
  for (let i: u64 = 0; i < blocks; i++) {
    const block = Memory.allocate(1 + i * 7919 % 1000);
    store_u8(block.offset, <u8>i);
    const read = load_u8(block.offset);
    if (length(block.offset) != block.length || read != <u8>i) return failure("a block is not what it should be", 1);
    sum += block.length + read;
    if (i % 2 == 1) free(block.offset);
  }
  return output(sum.toString());
}
