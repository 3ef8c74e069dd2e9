package files_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attackRow says which tests hold one attack off, and which show that it works where
// nothing does. A test is named by its folder and its function.
type attackRow struct {
	attack   string
	guards   []string
	controls []string
	// uncontrolled says why there is nothing to show, where there are no controls.
	uncontrolled string
}

const (
	here   = "hostfuncs/files."
	guest  = "runtime." // through a guest that makes raw WASI calls
	wazero = "runtime/internal/engine."
)

// attackRows are the known attacks on a sandbox's files.
func attackRows() []attackRow {
	return []attackRow{
		{"dot dot, absolute paths, a directory's handle and dot dot",
			[]string{here + "TestNoPathLeavesTheDirectory", here + "TestPathsThroughTheVirtualRootDoNotLeave", here + "FuzzPath", guest + "TestNoWayOutOfTheProject"},
			[]string{here + "TestNoPathLeavesTheDirectory"}, ""},
		{"20,000 spellings of ways up",
			[]string{here + "TestNoSpellingOfAPathLeavesTheDirectory"},
			[]string{here + "TestNoSpellingOfAPathLeavesTheDirectoryControl"}, ""},
		{"the same behind a link to /",
			[]string{here + "TestNoSpellingOfAPathLeavesTheDirectory"},
			[]string{here + "TestNoSpellingOfAPathLeavesTheDirectoryControl", wazero + "TestAttackFilesSpellingsControl"}, ""},
		{"read through relative, absolute and directory links",
			[]string{here + "TestNoPathLeavesTheDirectory", guest + "TestNoWayOutOfTheProject"},
			[]string{here + "TestNoPathLeavesTheDirectory", wazero + "TestAttackFilesControl"}, ""},
		{"a link to /proc",
			[]string{here + "TestProcIsNotReachedByLinks", guest + "TestNoWayOutOfTheProject"},
			[]string{here + "TestProcIsNotReachedByLinks", wazero + "TestAttackFilesProcControl"}, ""},
		{"write and create through a link",
			[]string{here + "TestNoPathLeavesTheDirectory", here + "FuzzCreate", guest + "TestNoWayOutOfTheProject"},
			[]string{here + "TestNoPathLeavesTheDirectory", wazero + "TestAttackFilesControl"}, ""},
		{"a relative link that the guest makes",
			[]string{here + "TestNoPathLeavesTheDirectory", guest + "TestNoWayOutOfTheProject"},
			[]string{here + "TestNoPathLeavesTheDirectory", wazero + "TestAttackFilesControl"}, ""},
		{"an absolute link that the guest makes",
			[]string{here + "TestNoPathLeavesTheDirectory", guest + "TestNoWayOutOfTheProject"},
			[]string{here + "TestNoPathLeavesTheDirectory"}, ""},
		{"rename, hard link and unlink through a directory link",
			[]string{here + "TestNoPathLeavesTheDirectory", guest + "TestNoWayOutOfTheProject"},
			[]string{here + "TestNoPathLeavesTheDirectory", wazero + "TestAttackFilesControl"}, ""},
		{"read-only: O_TRUNC with the right to read",
			[]string{here + "TestReadOnlyDirectoryDoesNotChange", guest + "TestReadOnlyMeansByteIdentical"},
			[]string{here + "TestReadOnlyDirectoryDoesNotChange", wazero + "TestAttackFilesControl"}, ""},
		{"read-only: O_CREAT with the right to read",
			[]string{here + "TestReadOnlyDirectoryDoesNotChange", guest + "TestReadOnlyMeansByteIdentical"},
			[]string{here + "TestReadOnlyDirectoryDoesNotChange", wazero + "TestAttackFilesControl"}, ""},
		{"read-only: truncate and create outside, through a link",
			[]string{here + "TestReadOnlyDirectoryDoesNotChange", guest + "TestReadOnlyTreeSurvivesEveryAttack"},
			[]string{here + "TestReadOnlyDirectoryDoesNotChange", wazero + "TestAttackFilesControl"}, ""},
		{"read-only: write, append, set size and times, rename, unlink, mkdir, link, symlink",
			[]string{here + "TestReadOnlyDirectoryDoesNotChange", guest + "TestReadOnlyMeansByteIdentical", guest + "TestReadOnlyTreeSurvivesEveryAttack"},
			[]string{here + "TestReadOnlyDirectoryDoesNotChange"}, ""},
		{"open a pipe",
			[]string{here + "TestPipeIsNotOpened", guest + "TestPipesAndDevicesDoNotHang", guest + "TestPipeOpenEndsWithinTheDeadline"},
			[]string{here + "TestPipeIsNotOpenedControl", wazero + "TestAttackFilesPipeControl"}, ""},
		{"a pipe put in a file's place while it is opened",
			[]string{here + "TestSwappedPipeDoesNotBlock"},
			[]string{here + "TestSwappedPipeDoesNotBlockControl"}, ""},
		{"open a socket", []string{here + "TestSocketIsNotOpened"}, []string{here + "TestSocketIsNotOpened"}, ""},
		{"open a device",
			[]string{here + "TestDeviceIsNotOpened", guest + "TestDevicesAreNotOpenedByGuests"},
			[]string{here + "TestDeviceIsNotOpened", wazero + "TestAttackFilesDeviceControl"}, ""},
		{"a hard link from before is the file that it is, as documented",
			[]string{here + "TestHardLinkFromBefore", guest + "TestHardLinkFromBeforeIsTheFile"},
			[]string{wazero + "TestAttackFilesControl"}, ""},
		{"readlink shows a host path",
			[]string{here + "TestNoPathLeavesTheDirectory", guest + "TestGuestSeesNoHostNumbers"},
			[]string{here + "TestNoPathLeavesTheDirectory", wazero + "TestAttackFilesControl"}, ""},
		{"inodes and devices of the host",
			[]string{here + "TestInodesAreTheViewsOwn", guest + "TestGuestSeesNoHostNumbers", guest + "TestListingShowsNoHostInode"},
			[]string{wazero + "TestAttackFilesControl"}, ""},
		{"a hole of 1 TiB, 1 GiB allocated",
			[]string{here + "TestHolesCount", guest + "TestDiskAndDescriptorsAreBounded"},
			[]string{here + "TestHolesCount", wazero + "TestAttackFilesControl"}, ""},
		{"open files until it fails",
			[]string{here + "TestOpensAreBounded", guest + "TestDiskAndDescriptorsAreBounded"},
			[]string{here + "TestOpensAreBounded", wazero + "TestAttackFilesControl"}, ""},
		{"renumber to a huge descriptor", []string{guest + "TestDiskAndDescriptorsAreBounded"}, nil, "wazero alone holds it off too"},
		{"a link put in a file's place between check and open",
			[]string{here + "TestLinkSwappedInBetweenCheckAndOpen", here + "TestSwappedLinkIsNotFollowed"},
			[]string{here + "TestLinkSwappedInBetweenCheckAndOpenControl", here + "TestSwappedLinkIsNotFollowedControl"}, ""},
		{"a link put in a directory's place while it is walked",
			[]string{here + "TestDirectorySwappedWithLinkWhileItIsWalked"},
			[]string{here + "TestDirectorySwappedWithLinkControl"}, ""},
		{"a context value that climbs",
			[]string{here + "TestContextValuesCannotClimb", guest + "TestContextValuesCannotClimb"},
			[]string{here + "TestContextValuesCannotClimb"}, ""},
		{"two tenants of one tool at once",
			[]string{here + "TestTenantsNeverMeet", guest + "TestTenantsOfOneToolNeverMeet"},
			[]string{here + "TestTenantsNeverMeetControl", guest + "TestTenantsOfOneToolNeverMeet"}, ""},
		{"escapes come as permission errors, other errors without host paths",
			[]string{here + "TestEscapeErrorOfTheStandardLibrary", here + "TestErrorsOfTheHostAreMapped", here + "TestUnknownHostErrorsStayWithTheOperator"},
			nil, "the host's errors hold host paths: the tests make such"},
	}
}

// TestEveryAttackHasItsTests: the tests that the rows name are there.
func TestEveryAttackHasItsTests(t *testing.T) {
	folders := map[string][]string{}
	var seen []string
	for _, row := range attackRows() {
		assert.NotContains(t, seen, row.attack)
		seen = append(seen, row.attack)
		assert.NotEmpty(t, row.guards, row.attack)
		assert.NotEqual(t, len(row.controls) == 0, row.uncontrolled == "", "%s: controls, or why there are none", row.attack)
		for _, name := range slices.Concat(row.guards, row.controls) {
			folder, function, found := strings.Cut(name, ".")
			require.True(t, found, name)
			if folders[folder] == nil {
				folders[folder] = testsOf(t, folder)
			}
			assert.Contains(t, folders[folder], function, "%s: %s", row.attack, folder)
		}
	}
}

// testsOf returns the names of the tests and fuzz tests of a folder, on any system.
func testsOf(t *testing.T, folder string) (names []string) {
	t.Helper()
	sources, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	set := token.NewFileSet()
	for _, source := range sources {
		syntax, err := parser.ParseFile(set, source, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declared := range syntax.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
