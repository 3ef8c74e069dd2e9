package kernels

// crcBlock is the number of bytes that one pass of CRC32 reads.
const crcBlock = 64 << 10

// CRC32 is size passes of the IEEE checksum over one block of 64 KiB, a table look-up a byte.
func CRC32(size int32) uint64 {
	table := crcTable()
	source := random(2)
	block := source.bytes(crcBlock)
	crc := ^uint32(0)
	for range size {
		for _, b := range block {
			crc = table[byte(crc)^b] ^ crc>>8
		}
	}
	return uint64(^crc)
}

func crcTable() *[256]uint32 {
	var table [256]uint32
	for i := range table {
		crc := uint32(i)
		for range 8 {
			if crc&1 == 1 {
				crc = crc>>1 ^ 0xedb88320
			} else {
				crc >>= 1
			}
		}
		table[i] = crc
	}
	return &table
}
