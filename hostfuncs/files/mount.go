package files

import (
	"log/slog"
	"math"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
)

// The defaults that zero values stand for.
const (
	DefaultQuotaBytes = 256 << 20
	DefaultQuotaFiles = 10_000
	DefaultAddedBytes = 64 << 20
	DefaultOpenFiles  = 64
)

// Mount is one effective file permission: a guest path that shows a host directory.
type Mount struct {
	Guest  permission.GuestPath    // where the guest sees it, such as /project; "/" is allowed
	Host   permission.HostTemplate // which host directory
	Access manifests.Access        // effective: what was requested and granted
	Quota  Quota

	// Requested and Granted say what the manifest asks for and what the operator
	// grants; empty is "not known". Receipts tell of them, and a directory that a
	// context value names is made when the grant is for writing.
	Requested, Granted manifests.Access
	// Cut says why Access is less than both, such as "the profile strict allows no writing".
	// It is empty where it is not.
	Cut string
}

// Quota bounds a host directory with everything in it, whoever wrote it. A zero field
// is the default: [DefaultQuotaBytes], [DefaultQuotaFiles].
//
// To hold it, the directory is walked before a call's first change, unless other calls
// hold it too: 10,000 files take some 20 milliseconds. One that is beyond its quota is
// walked up to twice that.
type Quota struct {
	Bytes manifests.Bytes // logical sizes of files, so that holes count, and of links
	Files int             // entries of any kind
}

func (q Quota) doubled() Quota {
	return Quota{Bytes: q.Bytes + min(q.Bytes, math.MaxInt64-q.Bytes), Files: q.Files + min(q.Files, math.MaxInt-1-q.Files)}
}

// Limits bounds one call. A zero number is the default: [DefaultOpenFiles],
// [DefaultAddedBytes].
type Limits struct {
	// Tool is the name of the tool that is called. Receipts say with it which grant would
	// help, so there is no such suggestion where it is empty. It bounds nothing.
	Tool       string
	OpenFiles  int             // open files and directories, besides the preopened ones
	AddedBytes manifests.Bytes // by how much one call may grow its directories, all together
}

// Options configures a [Store].
type Options struct {
	// Logger receives the host's errors behind [ErrIO]: they may hold host paths,
	// and never reach a guest. Nil discards them.
	Logger *slog.Logger
}
