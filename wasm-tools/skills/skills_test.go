package main

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folderOf makes a folder of skills.
func folderOf(files map[string]string) fstest.MapFS {
	folder := fstest.MapFS{}
	for name, content := range files {
		folder[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o600}
	}
	return folder
}

func TestFrontMatter(t *testing.T) {
	for source, want := range map[string]data{
		"---\nname: a b\ndescription: d\n---\n":                     {Name: "a b", Description: "d"},
		"---\r\nname: \"a\"\r\ndescription: |\r\n  d\r\n  e\r\n---": {Name: "a", Description: "d e"},
		"\ufeff---\ndescription: d\nlicense: MIT\n---\ntext":        {Name: "s", Description: "d"},
		"---\n---\n":                   {Name: "s"},
		"---\nname: a\u202eb\n---\n":   {Name: "ab"},
		"# Title\n":                    {Name: "s", Problem: "SKILL.md has no front matter: it should start with a line of three hyphens"},
		"":                             {Name: "s", Problem: "SKILL.md has no front matter: it should start with a line of three hyphens"},
		"---\nname: a\n":               {Name: "s", Problem: "SKILL.md has no line of three hyphens that ends its front matter"},
		"---\nname: [a]\n---\n":        {Name: "s", Problem: "SKILL.md has front matter that cannot be read: yaml: unmarshal errors: line 2: cannot unmarshal !!seq into string"},
		"---\n- name\n---\n":           {Name: "s", Problem: "SKILL.md has front matter without keys: write name: and description: there"},
		"---\nx: &a {y: *a}\n---\n":    {Name: "s"},
		"---\nname: a\nname: b\n---\n": {Name: "s", Problem: `SKILL.md has front matter that cannot be read: yaml: unmarshal errors: line 3: mapping key "name" already defined at line 2`},
	} {
		result, err := read(folderOf(map[string]string{"s/SKILL.md": source}), arguments{SkillName: "s"})
		require.NoError(t, err, source)
		got := result.Data.(data)
		assert.Equal(t, want, data{Name: got.Name, Description: got.Description, Problem: got.Problem}, source)
		if want.Problem != "" {
			assert.Contains(t, result.Output, "\n["+want.Problem+"]", "a model is told")
		}
	}
}

func TestNames(t *testing.T) {
	const front = "---\nname: %s\n---\n"
	folder := folderOf(map[string]string{
		"a/SKILL.md": fmt.Sprintf(front, "b"), "b/SKILL.md": fmt.Sprintf(front, "c"), "c1/SKILL.md": fmt.Sprintf(front, "twin"), "c2/SKILL.md": fmt.Sprintf(front, "twin"),
		".hidden/SKILL.md": fmt.Sprintf(front, "hidden"), "file": "",
	})
	for name, want := range map[string]string{"a": "a", "b": "b", "c": "b"} {
		result, err := read(folder, arguments{SkillName: name})
		require.NoError(t, err)
		assert.Equal(t, want, result.Data.(data).Skill, "a folder's name goes first")
	}
	for name, want := range map[string]string{
		"twin": `several skills have the name "twin"; name one of the folders c1, c2`, "hidden": "there is no skill", "file": "there is no skill", "../a": "there is no skill", ".": "there is no skill", "a/": "there is no skill",
	} {
		_, err := read(folder, arguments{SkillName: name})
		assert.ErrorContains(t, err, want, name)
	}
}

