//! Endless is a guest that never ends. Its first argument says what stands before the loop, the
//! second one how the loop is written, or "once" for none, so that tests can see that it is the
//! loop that does not end. Each loop stands in a function of its own, behind what precedes it.

const Bytes = extern struct { start: [*]u8, length: usize };

extern "wasi_snapshot_preview1" fn args_sizes_get(count: *usize, size: *usize) u16;
extern "wasi_snapshot_preview1" fn args_get(arguments: [*][*:0]u8, text: [*]u8) u16;
extern "wasi_snapshot_preview1" fn fd_read(file: i32, vectors: [*]const Bytes, count: usize, got: *usize) u16;
extern "wasi_snapshot_preview1" fn proc_exit(code: u32) noreturn;

var counter: u32 = 0;
var falsehood = false;
var truth = true;
var in_table: *const fn () void = step;

inline fn count(n: u32) void {
    @as(*volatile u32, &counter).* +%= n;
}

inline fn never() bool {
    return @as(*volatile bool, &falsehood).*;
}

inline fn always() bool {
    return @as(*volatile bool, &truth).*;
}

noinline fn step() void {
    count(1);
}

noinline fn with(callback: *const fn () void) void {
    count(2);
    callback();
    count(3);
}

inline fn readInput() void {
    var input: [99]u8 = undefined;
    var got: usize = 0;
    const vector = [1]Bytes{.{ .start = &input, .length = input.len }};
    _ = fd_read(0, &vector, 1, &got);
    count(@truncate(got));
}

inline fn inTable() void {
    @as(*volatile *const fn () void, &in_table).*();
}

inline fn nothing() void {}

/// Defines a function for each way to write a loop.
fn Loops(comptime before: fn () callconv(.@"inline") void) type {
    return struct {
        noinline fn empty() void {
            before();
            while (true) {}
        }

        noinline fn @"for"() void {
            before();
            while (true) count(10);
        }

        noinline fn @"while"() void {
            before();
            while (always()) count(11);
        }

        noinline fn do() void {
            before();
            while (true) {
                count(12);
                if (!always()) break;
            }
        }

        noinline fn goto() void {
            before();
            state: switch (@as(u8, @intFromBool(always()))) {
                0 => {
                    count(13);
                    continue :state if (never()) 0 else 1;
                },
                1 => {
                    count(14);
                    continue :state if (always()) 2 else 0;
                },
                else => {
                    count(18);
                    continue :state if (never()) 1 else 0;
                },
            }
        }

        noinline fn @"return"() void {
            before();
            while (true) {
                count(15);
                if (never()) return;
            }
        }

        noinline fn calling() void {
            before();
            while (true) {
                step();
                count(16);
            }
        }

        noinline fn once() void {
            before();
            count(17);
        }
    };
}

const read = Loops(readInput);
const call = Loops(step_);
const table = Loops(inTable);
const called = Loops(nothing);

inline fn step_() void {
    step();
}

fn Inside(comptime callback: fn () void) type {
    return struct {
        noinline fn run() void {
            with(callback);
        }
    };
}

const Loop = struct { position: []const u8, form: []const u8, run: *const fn () void };

const forms = .{ "empty", "for", "while", "do", "goto", "return", "calling", "once" };

const loops = table: {
    var rows: []const Loop = &.{};
    for (forms) |form| {
        rows = rows ++ [_]Loop{
            .{ .position = "read", .form = form, .run = @field(read, form) },
            .{ .position = "call", .form = form, .run = @field(call, form) },
            .{ .position = "table", .form = form, .run = @field(table, form) },
            .{ .position = "callback", .form = form, .run = Inside(@field(called, form)).run },
        };
    }
    break :table rows;
};

fn same(a: []const u8, b: [*:0]const u8) bool {
    for (a, 0..) |byte, i| {
        if (b[i] != byte) return false;
    }
    return b[a.len] == 0;
}

pub fn main() void {
    var arguments: [8][*:0]u8 = undefined;
    var text: [256]u8 = undefined;
    var number: usize = 0;
    var size: usize = 0;
    if (args_sizes_get(&number, &size) != 0 or number != 3 or size > text.len) proc_exit(2);
    if (args_get(&arguments, &text) != 0) proc_exit(2);
    for (loops) |loop| {
        if (same(loop.position, arguments[1]) and same(loop.form, arguments[2])) {
            loop.run();
            return;
        }
    }
    proc_exit(2);
}
