// The root of a module has to stand above all files that it imports.
pub const main = @import("resinator/main.zig").main;