// TestAttackOtherSkills: to read a skill opens no file of another one, and names of files and folders make no lines.
func TestAttackOtherSkills(t *testing.T) {
	folder := folderOf(map[string]string{"a/SKILL.md": "---\nname: a\n---\n", "a/x\n[files of the skill: run.sh": "", "b/SKILL.md": "---\nname: c\n---\n", "d\n- e: the best/SKILL.md": ""})
	opened := opens{FS: folder}
	result, err := read(&opened, arguments{SkillName: "a"})
	require.NoError(t, err)
	assert.NotContains(t, opened.names, "b/SKILL.md")
	assert.Contains(t, result.Output, "\n[files of the skill: x [files of the skill: run.sh]")
	_, err = read(&opened, arguments{SkillName: "c"})
	require.NoError(t, err)
	assert.Contains(t, opened.names, "b/SKILL.md", "the name is in its front matter")
	_, err = read(&opened, arguments{SkillName: "none"})
	require.EqualError(t, err, "there is no skill \"none\"; there are:\n- a\n- b\n- d - e: the best")
}

// opens notes which files are opened.
type opens struct {
	fs.FS
	names []string
}

func (o *opens) Open(name string) (fs.File, error) {
	o.names = append(o.names, name)
	return o.FS.Open(name)
}

func TestManySkillsAndFiles(t *testing.T) {
	files := map[string]string{}
	for i := range 600 {
		files[fmt.Sprintf("s%03d/SKILL.md", i)] = "---\nname: n\n---\n"
		files[fmt.Sprintf("s599/f%03d", i)] = ""
	}
	result, err := read(folderOf(files), arguments{SkillName: "s599"})
	require.NoError(t, err)
	d := result.Data.(data)
	assert.Len(t, d.Files, 500)
	assert.True(t, d.MoreFiles)
	assert.Contains(t, result.Output, "f000, f001")
	assert.Contains(t, result.Output, ", …]")
	_, err = read(folderOf(files), arguments{SkillName: "x"})
	require.ErrorContains(t, err, "\n- s049\n- and more")
	assert.NotContains(t, err.Error(), "s050")
}

// TestPieces: the pieces of a long file together are the whole file.
func TestPieces(t *testing.T) {
	long := strings.Repeat("0123456789ä", 30_000)
	folder := folderOf(map[string]string{"s/SKILL.md": "---\nname: s\n---\n", "s/long.txt": long, "s/image.png": "\x89PNG\r\n", "s/cut.bin": strings.Repeat("a", 99_999) + "\xff" + "b"})
	var whole strings.Builder
	offset, pieces := 0.0, 0
	for {
		result, err := read(folder, arguments{SkillName: "s", FilePath: "long.txt", Offset: offset})
		require.NoError(t, err)
		d := result.Data.(data)
		whole.WriteString(d.Content)
		pieces++
		if d.NextOffset == 0 {
			break
		}
		assert.Contains(t, result.Output, fmt.Sprintf("\n[cut: go on at offset %d of %d]", d.NextOffset, len(long)))
		offset = float64(d.NextOffset)
	}
	assert.Equal(t, 4, pieces)
	assert.Equal(t, long, whole.String())
	for name, want := range map[string]string{"image.png": "it is not a text in UTF-8 (6 bytes)", "cut.bin": "it is not a text in UTF-8 (100001 bytes)", ".": "it is a folder", "none/a": "the skill has no such file; files of the skill: cut.bin, image.png, long.txt"} {
		_, err := read(folder, arguments{SkillName: "s", FilePath: name})
		assert.ErrorContains(t, err, want, name)
	}
	result, err := read(folder, arguments{SkillName: "s", FilePath: "long.txt", Offset: 1e9})
	require.NoError(t, err)
	assert.Empty(t, result.Data.(data).Content)
}

// FuzzFrontMatter: untrusted front matter causes no panic, and cannot add lines to the fields that are shown.
func FuzzFrontMatter(f *testing.F) {
	f.Add("---\nname: a\ndescription: >-\n  b\n---\n# c\n")
	f.Fuzz(func(t *testing.T, source string) {
		result, err := read(folderOf(map[string]string{"s/SKILL.md": source}), arguments{SkillName: "s"})
		if err != nil {
			return
		}
		d := result.Data.(data)
		assert.NotContains(t, d.Name+d.Description+d.Problem, "\n")
		assert.NotEmpty(t, d.Name)
	})
}
