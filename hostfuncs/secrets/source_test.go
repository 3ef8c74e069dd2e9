package secrets_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
)

// from returns what New makes of one grant with a source.
func from(source manifests.SecretSource, place manifests.SecretPlace, values environment) (*secrets.Set, error) {
	grant := in(place, granted(key, host))
	grant.From = source
	return secrets.New(secrets.Options{
		Requests: []manifests.SecretPermission{request(key, place, host)}, Grants: []manifests.SecretGrant{grant}, LookupEnv: values.lookup,
	})
}

// valueOf returns the value of a set's one secret, as a request gets it.
func valueOf(t *testing.T, set *secrets.Set) string {
	t.Helper()
	r := newRequest(t, "GET", "https://"+host)
	require.NoError(t, errOf(set.Inject(r, nil)))
	for name := range r.URL.Query() {
		return r.URL.Query().Get(name)
	}
	return r.Header.Get("X-Api-Key")
}

func writeFile(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	require.NoError(t, os.Chmod(name, mode))
	return name
}

func TestValueFromFile(t *testing.T) {
	for content, want := range map[string]string{
		"0123456789abcdef":         "0123456789abcdef",
		"0123456789abcdef\n":       "0123456789abcdef",
		"0123456789abcdef\r\n":     "0123456789abcdef",
		"0123456789 = # abcdef\n":  "0123456789 = # abcdef",
		strings.Repeat("x", 8<<10): strings.Repeat("x", 8<<10),
	} {
		set := must(from(manifests.SecretSource{File: writeFile(t, content, 0o600)}, inHeader("X-Api-Key"), nil))
		assert.Equal(t, want, valueOf(t, set))
		assert.Equal(t, "granted", set.Decisions()[0].Reason)
	}
}

func TestUnusableValues(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		place manifests.SecretPlace
		want  string
	}{
		"short":             {"012345678abcdef", inQuery("q"), "the value is shorter than 16 bytes, so responses cannot be masked for it; use a longer one, or say force: true in the grant"},
		"long":              {strings.Repeat("x", 8<<10+1), inQuery("q"), "longer than 8 KiB"},
		"two lines":         {"0123456789\nabcdef", inQuery("q"), "a line break or another control character"},
		"two line ends":     {"0123456789abcdef\n", inQuery("q"), "a line break or another control character"},
		"a NUL":             {"0123456789\x00abcdef", inQuery("q"), "control character"},
		"a C1 control":      {"0123456789\u0085abcdef", inQuery("q"), "control character"},
		"no UTF-8":          {"0123456789\xffabcdef", inQuery("q"), "not valid UTF-8"},
		"a space before":    {" 0123456789abcdef", inQuery("q"), "begins or ends with a space"},
		"a space behind":    {"0123456789abcdef ", inHeader("X"), "begins or ends with a space"},
		"umlauts in header": {"0123456789abcdeü", inHeader("X"), "goes into a header and is not ASCII"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := from(manifests.SecretSource{Env: "V"}, c.place, environment{"V": c.value})
			require.ErrorIs(t, err, secrets.ErrValue)
			assert.ErrorContains(t, err, "secret SEARCH_KEY (/etc/caisson/caisson.yaml:14): the value ")
			assert.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "0123456789")
			assert.NotContains(t, err.Error(), "xxxx")
		})
	}
	set, err := from(manifests.SecretSource{Env: "V"}, inQuery("q"), environment{"V": "0123456789abcdeü"})
	require.NoError(t, err, "a query holds any text")
	assert.Equal(t, "0123456789abcdeü", valueOf(t, set))
}

func TestUnreadableFiles(t *testing.T) {
	folder := t.TempDir()
	for name, c := range map[string]struct{ file, want string }{
		"absent":   {filepath.Join(folder, "absent"), "absent cannot be read: "},
		"a folder": {folder, "is not a regular file"},
		"large":    {writeFile(t, strings.Repeat("x", 64<<10+1), 0o600), "is larger than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := from(manifests.SecretSource{File: c.file}, inHeader("X"), nil)
			require.ErrorIs(t, err, secrets.ErrSource)
			assert.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "xxx")
		})
	}
	_, err := from(manifests.SecretSource{File: writeFile(t, "", 0o600)}, inHeader("X"), nil)
	require.ErrorIs(t, err, secrets.ErrValue)
	assert.ErrorContains(t, err, "the value is empty")
}

// TestSourcesThatNobodyAsksForAreNotRead, nor those of denied secrets.
func TestSourcesThatNobodyAsksForAreNotRead(t *testing.T) {
	grant := granted(key, host)
	grant.From = manifests.SecretSource{File: filepath.Join(t.TempDir(), "absent")}
	options := secrets.Options{Grants: []manifests.SecretGrant{grant}}
	require.NoError(t, errOf(secrets.New(options)))
	options.Requests = []manifests.SecretPermission{request(key, inHeader("X"), host)}
	require.ErrorIs(t, errOf(secrets.New(options)), secrets.ErrSource, "the control")
	options.Deny = []manifests.Deny{{Secret: key}}
	require.NoError(t, errOf(secrets.New(options)))
}

const ageContent = "# the team's keys\n\nSEARCH_KEY=0123456789abcdef\r\nother=a=b # c == 16 bytes\n  # indented\nEMPTY=\nlast=fedcba9876543210"

