// The tool as an Extism plug-in, written with Extism's PDK.
import { Host, Memory } from "@extism/as-pdk";
import { error_set } from "@extism/as-pdk/lib/env";

// abort is what the compiler calls where a program cannot go on.
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  unreachable();
}

// Arguments are the arguments of a call, or what is wrong with their text.
class Arguments {
  text: string = "";
  sum: i64 = 0;
  problem: string = "";
}

// Reader reads JSON from a text. After a problem it is at the end.
class Reader {
  at: i32 = 0;
  problem: string = "";
  constructor(private source: string) {}

  fail(wanted: string): void {
    if (this.problem == "") this.problem = "want " + wanted + " at character " + this.at.toString();
    this.at = this.source.length;
  }

  // next skips white space and returns the next character, or 0 at the end.
  next(): i32 {
    for (; this.at < this.source.length; this.at++) {
      const c = this.source.charCodeAt(this.at);
      if (c != 32 && c != 9 && c != 10 && c != 13) return c;
    }
    return 0;
  }

  // skip skips a character, if it is the next one.
  skip(character: string): bool {
    if (this.next() != character.charCodeAt(0)) return false;
    this.at++;
    return true;
  }

  expect(character: string): void {
    if (!this.skip(character)) this.fail(character);
  }

  // string reads a string.
  string(): string {
    this.expect('"');
    let text = "";
    let from = this.at;
    for (; this.at < this.source.length; this.at++) {
      const c = this.source.charCodeAt(this.at);
      if (c == 34) {
        text += this.source.substring(from, this.at++);
        return text;
      }
      if (c < 32) break;
      if (c != 92) continue;
      text += this.source.substring(from, this.at++) + this.escaped();
      from = this.at + 1;
    }
    this.fail("a string");
    return "";
  }

  // escaped returns the character after a backslash, and stays at its last place.
  private escaped(): string {
    const c = this.source.charAt(this.at);
    if (c == "u") {
      let unit: i32 = 0;
      for (let i = 0; i < 4; i++) {
        const digit = "0123456789abcdef".indexOf(this.source.charAt(++this.at).toLowerCase());
        if (digit < 0 || this.at >= this.source.length) {
          this.fail("a hexadecimal digit");
          return "";
        }
        unit = unit * 16 + digit;
      }
      return String.fromCharCode(unit);
    }
    const index = '"\\/bfnrt'.indexOf(c);
    if (c == "" || index < 0) {
      this.fail("an escape");
      return "";
    }
    return '"\\/\b\f\n\r\t'.charAt(index);
  }

  // integer reads a whole number, which wraps around.
  integer(): i64 {
    const negative = this.skip("-");
    let value: i64 = 0;
    const from = this.at;
    for (; this.at < this.source.length; this.at++) {
      const digit = this.source.charCodeAt(this.at) - 48;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (this.at == from) this.fail("a whole number");
    return negative ? -value : value;
  }
}

function read(source: string): Arguments {
  const a = new Arguments();
  const r = new Reader(source);
  r.expect("{");
  do {
    const name = r.string();
    r.expect(":");
    if (name == "text") {
      a.text = r.string();
    } else if (name == "nums") {
      r.expect("[");
      if (r.next() != 93) {
        do a.sum += r.integer(); while (r.skip(","));
      }
      r.expect("]");
    } else {
      r.fail("text or nums");
    }
  } while (r.skip(","));
  r.expect("}");
  if (r.next() != 0) r.fail("the end");
  a.problem = r.problem;
  return a;
}

// quoted returns a text as JSON.
function quoted(text: string): string {
  let out = '"';
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 32 && c != 34 && c != 92) continue;
    out += text.substring(from, i) + (c >= 32 ? "\\" + text.charAt(i) : "\\u00" + (c >> 4).toString() + "0123456789abcdef".charAt(c & 15));
    from = i + 1;
  }
  return out + text.substring(from) + '"';
}

let calls = 0; // of this instance

export function call(): i32 {
  const a = read(Host.inputString());
  if (a.problem != "") {
    error_set(Memory.allocateString(a.problem).offset);
    return 1;
  }
  calls++;
  Host.outputString('{"upper":' + quoted(a.text.toUpperCase()) + ',"sum":' + a.sum.toString() + ',"calls":' + calls.toString() + "}");
  return 0;
}
