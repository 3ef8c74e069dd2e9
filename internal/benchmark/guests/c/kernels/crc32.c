#include "kernels.h"

static void fill(uint32_t table[256]) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        table[i] = crc;
    }
}

// Size passes of the IEEE checksum over one block of 64 KiB, a table look-up a byte.
KERNEL(crc32) {
    const size_t length = 64 << 10;
    uint32_t table[256], crc = ~0u;
    uint64_t source = 2;
    fill(table);
    uint8_t *block = random_bytes(&source, length);
    for (int32_t pass = 0; pass < size; pass++) {
        for (size_t i = 0; i < length; i++) crc = table[(uint8_t)crc ^ block[i]] ^ crc >> 8;
    }
    free(block);
    return (uint32_t)~crc;
}