// seal writes a file that the identity opens, and the identity's own.
func seal(t *testing.T, content string, armored bool) manifests.SecretSource {
	t.Helper()
	identity := must(age.GenerateX25519Identity())
	return manifests.SecretSource{
		Age:      writeFile(t, sealed(t, content, armored, identity.Recipient()), 0o600),
		Identity: writeFile(t, "# created: today\n"+identity.String()+"\n", 0o600),
	}
}

func sealed(t *testing.T, content string, armored bool, recipient age.Recipient) string {
	t.Helper()
	var file bytes.Buffer
	var out io.WriteCloser = nopCloser{&file}
	if armored {
		out = armor.NewWriter(&file)
	}
	in := must(age.Encrypt(out, recipient))
	require.NoError(t, errOf(io.WriteString(in, content)))
	require.NoError(t, in.Close())
	require.NoError(t, out.Close())
	return file.String()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestValueFromAgeFile(t *testing.T) {
	for _, armored := range []bool{true, false} {
		source := seal(t, ageContent, armored)
		for name, want := range map[string]string{"": "0123456789abcdef", "other": "a=b # c == 16 bytes", "last": "fedcba9876543210"} {
			source.Key = name
			assert.Equal(t, want, valueOf(t, must(from(source, inHeader("X-Api-Key"), nil))))
		}
		for name, want := range map[string]string{"absent": "the age file has no absent", "EMPTY": "EMPTY is empty in the age file"} {
			source.Key = name
			set := must(from(source, inHeader("X-Api-Key"), nil))
			assert.False(t, set.Exists(key))
			assert.Equal(t, want, set.Decisions()[0].Reason)
		}
	}
}

func TestAgeFileForAHybridKey(t *testing.T) {
	identity := must(age.GenerateHybridIdentity())
	set, err := from(manifests.SecretSource{
		Age:      writeFile(t, sealed(t, ageContent, false, identity.Recipient()), 0o600),
		Identity: writeFile(t, identity.String(), 0o600),
	}, inHeader("X-Api-Key"), nil)
	require.NoError(t, err)
	assert.Equal(t, "0123456789abcdef", valueOf(t, set))
}

// TestAgeFileServesManySecrets by the names in it.
func TestAgeFileServesManySecrets(t *testing.T) {
	source := seal(t, ageContent, true)
	first, second := granted("FIRST", host), granted("SECOND", host)
	first.From, second.From = source, source
	first.From.Key, second.From.Key = "SEARCH_KEY", "last"
	set, err := secrets.New(secrets.Options{
		Requests: []manifests.SecretPermission{request("FIRST", inHeader("X-First"), host), request("SECOND", inHeader("X-Second"), host)},
		Grants:   []manifests.SecretGrant{first, second},
	})
	require.NoError(t, err)
	r := newRequest(t, "GET", "https://"+host)
	require.NoError(t, errOf(set.Inject(r, nil)))
	assert.Equal(t, "0123456789abcdef", r.Header.Get("X-First"))
	assert.Equal(t, "fedcba9876543210", r.Header.Get("X-Second"))
}

// TestUnreadableAgeFiles: no error holds a part of a key or of the content.
func TestUnreadableAgeFiles(t *testing.T) {
	good, other := seal(t, ageContent, true), seal(t, ageContent, false)
	identity := must(os.ReadFile(good.Identity))
	binary, err := os.ReadFile(other.Age)
	require.NoError(t, err)
	folder := t.TempDir()
	for name, c := range map[string]struct {
		source manifests.SecretSource
		want   string
	}{
		"another key":        {manifests.SecretSource{Age: good.Age, Identity: other.Identity}, "no key in "},
		"no identity":        {manifests.SecretSource{Age: good.Age, Identity: filepath.Join(folder, "absent")}, "absent cannot be read"},
		"no file":            {manifests.SecretSource{Age: filepath.Join(folder, "absent"), Identity: good.Identity}, "absent cannot be read"},
		"a broken identity":  {manifests.SecretSource{Age: good.Age, Identity: writeFile(t, string(identity[:len(identity)-5])+"!\n", 0o600)}, "is not a file of age keys"},
		"an empty identity":  {manifests.SecretSource{Age: good.Age, Identity: writeFile(t, "\n", 0o600)}, "is not a file of age keys"},
		"a large identity":   {manifests.SecretSource{Age: good.Age, Identity: writeFile(t, strings.Repeat("#", 65<<10), 0o600)}, "is larger than 64 KiB"},
		"a file in the open": {manifests.SecretSource{Age: writeFile(t, ageContent, 0o600), Identity: good.Identity}, "is not a valid age file"},
		"a file cut short":   {manifests.SecretSource{Age: writeFile(t, string(binary[:len(binary)-3]), 0o600), Identity: other.Identity}, "is not a valid age file"},
		"a large file":       {manifests.SecretSource{Age: writeFile(t, strings.Repeat("x", 1<<20+1), 0o600), Identity: good.Identity}, "is larger than 1024 KiB"},
		"no lines":           {seal(t, "SEARCH_KEY=0123456789abcdef\n0123456789abcdef\n", true), "line 2 is not NAME=value"},
		"twice a name":       {seal(t, "A=0123456789abcdef\nA=0123456789abcdef\n", true), "line 2 gives a name a second value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := from(c.source, inHeader("X"), nil)
			require.ErrorIs(t, err, secrets.ErrSource)
			assert.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "0123456789")
			assert.NotContains(t, strings.ToUpper(err.Error()), "AGE-SECRET-KEY-1")
		})
	}
}
