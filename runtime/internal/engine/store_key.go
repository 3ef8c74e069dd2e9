package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"

	"golang.org/x/sys/cpu"
)

// PassesVersion stands for what [rewrite] makes of modules and which of them it refuses:
// modules that another version rewrote are not used. A test holds it to the passes'
// output, and fails where that changes and the number does not.
const PassesVersion = 7

// entryVersion stands for what an entry's files hold, apart from that.
const entryVersion = 2

// entry returns the folder of a module's entry. What it holds depends on the original
// module, on how it is bounded, on this program and on the processor.
func (s store) entry(wanted Digest, trusted bool) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %t ", wanted, trusted)
	fmt.Fprintf(hash, "%d %d %s ", entryVersion, PassesVersion, programVersion())
	fmt.Fprintf(hash, "%s/%s %+v %+v", goruntime.GOOS, goruntime.GOARCH, cpu.X86, cpu.ARM64)
	return filepath.Join(s.directory, hex.EncodeToString(hash.Sum(nil)))
}

// programVersion names the builds of this module and of wazero, as far as they are known.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Path + " " + info.Main.Version
	for _, dependency := range info.Deps {
		switch dependency.Path {
		case "github.com/tetratelabs/wazero", "github.com/caisson-run/caisson":
			if dependency.Replace != nil {
				dependency = dependency.Replace
			}
			version += " " + dependency.Path + " " + dependency.Version + " " + dependency.Sum
		}
	}
	return version
}
