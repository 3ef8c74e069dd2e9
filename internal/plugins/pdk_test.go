package plugins

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// languages are all that the plug-in is written in.
func languages() []Language { return []Language{C, Rust, RustWASI, Go, AssemblyScript} }

// pdk returns the plug-in in a language.
func pdk(t testing.TB, language Language) subject {
	t.Helper()
	module, err := Module(t.Context(), language, t.TempDir())
	require.NoError(t, err)
	return subject{name: string(language), module: module}
}

func TestNoSuchLanguage(t *testing.T) {
	_, err := Module(t.Context(), "cobol", t.TempDir())
	require.ErrorIs(t, err, ErrNoPlugin)
}

// pair is one plug-in on both hosts.
type pair struct {
	subject
	calls map[string][2]func(input string) answer // ours, and a fresh instance of theirs, by export
}

func newPair(s subject) *pair { return &pair{s, map[string][2]func(string) answer{}} }

// both returns the answers of both hosts to one call.
func (p *pair) both(t testing.TB, export, input string) (here, there answer) {
	t.Helper()
	calls, loaded := p.calls[export]
	if !loaded {
		calls = [2]func(string) answer{ours{}.load(t, p.subject, export), theirs{}.load(t, p.subject, export)}
		p.calls[export] = calls
	}
	return calls[0](input), calls[1](input)
}

// same asserts that both hosts answer the same, and returns the output. A failure says the same and maybe more.
func (p *pair) same(t testing.TB, export, input string) string {
	t.Helper()
	here, there := p.both(t, export, input)
	what := fmt.Sprintf("%s %s(%s)", p.name, export, brief(input))
	if there.Error != "" {
		require.Contains(t, here.Error, there.Error, what)
		return ""
	}
	require.Empty(t, here.Error, what)
	if here.Output != there.Output {
		require.Fail(t, "the outputs differ", "%s\nours:   %s\ntheirs: %s", what, brief(here.Output), brief(there.Output))
	}
	return here.Output
}

func brief(text string) string {
	if len(text) > 60 {
		return fmt.Sprintf("%q… of %d bytes", text[:40], len(text))
	}
	return fmt.Sprintf("%q", text)
}

// text returns a random text of about so many bytes. It has all that UTF-8 can hold, except U+FFFD, which also replaces
// bytes that are not text.
func text(random *rand.Rand, size int) string {
	var b strings.Builder
	b.Grow(size + utf8.UTFMax)
	for b.Len() < size {
		switch random.IntN(4) {
		case 0:
			r := rune(random.IntN(utf8.MaxRune + 1))
			if utf8.ValidRune(r) && r != utf8.RuneError {
				b.WriteRune(r)
			}
		default:
			b.WriteByte(byte(random.IntN(utf8.RuneSelf)))
		}
	}
	return b.String()
}

// TestPDKsAnswerTheSame: the plug-in in each language answers as it does on go-sdk.
func TestPDKsAnswerTheSame(t *testing.T) {
	for _, language := range languages() {
		t.Run(string(language), func(t *testing.T) {
			s := pdk(t, language)
			s.config = map[string]string{"greeting": "Grüße\x00", "a": strings.Repeat("value ", 2000)}
			p := newPair(s)
			assert.Equal(t, "héllo\x00", p.same(t, "echo", "héllo\x00"))
			assert.Equal(t, "😀ölleh", p.same(t, "reverse", "hellö😀"))
			assert.JSONEq(t, `{"count":3}`, p.same(t, "count_vowels", "hello world"))
			assert.Equal(t, "Grüße\x00", p.same(t, "config", "greeting"))
			assert.Len(t, p.same(t, "config", "a"), 12000)
			p.same(t, "config", "missing")
			p.same(t, "config", "")
			p.same(t, "fail", "a reason, and ünother")
			assert.Equal(t, allocated(3000), p.same(t, "allocate", "3000"))
			p.same(t, "allocate", "many")
			assert.Equal(t, "logged", p.same(t, "log_levels", "a message"))
			here, there := p.both(t, "trap", "deliberate")
			assert.NotEmpty(t, there.Error)
			assert.NotEmpty(t, here.Error)
		})
	}
}

