package network

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
)

// spellings are the ways in which people have written an IPv4 address into URLs.
func spellings(address netip.Addr) []string {
	b := address.As4()
	number := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	all := []string{
		address.String(),
		fmt.Sprint(number), fmt.Sprintf("%#x", number), fmt.Sprintf("0X%X", number), fmt.Sprintf("0%o", number), fmt.Sprintf("000%o", number),
		fmt.Sprintf("%d.%d", b[0], number&0xffffff), fmt.Sprintf("%d.%d.%d", b[0], b[1], number&0xffff),
		fmt.Sprintf("%#x.%d", b[0], number&0xffffff), fmt.Sprintf("0%o.%d.%#x", b[0], b[1], number&0xffff),
		fmt.Sprintf("%d.%d.%d.%d", 256+int(b[0]), b[1], b[2], b[3]), fmt.Sprint(uint64(number) + 1<<32),
		address.String() + ".", address.String() + "..", strings.ReplaceAll(address.String(), ".", "。"), strings.ReplaceAll(address.String(), ".", "%2e"),
		strings.ReplaceAll(address.String(), ".", "．"), fullwidth(address.String()), fullwidth(fmt.Sprint(number)), circled(address.String()),
		percent(address.String()),
	}
	// Every octet in decimal, hexadecimal, octal and octal with zeros.
	forms := []string{"%d", "%#x", "0%o", "0000%o"}
	for i := range 256 {
		var octets []string
		for at := range 4 {
			octets = append(octets, fmt.Sprintf(forms[i>>(2*at)&3], b[at]))
		}
		all = append(all, strings.Join(octets, "."))
	}
	mapped := func(p string) string { return fmt.Sprintf("[%s%02x%02x:%02x%02x]", p, b[0], b[1], b[2], b[3]) }
	return append(all,
		mapped("::ffff:"), mapped("::"), mapped("0:0:0:0:0:ffff:"), mapped("64:ff9b::"), mapped("64:ff9b:1::"), mapped("::ffff:0:"),
		"[::ffff:"+address.String()+"]", "[::"+address.String()+"]", "[64:ff9b::"+address.String()+"]", "[::FFFF:"+address.String()+"]",
		fmt.Sprintf("[2002:%02x%02x:%02x%02x::]", b[0], b[1], b[2], b[3]), fmt.Sprintf("[2002:%02x%02x:%02x%02x::1]", b[0], b[1], b[2], b[3]),
		"["+address.String()+"]", "[::ffff:"+address.String()+"%25lo]",
		// Names that public DNS servers answer with the address in them.
		address.String()+".nip.test", "www."+address.String()+".nip.test", strings.ReplaceAll(address.String(), ".", "-")+".nip.test",
		fmt.Sprintf("%02x%02x%02x%02x.nip.test", b[0], b[1], b[2], b[3]),
	)
}

func fullwidth(text string) string { return shift(text, '0', '９'-9) }

func circled(text string) string { return strings.ReplaceAll(shift(text, '1', '①'), "0", "⓪") }

func shift(text string, from, to rune) string {
	return strings.Map(func(r rune) rune {
		if r >= from && r <= '9' {
			return r - from + to
		}
		return r
	}, text)
}

func percent(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func spellings6() []string {
	return []string{
		"[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::0:1]", "[0::1]", "[::1%25lo]", "[::]", "[0:0::0]", "[::0.0.0.1]",
		"[fe80::1]", "[fe80::a9fe:a9fe]", "[fd00:ec2::254]", "[fc00::1]", "[ff02::1]", "[ff0e::1]", "[2001:db8::1]", "[2001::1]", "[100::1]",
		"[::ffff:0:0]", "[::ffff:0.0.0.0]", "ip6.nip.test", "mapped.nip.test", "mixed.nip.test", "many.nip.test",
	}
}

// TestAttackList tries every spelling of addresses that a tool has no business with.
func TestAttackList(t *testing.T) {
	inside := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) {})
	targets := []string{"127.0.0.1", "169.254.169.254", "10.0.0.1", "0.0.0.0"}
	names := newNames(t, map[string][]string{
		"ip6.nip.test": {"::1"}, "mapped.nip.test": {"::ffff:127.0.0.1"}, "mixed.nip.test": {"127.0.0.1", "::1", "169.254.169.254"},
		"many.nip.test": {"127.0.0.1", "127.0.0.2", "127.0.0.3", "10.1.1.1", "10.1.1.2", "fd00::1"},
	})
	names.setAnswer(func(name string) []string {
		for _, target := range targets {
			b := netip.MustParseAddr(target).As4()
			hex := fmt.Sprintf("%02x%02x%02x%02x.", b[0], b[1], b[2], b[3])
			if strings.Contains(name, target) || strings.Contains(name, strings.ReplaceAll(target, ".", "-")) || strings.HasPrefix(name, hex) {
				return []string{target}
			}
		}
		return nil
	})
	var urls []string
	for _, host := range append(spellings6(), "localhost", "LOCALHOST.", "ip6-localhost") {
		urls = append(urls, "http://"+net.JoinHostPort("HOST", strconv.Itoa(inside.port))+"/?h="+host)
		urls[len(urls)-1] = strings.Replace(urls[len(urls)-1], "HOST", host, 1)
	}
	for _, target := range targets {
		for _, host := range spellings(netip.MustParseAddr(target)) {
			urls = append(urls, "http://"+host+":"+strconv.Itoa(inside.port)+"/")
		}
	}
	require.Greater(t, len(urls), 1000)

	control := newUnguarded(t, names.resolver())
	for _, target := range urls {
		control.get(t, target)
	}
	require.Greater(t, len(control.dialled()), 50, "the list must work on a client without a guard")
	require.NotZero(t, inside.connections.Swap(0))

	s := open(t, Options{
		Requests: everything(inside.port), Resolver: names.resolver(), Grants: []manifests.NetworkGrant{grantOf(everything(inside.port)[0])},
	})
	refused, malformed := 0, 0
	for _, target := range urls {
		_, err := get(t, s, target)
		require.Error(t, err, target)
		switch {
		case isInvalid(err):
			malformed++
		case isKind(err, hostfuncs.ErrIO): // names that do not exist
			assert.Contains(t, err.Error(), "the host's name", target)
		default:
			denied(t, err)
			refused++
		}
	}
	assert.Zero(t, inside.connections.Load())
	t.Logf("%d URLs: %d refused by address, %d as URLs; a client without a guard dialled %d times", len(urls), refused, malformed, len(control.dialled()))
}
