//go:build linux

package engine

import (
	"bytes"
	"context"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// imageFile is a sealed in-memory file that holds the image. Memories map it privately, so all
// instances share the pages that none of them has written.
//
// Only spans without holes are mapped: the system gives a hole of such a file a page when a private mapping of it is
// touched, and the file keeps that page.
type imageFile struct {
	file  *os.File   // nil if there are no spans
	spans []pageSpan // of the image that the file holds, in ascending order; the rest is zero
}

const (
	// filledGap is the longest run of zero bytes that an image holds, where that saves a mapping. If there would be
	// more than mostSpans, longer gaps are filled, up to mostFilledGap.
	filledGap     = 256 << 10
	mostFilledGap = 1 << 20
	mostSpans     = 64
)

var zeroPage [systemPage]byte

// copyFrom makes the image.
func (i *image) copyFrom(ctx context.Context, memory []byte, spans []pageSpan) (err error) {
	if i.file.spans, err = spansToMap(ctx, memory, spans); err != nil || len(memory) == 0 {
		return err
	}
	if len(i.file.spans) > mostSpans {
		return errScattered
	}
	if len(i.file.spans) > 0 {
		if err := i.write(ctx, memory); err != nil {
			return err
		}
	}
	if i.memory, err = reserve(uint64(len(memory))); err != nil {
		return err
	}
	if _, err = i.mapOnto(i.memory, nil); err != nil {
		return err
	}
	return unix.Mprotect(i.memory, unix.PROT_READ)
}

// write makes the file, with the spans of the memory.
func (i *image) write(ctx context.Context, memory []byte) error {
	descriptor, err := unix.MemfdCreate("caisson", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	i.file.file = os.NewFile(uintptr(descriptor), "caisson")
	if err := i.file.file.Truncate(int64(len(memory))); err != nil {
		return err
	}
	for _, span := range i.file.spans {
		for from := span.from; from < span.to; from += comparedBytes {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if _, err := i.file.file.WriteAt(memory[from:min(from+comparedBytes, span.to)], int64(from)); err != nil {
				return err
			}
		}
		i.bytes += int64(span.to - span.from)
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	_, err = unix.FcntlInt(i.file.file.Fd(), unix.F_ADD_SEALS, seals)
	return err
}

// spansToMap returns the pages of the spans that are not zero, with gaps that are filled.
func spansToMap(ctx context.Context, memory []byte, spans []pageSpan) (mapped []pageSpan, _ error) {
	for _, span := range spans {
		for at := span.from; at < span.to; at += systemPage {
			if at%comparedBytes == 0 && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if !bytes.Equal(memory[at:at+systemPage], zeroPage[:]) {
				mapped = fillGap(mapped, pageSpan{at, at + systemPage}, filledGap)
			}
		}
	}
	for gap := 2 * filledGap; len(mapped) > mostSpans && gap <= mostFilledGap; gap *= 2 {
		fewer := mapped[:0]
		for _, span := range mapped {
			fewer = fillGap(fewer, span, gap)
		}
		mapped = fewer
	}
	return mapped, nil
}

// fillGap adds a span. It merges the span into the last one if the gap between them is not longer than gap.
func fillGap(spans []pageSpan, next pageSpan, gap int) []pageSpan {
	if last := len(spans) - 1; last >= 0 && next.from-spans[last].to <= gap {
		spans[last].to = next.to
		return spans
	}
	return append(spans, next)
}

// close frees the image. Existing mappings of it stay valid.
func (i *image) close() error {
	release(i.memory)
	i.memory = nil
	if i.file.file == nil {
		return nil
	}
	return i.file.file.Close()
}

// mostImageFiles is the maximum number of open files of images: a quarter of the process's descriptors.
func mostImageFiles() int64 {
	const least, most = 256, 1 << 20
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return least / 4
	}
	return int64(min(max(limit.Cur, least), most)) / 4
}

// files returns the number of descriptors that the image uses.
func (i *image) files() int64 {
	if i.file.file == nil {
		return 0
	}
	return 1
}

// mapOnto replaces the start of reserved with the image: private mappings of the file, and zero pages between them. An
// earlier image may be mapped there. It returns the number of bytes that are not shared.
func (i *image) mapOnto(reserved []byte, earlier *image) (private int64, err error) {
	if len(i.memory) == 0 {
		return 0, nil
	}
	const (
		access   = unix.PROT_READ | unix.PROT_WRITE
		replaced = unix.MAP_PRIVATE | unix.MAP_FIXED | mapNoReserve
	)
	if earlier == nil {
		err = unix.Madvise(reserved[:len(i.memory)], unix.MADV_DONTNEED) // which makes written pages zero
	} else {
		_, err = unix.MmapPtr(-1, 0, unsafe.Pointer(&reserved[0]), uintptr(len(i.memory)), access, replaced|unix.MAP_ANON)
	}
	for _, span := range i.file.spans {
		if err == nil {
			_, err = unix.MmapPtr(int(i.file.file.Fd()), int64(span.from), unsafe.Pointer(&reserved[span.from]),
				uintptr(span.to-span.from), access, replaced)
		}
	}
	if err != nil {
		return 0, err
	}
	return 0, useSmallPages(reserved[:len(i.memory)])
}

// mappings returns the number of mappings of a memory with the image, which is also that of the image itself.
func (i *image) mappings() int64 { return 2*int64(len(i.file.spans)) + 1 }
