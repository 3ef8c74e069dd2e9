// The kernel of an Extism plug-in: what the plug-in imports as extism:host/env. It holds the blocks
// of memory through which a plug-in and its host exchange bytes. Each instance of a plug-in has its
// own instance of the kernel, which is reset together with it.
//
// Blocks lie in the kernel's memory from __heap_base on. A header is before each of them. The
// functions that read and write take any offset between __heap_base and the end of what was ever a block,
// so a plug-in can overwrite headers. That harms nobody but the plug-in: the kernel has no other
// data than the plug-in's own, WebAssembly bounds its memory, and whatever is read from a header is
// checked before it is used. So no function here loops, and none trusts a length.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define EXPORT(name) __attribute__((export_name(name)))
#define HOST(name) __attribute__((import_module("caisson:extism@1"), import_name(name)))

// What the host does. Each function reads its arguments from the kernel's memory. A length below 0
// says that there is nothing; otherwise the host holds as many bytes until take copies them. What the
// input has room for is copied at once: a call of the host takes longer than most of what is done here.
HOST("input") s64 host_input(u8 *to, u32 room);
HOST("config") s64 host_config(const u8 *name, u32 length);
HOST("variable") s64 host_variable(const u8 *name, u32 length);
HOST("set_variable") void host_set_variable(const u8 *name, u32 length, const u8 *value, u32 value_length);
HOST("delete_variable") void host_delete_variable(const u8 *name, u32 length);
HOST("request") s64 host_request(const u8 *request, u32 length, const u8 *body, u32 body_length);
HOST("status") u32 host_status(void);
HOST("headers") s64 host_headers(void);
HOST("log_level") u32 host_log_level(void);
HOST("log") void host_log(u32 level, const u8 *text, u32 length);
HOST("take") void host_take(u8 *to, u32 length);
// fault ends the plug-in: it passed an offset to a function that the function cannot use.
HOST("fault") _Noreturn void host_fault(const char *function, u32 length, u64 offset);
#define FAULT(name, offset) host_fault(name, sizeof(name) - 1, offset)

extern u8 __heap_base[];

// header is before each block, at a multiple of 16.
struct header {
  u32 capacity; // bytes in the block, a multiple of 16
  u32 length;   // that were asked for
  u32 seal;     // see sealed
  u32 next;     // the next free block of the same class, or 0
};

enum { HEADER = sizeof(struct header), PAGE = 1 << 16, CLASSES = 401 };

// What a seal says about a block.
enum { LIVE = 0x6c697665, FREE = 0x66726565 };

#define MOST 0xffff0000u // where blocks end at most

static struct {
  u32 top;  // the end of the last block; 0 before the first
  u32 end;  // the highest that top has been: plug-ins read, and return, blocks that they have freed
  u32 free[CLASSES]; // blocks of each class that were freed, last first
  u32 asked; // 1 once the host was asked for the input
  u32 input, input_length;
} state;

// left is what the plug-in has set, which the host reads when it has returned. The host has its address
// from a constant that is exported.
struct {
  u32 output, output_length;
  u32 error, error_length;
} left __asm__("caisson:left") __attribute__((used));

static u32 base(void) { return (u32)__heap_base; } // the linker aligns it to 16

// room returns how many bytes there are from base to the end.
static u32 room(void) { return state.end == 0 ? 0 : state.end - base(); }

// inside reports whether bytes lie between base and the end.
static int inside(u64 offset, u64 length) {
  u64 at = offset - base();
  return at <= room() && length <= room() - at;
}

static struct header *header_of(u32 block) { return (struct header *)(block - HEADER); }

// sealed returns the seal of a block with these values, which bytes of a plug-in hardly have by
// accident.
static u32 sealed(u32 block, u32 state_of, u32 capacity, u32 length) {
  return (block * 0x9e3779b1u) ^ state_of ^ capacity ^ (length << 4);
}

// is_block reports whether an offset is that of a block in a state.
static int is_block(u64 offset, u32 state_of) {
  if (offset % 16 != 0 || !inside(offset - HEADER, HEADER) || offset < HEADER)
    return 0;
  struct header *h = header_of(offset);
  return h->seal == sealed(offset, state_of, h->capacity, h->length) && h->length <= h->capacity && inside(offset, h->capacity);
}

