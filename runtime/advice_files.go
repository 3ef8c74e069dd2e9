package runtime

import (
	"bytes"
	"slices"
)

// mistaken lists kinds of files that a manifest may name by mistake in place of a module, with the files' first bytes.
var mistaken = []struct {
	starts    []string
	what, fix string
}{
	{[]string{"version https://git-lfs.github.com/spec/"},
		"a pointer of Git LFS, which stands for a file that was not fetched", "fetch it with git lfs pull"},
	{[]string{"\x1f\x8b"}, "compressed with gzip", "decompress it: gunzip < FILE > MODULE"},
	{[]string{"\x28\xb5\x2f\xfd"}, "compressed with Zstandard", "decompress it: unzstd < FILE > MODULE"},
	{[]string{"\xfd7zXZ\x00"}, "compressed with xz", "decompress it: unxz < FILE > MODULE"},
	{[]string{"BZh"}, "compressed with bzip2", "decompress it: bunzip2 < FILE > MODULE"},
	{[]string{"PK\x03\x04"}, "a ZIP archive", "unpack it, and name the module in it"},
	{[]string{"!<arch>\n"}, "a static library", "link it into a program for wasm32-wasip1"},
	{[]string{"BC\xc0\xde"}, "LLVM bitcode", "link it into a program for wasm32-wasip1, without -emit-llvm"},
	{[]string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"}, "a program for an operating system",
		"build it for WASI preview 1, such as with GOOS=wasip1 GOARCH=wasm or --target wasm32-wasip1"},
	{[]string{"#!"}, "a script", "name the interpreter's module, and pass the script to it with args"},
}

// texts lists such kinds of text files, with their beginnings after white space, in lower case.
var texts = []struct {
	starts    []string
	what, fix string
}{
	{[]string{"(module", "(component", ";;", "(;"}, "WebAssembly's text format",
		"convert it with wat2wasm or wasm-tools parse"},
	{[]string{"<!doctype", "<html", "<head", "<?xml", "<!--"}, "a web page, which is what a failed download may leave",
		"download the module again, and look at what the address answers"},
	{[]string{"{"}, "JSON, which is what a failed download may leave",
		"download the module again, and look at what the address answers; if this is a manifest, name the module instead"},
}

// forFile describes a file that is not a module, or only a part of one, and returns a fix. Both are empty for an
// unknown kind of file.
func forFile(source []byte) (what, fix string) {
	if len(source) == 0 {
		return "the file is empty", "build or download it again"
	}
	for _, m := range mistaken {
		if startsWith(source, m.starts) {
			return "the file is " + m.what + ", not a WebAssembly module", m.fix
		}
	}
	start := bytes.TrimPrefix(source[:min(len(source), 1<<10)], []byte("\xef\xbb\xbf"))
	start = bytes.ToLower(bytes.TrimLeft(start, " \t\r\n"))
	for _, t := range texts {
		if startsWith(start, t.starts) {
			return "the file is " + t.what + ", not a WebAssembly module", t.fix
		}
	}
	return "", ""
}

func startsWith(source []byte, starts []string) bool {
	return slices.ContainsFunc(starts, func(start string) bool { return bytes.HasPrefix(source, []byte(start)) })
}
