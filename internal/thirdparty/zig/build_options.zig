// What the build of Zig itself says to the C compiler in Zig that resinator reads headers with.
pub const enable_tracy = false;
pub const enable_tracy_allocation = false;
pub const enable_tracy_callstack = false;