// class_of returns the class of a size, and the capacity of its blocks. Up to 512 bytes these are the multiples
// of 16, and beyond that sixteen to each doubling. All blocks of a class have one capacity, so that
// whatever was freed serves again. A block is larger than its size by a sixteenth, or 15 bytes, at most.
static u32 class_of(u32 size, u64 *capacity) {
  u32 last = size - 1;
  u32 shift = last < 256 ? 4 : 27 - __builtin_clz(last);
  u32 sixteenth = last >> shift;
  *capacity = (u64)(sixteenth + 1) << shift;
  return (shift - 4) * 16 + sixteenth;
}

// reused takes a block of at least a size from those of a class, or returns 0. Only the last one
// that was freed is tried.
static u32 reused(u32 class, u32 size) {
  u32 block = state.free[class];
  if (block == 0)
    return 0;
  if (!is_block(block, FREE)) { // the plug-in has overwritten its header
    state.free[class] = 0;
    return 0;
  }
  struct header *h = header_of(block);
  if (h->capacity < size)
    return 0;
  state.free[class] = h->next;
  return block;
}

static u64 size(void) { return (u64)__builtin_wasm_memory_size(0) * PAGE; }

// next returns where the next block at the top begins.
static u64 next(void) { return (state.top == 0 ? base() : state.top) + HEADER; }

// added makes a block at the top, or returns 0 if the memory cannot grow.
static u32 added(u64 capacity) {
  u64 block = next(), end = block + capacity, have = size();
  if (end > MOST || (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == (__SIZE_TYPE__)-1))
    return 0;
  state.top = end;
  if (end > state.end)
    state.end = end;
  header_of(block)->capacity = capacity;
  return block;
}

// live makes a block one of a length, unless there is none.
static u32 live(u32 block, u32 length) {
  if (block == 0)
    return 0;
  struct header *h = header_of(block);
  h->length = length;
  h->next = 0;
  h->seal = sealed(block, LIVE, h->capacity, length);
  return block;
}

EXPORT("alloc") u64 alloc(u64 length) {
  if (length == 0 || length > MOST)
    return 0;
  u64 capacity;
  u32 block = reused(class_of(length, &capacity), length);
  return live(block == 0 ? added(capacity) : block, length);
}

// free keeps what the block holds until the block is used again. What is not a block is ignored, as
// a block that was freed before is.
EXPORT("free") void free_block(u64 offset) {
  if (!is_block(offset, LIVE))
    return;
  struct header *h = header_of(offset);
  if (offset + h->capacity == state.top) {
    h->seal = 0;
    state.top = offset - HEADER;
    return;
  }
  u64 capacity;
  u32 class = class_of(h->capacity, &capacity);
  h->next = state.free[class];
  h->seal = sealed(offset, FREE, h->capacity, h->length);
  state.free[class] = offset;
}

EXPORT("length") u64 length_of(u64 offset) { return is_block(offset, LIVE) ? header_of(offset)->length : 0; }

EXPORT("length_unsafe") u64 length_unsafe(u64 offset) { return length_of(offset); }

EXPORT("memory_bytes") u64 memory_bytes(void) { return (u64)__builtin_wasm_memory_size(0) * PAGE; }

EXPORT("load_u8") u32 load_u8(u64 offset) {
  if (offset - base() >= room())
    FAULT("load_u8", offset);
  return *(u8 *)(u32)offset;
}

EXPORT("load_u64") u64 load_u64(u64 offset) {
  if (!inside(offset, 8))
    FAULT("load_u64", offset);
  return *(u64 *)(u32)offset;
}

EXPORT("store_u8") void store_u8(u64 offset, u32 value) {
  if (offset - base() >= room())
    FAULT("store_u8", offset);
  *(u8 *)(u32)offset = value;
}

EXPORT("store_u64") void store_u64(u64 offset, u64 value) {
  if (!inside(offset, 8))
    FAULT("store_u64", offset);
  *(u64 *)(u32)offset = value;
}

// had returns a block, and ends a plug-in that has no memory for it.
static u32 had(u32 block) {
  if (block == 0)
    __builtin_trap();
  return block;
}

// taken returns a block with what the host holds, or 0 if that is nothing or empty.
static u32 taken(s64 length) {
  if (length <= 0)
    return 0;
  u32 block = had(alloc(length));
  host_take((u8 *)block, length);
  return block;
}

