// Package permissiontest checks a kind of permission against a plain reference: whatever random
// requests, grants and denials say, [permission.Decide] allows what one asks for, another gives, and
// none takes away.
package permissiontest
