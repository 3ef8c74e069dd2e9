// Endless is a guest that never ends. Its first argument says what stands before the loop, the
// second one how the loop is written, or "once" for none, so that tests can see that it is the
// loop that does not end. Each loop stands in a function of its own, behind what precedes it; with
// optimisation most become part of the main program.

@external("wasi_snapshot_preview1", "args_sizes_get")
declare function args_sizes_get(count: usize, size: usize): u16;
@external("wasi_snapshot_preview1", "args_get")
declare function args_get(args: usize, text: usize): u16;
@external("wasi_snapshot_preview1", "fd_read")
declare function fd_read(file: i32, vectors: usize, count: usize, got: usize): u16;
@external("wasi_snapshot_preview1", "proc_exit")
declare function proc_exit(code: u32): void;

const place = memory.data(1024); // of what the host reads and writes

// The host can see and set these, so that the compiler knows nothing of them. Each loop counts at a
// pace of its own, so that no two of them become one.
export let count: u32 = 0;
export let never: bool = false;
export let always: bool = true;

// Exported, and too long to stand in the place of each call.
export function step(): void {
  count += 1;
  if (never) {
    count ^= count << 13;
    count ^= count >> 17;
    count ^= count << 5;
    store<u32>(place, load<u32>(place) + count);
    if (load<u32>(place, 4) > count) store<u32>(place, count * 31, 8);
  }
}

export function readInput(): void {
  store<usize>(place, place + 32);
  store<u32>(place, 99, 4);
  fd_read(0, place, 1, place + 8);
  count += load<u32>(place, 8);
}

function throughTable(): void {
  const callee: () => void = always ? step : readInput;
  callee();
}

function inside(callback: () => void): void {
  count += 2;
  callback();
  count += 3;
}

function readEmpty(): void {
  readInput();
  while (true) {}
}

function readFor(): void {
  readInput();
  for (;;) count += 10;
}

function readWhile(): void {
  readInput();
  while (always) count += 11;
}

function readDo(): void {
  readInput();
  do { count += 12; } while (!never);
}

function readNested(): void {
  readInput();
  while (true) {
    count += 13;
    do {
      count += 14;
      if (always) continue;
      if (never) break;
    } while (count & 1);
  }
}

function readReturn(): void {
  readInput();
  for (;;) {
    count += 15;
    if (never) return;
  }
}

function readCalling(): void {
  readInput();
  for (;;) {
    step();
    count += 16;
  }
}

function readOnce(): void {
  readInput();
  count += 17;
}

function callEmpty(): void {
  step();
  while (true) {}
}

function callFor(): void {
  step();
  for (;;) count += 10;
}

function callWhile(): void {
  step();
  while (always) count += 11;
}

function callDo(): void {
  step();
  do { count += 12; } while (!never);
}

function callNested(): void {
  step();
  while (true) {
    count += 13;
    do {
      count += 14;
      if (always) continue;
      if (never) break;
    } while (count & 1);
  }
}

function callReturn(): void {
  step();
  for (;;) {
    count += 15;
    if (never) return;
  }
}

function callCalling(): void {
  step();
  for (;;) {
    step();
    count += 16;
  }
}

function callOnce(): void {
  step();
  count += 17;
}

function tableEmpty(): void {
  throughTable();
  while (true) {}
}

function tableFor(): void {
  throughTable();
  for (;;) count += 10;
}

function tableWhile(): void {
  throughTable();
  while (always) count += 11;
}

function tableDo(): void {
  throughTable();
  do { count += 12; } while (!never);
}

function tableNested(): void {
  throughTable();
  while (true) {
    count += 13;
    do {
      count += 14;
      if (always) continue;
      if (never) break;
    } while (count & 1);
  }
}

function tableReturn(): void {
  throughTable();
  for (;;) {
    count += 15;
    if (never) return;
  }
}

function tableCalling(): void {
  throughTable();
  for (;;) {
    step();
    count += 16;
  }
}

function tableOnce(): void {
  throughTable();
  count += 17;
}

function calledEmpty(): void {
  while (true) {}
}

function calledFor(): void {
  for (;;) count += 10;
}

function calledWhile(): void {
  while (always) count += 11;
}

function calledDo(): void {
  do { count += 12; } while (!never);
}

function calledNested(): void {
  while (true) {
    count += 13;
    do {
      count += 14;
      if (always) continue;
      if (never) break;
    } while (count & 1);
  }
}

function calledReturn(): void {
  for (;;) {
    count += 15;
    if (never) return;
  }
}

function calledCalling(): void {
  for (;;) {
    step();
    count += 16;
  }
}

function calledOnce(): void {
  count += 17;
}

function callbackEmpty(): void {
  inside(calledEmpty);
}

function callbackFor(): void {
  inside(calledFor);
}

function callbackWhile(): void {
  inside(calledWhile);
}

function callbackDo(): void {
  inside(calledDo);
}

function callbackNested(): void {
  inside(calledNested);
}

function callbackReturn(): void {
  inside(calledReturn);
}

function callbackCalling(): void {
  inside(calledCalling);
}

function callbackOnce(): void {
  inside(calledOnce);
}

function run(position: string, form: string): void {
  if (position == "read" && form == "empty") return readEmpty();
  if (position == "read" && form == "for") return readFor();
  if (position == "read" && form == "while") return readWhile();
  if (position == "read" && form == "do") return readDo();
  if (position == "read" && form == "nested") return readNested();
  if (position == "read" && form == "return") return readReturn();
  if (position == "read" && form == "calling") return readCalling();
  if (position == "read" && form == "once") return readOnce();
  if (position == "call" && form == "empty") return callEmpty();
  if (position == "call" && form == "for") return callFor();
  if (position == "call" && form == "while") return callWhile();
  if (position == "call" && form == "do") return callDo();
  if (position == "call" && form == "nested") return callNested();
  if (position == "call" && form == "return") return callReturn();
  if (position == "call" && form == "calling") return callCalling();
  if (position == "call" && form == "once") return callOnce();
  if (position == "table" && form == "empty") return tableEmpty();
  if (position == "table" && form == "for") return tableFor();
  if (position == "table" && form == "while") return tableWhile();
  if (position == "table" && form == "do") return tableDo();
  if (position == "table" && form == "nested") return tableNested();
  if (position == "table" && form == "return") return tableReturn();
  if (position == "table" && form == "calling") return tableCalling();
  if (position == "table" && form == "once") return tableOnce();
  if (position == "callback" && form == "empty") return callbackEmpty();
  if (position == "callback" && form == "for") return callbackFor();
  if (position == "callback" && form == "while") return callbackWhile();
  if (position == "callback" && form == "do") return callbackDo();
  if (position == "callback" && form == "nested") return callbackNested();
  if (position == "callback" && form == "return") return callbackReturn();
  if (position == "callback" && form == "calling") return callbackCalling();
  if (position == "callback" && form == "once") return callbackOnce();
  proc_exit(2);
}

function argument(pointers: usize, n: i32): string {
  const start = load<usize>(pointers + (<usize>n << 2));
  let end = start;
  while (load<u8>(end) != 0) end++;
  return String.UTF8.decodeUnsafe(start, end - start);
}

args_sizes_get(place, place + 4);
if (load<u32>(place) != 3 || load<u32>(place, 4) > 256) proc_exit(2);
args_get(place + 16, place + 64);
run(argument(place + 16, 1), argument(place + 16, 2));