// ask gets the input, once. A plug-in that is started without a call ends there. The host copies what
// fits where the next block at the top begins, which then becomes the input's.
static __attribute__((noinline)) void ask(void) {
  u64 to = next(), end = size();
  if (end > MOST)
    end = MOST;
  u32 room = end > to ? end - to : 0;
  s64 length = host_input((u8 *)(u32)to, room);
  state.asked = 1;
  if (length > room) {
    state.input = taken(length);
  } else if (length > 0) {
    u64 capacity;
    class_of(length, &capacity);
    state.input = had(live(added(capacity), length));
  }
  state.input_length = state.input == 0 ? 0 : length;
}

static inline void have_input(void) {
  if (!state.asked)
    ask();
}

EXPORT("input_length") u64 input_length(void) {
  have_input();
  return state.input_length;
}

EXPORT("input_offset") u64 input_offset(void) {
  have_input();
  return state.input;
}

EXPORT("input_load_u8") u32 input_load_u8(u64 at) {
  have_input();
  return at < state.input_length ? *(u8 *)(state.input + (u32)at) : 0;
}

// input_load_u64 reads zeros behind the input.
EXPORT("input_load_u64") u64 input_load_u64(u64 at) {
  have_input();
  if (at >= state.input_length)
    return 0;
  u32 left = state.input_length - at, end = state.input + state.input_length;
  return left >= 8 ? *(u64 *)(end - left) : *(u64 *)(end - 8) >> (8 * (8 - left));
}

EXPORT("input_set") void input_set(u64 offset, u64 length) {
  if (length > 0 && !inside(offset, length))
    FAULT("input_set", offset);
  state.asked = 1;
  state.input = length == 0 ? 0 : offset;
  state.input_length = length;
}

EXPORT("output_set") void output_set(u64 offset, u64 length) {
  if (length > 0 && !inside(offset, length))
    FAULT("output_set", offset);
  left.output = length == 0 ? 0 : offset;
  left.output_length = length;
}

EXPORT("output_offset") u64 output_offset(void) { return left.output; }
EXPORT("output_length") u64 output_length(void) { return left.output_length; }

// used returns the length of the block that a function was given. Offset 0 is an empty text: that is
// what alloc returns for one.
#define USED(name, offset) ((offset) == 0 ? 0 : is_block(offset, LIVE) ? header_of(offset)->length : (FAULT(name, offset), 0))
#define BYTES(offset) ((const u8 *)(u32)(offset))

EXPORT("error_set") void error_set(u64 offset) {
  left.error_length = USED("error_set", offset);
  left.error = offset;
}

EXPORT("error_get") u64 error_get(void) { return left.error; }

EXPORT("reset") void reset(void) {
  __builtin_memset((void *)base(), 0, room());
  __builtin_memset(&state, 0, sizeof state);
  __builtin_memset(&left, 0, sizeof left);
  state.asked = 1;
}

EXPORT("config_get") u64 config_get(u64 name) { return taken(host_config(BYTES(name), USED("config_get", name))); }

EXPORT("var_get") u64 var_get(u64 name) {
  s64 length = host_variable(BYTES(name), USED("var_get", name));
  free_block(name);
  return taken(length);
}

EXPORT("var_set") void var_set(u64 name, u64 value) {
  u32 length = USED("var_set", name);
  if (value == 0)
    host_delete_variable(BYTES(name), length);
  else
    host_set_variable(BYTES(name), length, BYTES(value), USED("var_set", value));
  free_block(name);
  free_block(value);
}

EXPORT("http_request") u64 http_request(u64 request, u64 body) {
  s64 length = host_request(BYTES(request), USED("http_request", request), BYTES(body), USED("http_request", body));
  free_block(request);
  free_block(body);
  return taken(length);
}

EXPORT("http_status_code") u32 http_status_code(void) { return host_status(); }
EXPORT("http_headers") u64 http_headers(void) { return taken(host_headers()); }

EXPORT("get_log_level") u32 get_log_level(void) { return host_log_level(); }

#define LOG(name, function, level)                                                                                      \
  EXPORT(name) void function(u64 text) {                                                                                \
    host_log(level, BYTES(text), USED(name, text));                                                                     \
    free_block(text);                                                                                                   \
  }
LOG("log_trace", log_trace, 0)
LOG("log_debug", log_debug, 1)
LOG("log_info", log_info, 2)
LOG("log_warn", log_warn, 3)
LOG("log_error", log_error, 4)
