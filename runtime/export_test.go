package runtime

// For the tests of this package's API.

func (h HostFunction) PermissionName() string { return h.permissionName() }
