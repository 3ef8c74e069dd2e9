package runtime

// What the tests of this package's API also look at.

func (h HostFunction) PermissionName() string { return h.permissionName() }
