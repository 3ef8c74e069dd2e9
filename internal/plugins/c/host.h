// What a plug-in imports from its host: Extism's calling convention, written out by hand. A block is a
// piece of the host's memory, known by its offset; 0 is no block.
#ifndef HOST_H
#define HOST_H

#include <stdint.h>

#define HOST(name) __attribute__((import_module("extism:host/env"), import_name(#name)))

HOST(input_length) uint64_t input_length(void);
HOST(input_load_u8) uint32_t input_load_u8(uint64_t at);
HOST(input_load_u64) uint64_t input_load_u64(uint64_t at);
HOST(alloc) uint64_t block_alloc(uint64_t length);
HOST(free) void block_free(uint64_t block);
HOST(length) uint64_t block_length(uint64_t block);
HOST(load_u8) uint32_t load_u8(uint64_t at);
HOST(load_u64) uint64_t load_u64(uint64_t at);
HOST(store_u8) void store_u8(uint64_t at, uint32_t value);
HOST(store_u64) void store_u64(uint64_t at, uint64_t value);
HOST(output_set) void output_set(uint64_t block, uint64_t length);
HOST(error_set) void error_set(uint64_t block);
HOST(config_get) uint64_t config_get(uint64_t key);
HOST(var_get) uint64_t var_get(uint64_t key);
HOST(var_set) void var_set(uint64_t key, uint64_t value);
HOST(http_request) uint64_t http_request(uint64_t request, uint64_t body);
HOST(http_status_code) int32_t http_status_code(void);
HOST(log_trace) void log_trace(uint64_t block);
HOST(log_debug) void log_debug(uint64_t block);
HOST(log_info) void log_info(uint64_t block);
HOST(log_warn) void log_warn(uint64_t block);
HOST(log_error) void log_error(uint64_t block);

#endif
