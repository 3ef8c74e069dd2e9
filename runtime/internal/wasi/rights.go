package wasi

// A right is permission to call a function on a descriptor (rights, in the specification). This implementation uses
// only the two that say how a file is opened. Each kind of descriptor claims those that can work on it; see the
// package's design.
const (
	rightFDDataSync uint64 = 1 << iota
	rightFDRead
	rightFDSeek
	rightFDSetFlags
	rightFDSync
	rightFDTell
	rightFDWrite
	rightFDAdvise
	rightFDAllocate
	rightPathCreateDirectory
	rightPathCreateFile
	rightPathLinkSource
	rightPathLinkTarget
	rightPathOpen
	rightFDReadDir
	rightPathReadlink
	rightPathRenameSource
	rightPathRenameTarget
	rightPathFilestatGet
	rightPathFilestatSetSize
	rightPathFilestatSetTimes
	rightFDFilestatGet
	rightFDFilestatSetSize
	rightFDFilestatSetTimes
	rightPathSymlink
	rightPathRemoveDirectory
	rightPathUnlinkFile
	rightPoll
)

const (
	// rightsReading and rightsWriting are those of a file that is open for reading or writing.
	rightsReading = rightFDRead
	rightsWriting = rightFDWrite | rightFDAllocate | rightFDFilestatSetSize
	rightsFile    = rightsReading | rightsWriting | rightFDDataSync | rightFDSeek | rightFDSetFlags | rightFDSync |
		rightFDTell | rightFDAdvise | rightFDFilestatGet | rightFDFilestatSetTimes | rightPoll

	// rightsDirectory leaves out rightPathFilestatSetSize, though path_open truncates files: WASI's
	// own tests require of hosts that claim it that a guest can give it up.
	rightsDirectory = rightFDDataSync | rightFDSetFlags | rightFDSync | rightFDReadDir | rightFDFilestatGet |
		rightFDFilestatSetTimes |
		rightPathCreateDirectory | rightPathCreateFile | rightPathLinkSource | rightPathLinkTarget | rightPathOpen |
		rightPathReadlink | rightPathRenameSource | rightPathRenameTarget | rightPathFilestatGet | rightPathFilestatSetTimes |
		rightPathSymlink | rightPathRemoveDirectory | rightPathUnlinkFile

	rightsStream = rightFDSetFlags | rightFDFilestatGet | rightPoll
)

// rights returns the rights of a descriptor, and those that descriptors opened through it may have. A directory that
// may only be read has the same rights as any other.
func (d *descriptor) rights() (base, inheriting uint64) {
	switch {
	case d.dir != nil:
		return rightsDirectory, rightsDirectory | rightsFile
	case d.file != nil:
		base = rightsFile
		if !d.mode.read {
			base &^= rightsReading
		}
		if !d.mode.write {
			base &^= rightsWriting
		}
		return base, 0
	case d.stdin:
		return rightsStream | rightFDRead, 0
	case d.device != nil:
		return rightsStream | rightFDRead | rightFDWrite, 0
	}
	return rightsStream | rightFDWrite, 0
}