// allocated is what the plug-in's export of this name returns.
func allocated(blocks int) string {
	sum := 0
	for i := range blocks {
		sum += 1 + i*7919%1000 + i%256
	}
	return fmt.Sprint(sum)
}

// TestPDKsLogTheSame: what a plug-in logs reaches the host's log, in order, from level info on.
func TestPDKsLogTheSame(t *testing.T) {
	for _, language := range languages() {
		t.Run(string(language), func(t *testing.T) {
			here, there := newPair(pdk(t, language)).both(t, "log_levels", "a message")
			assert.Equal(t, []string{"a message", "a message", "a message"}, there.Logs)
			assert.Equal(t, []string{"info: a message", "warn: a message", "error: a message"}, here.Logs)
		})
	}
}

// TestPDKsSendTheSameRequests: the same requests arrive, and their responses come back the same. One to what is
// not granted is refused, and none arrives.
func TestPDKsSendTheSameRequests(t *testing.T) {
	web := serve(t)
	for _, language := range languages() {
		t.Run(string(language), func(t *testing.T) {
			s := pdk(t, language)
			s.hosts = []string{"api.example.com"}
			p := newPair(s)
			for path, want := range map[string]string{"/": `200 {"title": "delectus"}`, "/missing?a=b": "404 no such page\n", "/empty": "204 "} {
				assert.Equal(t, want, p.same(t, "get", "https://api.example.com"+path))
				request := "GET api.example.com" + path
				assert.Equal(t, []string{request, request}, web.requests())
			}
			here, there := p.both(t, "get", "https://elsewhere.example/secret")
			assert.Contains(t, there.Error, "is not allowed")
			assert.Contains(t, here.Error, "denied: network https://elsewhere.example/secret")
			assert.Empty(t, web.requests())
		})
	}
}

// TestRandomInputsGiveTheSame: texts from nothing to 8 MiB come back unchanged, and reversed, from both hosts.
func TestRandomInputsGiveTheSame(t *testing.T) {
	sizes := []int{0, 1, 7, 8, 9, 63, 64, 65, 1000, 4095, 4096, 4097, 65535, 65536, 65537, 1 << 20, 8 << 20}
	if !testsize.Slow {
		sizes = []int{0, 1, 7, 8, 9, 65, 4097, 65537}
	}
	for n, language := range testsize.Sample(languages(), 3) {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(25, uint64(n)))
			p := newPair(pdk(t, language))
			for _, size := range sizes {
				input := text(random, size)
				if p.same(t, "echo", input) != input {
					require.Fail(t, "it is not what went in", "%d bytes", size)
				}
				reversed := p.same(t, "reverse", input)
				if p.same(t, "reverse", reversed) != input {
					require.Fail(t, "twice reversed, it is not what went in", "%d bytes", size)
				}
			}
		})
	}
}

// TestThousandCallsGiveTheSame: a sequence of calls of several exports, with inputs of up to 8 KiB, in one
// process. Instances are pooled and reset in between, so a byte that survives would show.
func TestThousandCallsGiveTheSame(t *testing.T) {
	for n, language := range testsize.Sample(languages(), 2) {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1000, uint64(n)))
			s := pdk(t, language)
			s.config = map[string]string{"key": "value"}
			p := newPair(s)
			for range testsize.Of(200, 1000) {
				input := text(random, random.IntN(1<<random.IntN(14)))
				switch random.IntN(8) {
				case 0:
					require.Equal(t, "1", p.same(t, "count_memory", input))
				case 1:
					require.Equal(t, "1", p.same(t, "count_var", input))
				case 2:
					require.Equal(t, "value", p.same(t, "config", "key"))
				case 3:
					p.same(t, "fail", "x"+input)
				case 4:
					require.Equal(t, allocated(50), p.same(t, "allocate", "50"))
				case 5:
					var counted struct{ Count int }
					require.NoError(t, json.Unmarshal([]byte(p.same(t, "count_vowels", input)), &counted))
				case 6:
					p.same(t, "reverse", input)
				default:
					require.Equal(t, input, p.same(t, "echo", input))
				}
			}
		})
	}
}
