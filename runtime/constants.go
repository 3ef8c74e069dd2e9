package runtime

import (
	"fmt"

	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/permit"
)

// constants are what a tool has beside its module and its manifest, such as the script that its module
// interprets. They are the same in all calls, so a program may use them before it reads its input, and
// they are part of the tool's identity.
type constants struct {
	// Files are mounted for the guest, which can only read them. They need no permission, since
	// they are the tool's own.
	Files []constantTree
}

// constantTree is a tree of files at a guest path.
type constantTree struct {
	// Guest is an absolute guest path, such as /usr/lib/python3.12. It must not overlap a directory
	// that the manifest requests, or other constant files.
	Guest string
	// Tree may be used by any number of tools.
	Tree *files.Tree
}

// add adds the constants to the permit.
func (c constants) add(p *permit.Permit, m *manifests.Manifest) error {
	var taken []permission.GuestPath
	for _, request := range m.Permissions.Files {
		taken = append(taken, request.Path)
	}
	for _, own := range c.Files {
		guest, err := permission.ParseGuestPath(own.Guest)
		if err != nil {
			return fmt.Errorf("constant files of %s: %w", m.Name, err)
		}
		if own.Tree == nil {
			return fmt.Errorf("constant files of %s at %s: there is no tree; make one with files.NewTree", m.Name, guest)
		}
		for _, other := range taken {
			if guest.Covers(other) || other.Covers(guest) {
				return fmt.Errorf("constant files of %s at %s overlap its files at %s; choose paths of which none holds the other", m.Name, guest, other)
			}
		}
		taken = append(taken, guest)
		p.Mounts = append(p.Mounts, files.Mount{Guest: guest, Tree: own.Tree})
	}
	return nil
}
