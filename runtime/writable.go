package runtime

import "github.com/caisson-run/caisson/manifests"

// Writable returns the host directories that calls of the tool with these context values may write
// to. Those of which a value is missing are left out: such calls get none of them. It is for the
// operator, and safe for concurrent use.
func (t *Tool) Writable(values map[string]string) []string {
	var dirs []string
	for _, mount := range t.permit.mounts {
		if dir, ok := mount.Host.Fill(values); ok && mount.Access == manifests.ReadWrite {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
