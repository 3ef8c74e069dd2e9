//go:build linux

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// imageFile is a sealed in-memory file that holds the image. Memories map it privately, so all
// instances share the pages that none of them has written.
type imageFile struct{ file *os.File }

const systemPage = imagePage

var zeroPage [systemPage]byte

// copyFrom fills the file. Zero pages stay holes, which take no memory.
func (i *image) copyFrom(memory []byte, spans []pageSpan) error {
	descriptor, err := unix.MemfdCreate("caisson", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	i.file.file = os.NewFile(uintptr(descriptor), "caisson")
	if err := i.fill(memory, spans); err != nil {
		return fmt.Errorf("image: %w", errors.Join(err, i.close()))
	}
	return nil
}

func (i *image) fill(memory []byte, spans []pageSpan) error {
	if err := i.file.file.Truncate(int64(len(memory))); err != nil || len(memory) == 0 {
		return err
	}
	for _, span := range spans {
		for at := span.from; at < span.to; {
			end := at
			for end < span.to && !bytes.Equal(memory[end:end+systemPage], zeroPage[:]) {
				end += systemPage
			}
			if _, err := i.file.file.WriteAt(memory[at:end], int64(at)); err != nil {
				return err
			}
			i.bytes += int64(end - at)
			at = end + systemPage
		}
	}
	descriptor := int(i.file.file.Fd())
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(descriptor), unix.F_ADD_SEALS, seals); err != nil {
		return err
	}
	var err error
	i.memory, err = unix.Mmap(descriptor, 0, len(memory), unix.PROT_READ, unix.MAP_PRIVATE)
	return err
}

// close frees the image. Existing mappings of it stay valid.
func (i *image) close() error {
	var failures []error
	if len(i.memory) > 0 {
		failures = append(failures, unix.Munmap(i.memory))
	}
	i.memory = nil
	return errors.Join(append(failures, i.file.file.Close())...)
}

// mapOnto replaces the start of reserved with a private mapping of the image. It returns how many bytes
// of that are not shared.
func (i *image) mapOnto(reserved []byte) (private int64, err error) {
	if len(i.memory) == 0 {
		return 0, nil
	}
	_, err = unix.MmapPtr(int(i.file.file.Fd()), 0, unsafe.Pointer(&reserved[0]), uintptr(len(i.memory)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	choosePages(reserved[:len(i.memory)])
	return 0, err
}
