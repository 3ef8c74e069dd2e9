package manifests

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// errQuantity is wrapped by the errors of [ParseBytes] and [ParseDuration].
var errQuantity = errors.New("invalid quantity")

// Bytes is a number of bytes. It is never negative in a checked manifest.
type Bytes int64

// byteUnits lists the units of a size. Binary units come first, largest first, so that String picks
// the shortest form. The suffix "B" must come last.
var byteUnits = [...]struct {
	suffix string
	size   int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3},
	{"B", 1},
}

// ParseBytes parses a size: a whole number of bytes, optionally with a unit. KiB, MiB, GiB and TiB are powers of 1,024.
// kB (or KB), MB, GB and TB are powers of 1,000. Signs, fractions and values that overflow an int64 are errors.
func ParseBytes(text string) (Bytes, error) {
	digits, size := text, int64(1)
	for _, unit := range byteUnits {
		if rest, found := strings.CutSuffix(text, unit.suffix); found {
			digits, size = strings.TrimSuffix(rest, " "), unit.size
			break
		}
	}
	count, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax) || strings.ContainsAny(digits, "+-"):
		return 0, fmt.Errorf("%w: size %q: want a whole number with a unit, such as 64MiB, 256KiB or 512", errQuantity, text)
	case err != nil || count > math.MaxInt64/size:
		return 0, fmt.Errorf("%w: size %q is too large", errQuantity, text)
	}
	return Bytes(count * size), nil
}

// String returns the size in the largest binary unit that divides it. [ParseBytes] can parse the result.
func (b Bytes) String() string {
	for _, unit := range byteUnits[:4] {
		if b != 0 && int64(b)%unit.size == 0 {
			return strconv.FormatInt(int64(b)/unit.size, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// ParseDuration parses a positive duration in Go's syntax: 10s, 1m30s, 1.5s.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0,
			fmt.Errorf("%w: duration %q: want a positive one with a unit, such as 10s, 1m30s or 1.5s", errQuantity, text)
	}
	return d, nil
}
