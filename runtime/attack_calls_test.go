package runtime

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestAttackConfusedDeputy: a tool without a network has another one send its requests. That works only where a grant
// allows it, which is the purpose of the grant.
func TestAttackConfusedDeputy(t *testing.T) {
	var arrived atomic.Int32
	grant := serve(t, func(w http.ResponseWriter, r *http.Request) { arrived.Add(1) })
	h := newHousehold(t, Options{})
	asksNetwork := "permissions: {secrets: [{name: UNUSED, header: X-Unused, host: unused.example}], network: [{host: api.example.com}]}"
	h.load(t, named(t, "fetch", netprobe, asksNetwork), manifests.Grants{Network: []manifests.NetworkGrant{grant}})
	request := `{"do":"call","name":"fetch","arguments":` + steps(`{"do":"net","requests":[`+get("https://api.example.com/?stolen=1")+`]}`) + `}`

	for name, outsider := range map[string]struct {
		asks   string
		grants manifests.Grants
	}{
		"does not ask":        {"permissions: {tools: [other]}", calling("fetch", "other")},
		"asks without grant":  {"permissions: {tools: [fetch]}", manifests.Grants{}},
		"grant for another":   {"permissions: {tools: [fetch]}", calling("other")},
		"grant taken away":    {"permissions: {tools: [fetch]}", manifests.Grants{Calls: calling("fetch").Calls, Deny: []manifests.Deny{{Call: "fetch"}}}},
		"for another module":  {"permissions: {tools: [fetch]}", boundTo(calling("fetch"), strings.Repeat("ab", 32))},
		"network of its own?": {"permissions: {tools: [fetch]}", manifests.Grants{Network: []manifests.NetworkGrant{grant}}},
	} {
		h.load(t, named(t, "outsider", callprobe, outsider.asks), outsider.grants)
		outcome := h.mustCall(t, "outsider", steps(request))
		assert.NotNil(t, decode[callReply](t, results(t, outcome)[0]).Failure.Denial, name)
		assert.Zero(t, arrived.Load(), name)
	}
	h.load(t, named(t, "outsider", callprobe, "permissions: {tools: [fetch]}"), calling("fetch"))
	outcome := h.mustCall(t, "outsider", steps(request))
	assert.True(t, decode[callReply](t, results(t, outcome)[0]).Success)
	assert.EqualValues(t, 1, arrived.Load(), "control: the request arrives")

	// The deputy does for no caller anything that it may not do itself.
	elsewhere := strings.ReplaceAll(request, "api.example.com", "internal.example")
	outcome = h.mustCall(t, "outsider", steps(elsewhere))
	assert.Len(t, decode[callReply](t, results(t, outcome)[0]).Denials, 1)
	assert.Empty(t, outcome.Denials, "the receipt is the other tool's")
}

func boundTo(grants manifests.Grants, sha256 string) manifests.Grants {
	for i := range grants.Calls {
		grants.Calls[i].SHA256 = sha256
	}
	return grants
}

// TestAttackOtherSpellings: names are compared exactly. No spelling passes that a lenient reader
// would take for a granted name.
func TestAttackOtherSpellings(t *testing.T) {
	kind := func(name string) string {
		return strings.ToLower(strings.Trim(strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return -1
			}
			return r
		}, name), " ./*"))
	}
	h := newHousehold(t, Options{})
	h.load(t, named(t, "outer", callprobe, "permissions: {tools: [file_read]}"), calling("file_read"))
	var asked []string
	host := callsBy(func(_ context.Context, call tool.Call) (tool.Record, error) {
		asked = append(asked, call.Function.Name)
		return tool.Record{Result: tool.Result{Success: true}}, nil
	})
	reached := 0
	for _, name := range []string{
		"File_read", "FILE_READ", "file_read ", " file_read", "file_read\x00", "file_read\n", "./file_read", "file_read/", "file_read\u200b", "file\u200d_read",
		"\ufefffile_read", "file_re\u0430d", "file_reaｄ", "file-read", "fileread", "*", "file_*", "file_rea?", "", "file_read\u0301",
		"file_read,file_write", strings.Repeat("a", 10_000), "\x1b]0;file_read\x07",
	} {
		request := encode(t, name)
		made := invocation(t, steps(`{"do":"call","name":`+string(request)+`}`), nil)
		made.Host = host
		outcome, err := h.tools["outer"].Invoke(t.Context(), made)
		require.NoError(t, err)
		denial := decode[callReply](t, results(t, outcome)[0]).Failure.Denial
		require.NotNil(t, denial, "%q", name)
		assert.LessOrEqual(t, len(denial.Value), 200)
		for _, shown := range []string{denial.Value, outcome.HostCalls[0].Target, denial.Rule, string(denial.Allow.Grant) + string(denial.Allow.Manifest)} {
			assert.NotContains(t, shown, "\x1b")
			assert.NotContains(t, shown, "\n")
			assert.NotContains(t, shown, "\u200b")
		}
		assert.Empty(t, asked, "%q", name)
		if kind(name) == "file_read" {
			reached++
		}
	}
	assert.Greater(t, reached, 8, "control: a lenient reader would have taken many of them for the granted one")
}

// TestAttackAlias: an alias of a granted tool is another name. Only a tool that is granted by its own name is called,
// and a denial of one name is about that name.
func TestAttackAlias(t *testing.T) {
	h := newHousehold(t, Options{})
	h.load(t, named(t, "outer", callprobe, "permissions: {tools: [search, remove, find]}"), calling("search"))
	h.add(t, "search", "")
	h.tools["find"], h.tools["remove"] = h.tools["search"], h.tools["search"] // the host knows them as one tool
	outcome := h.mustCall(t, "outer", steps(asks("find"), asks("remove"), asks("search")))
	done := results(t, outcome)
	assert.NotNil(t, decode[callReply](t, done[0]).Failure.Denial)
	assert.NotNil(t, decode[callReply](t, done[1]).Failure.Denial)
	assert.True(t, decode[callReply](t, done[2]).Success, "control")
	assert.Len(t, h.records, 1)
}

// TestAttackRecursionBomb: a tool that calls itself, several times on each level, takes no more
// than one call's place and time.
func TestAttackRecursionBomb(t *testing.T) {
	h := newHousehold(t, Options{Running: 2})
	h.add(t, "bomb", "limits: {timeout: 2s}", "bomb")
	h.load(t, named(t, "leaf", idle, ""), manifests.Grants{})
	step := echoes("end")
	for range maxDepth + 4 {
		step = asksOften("bomb", 3, step)
	}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			_, err := h.call(t, "bomb", steps(step))
			assert.ErrorIs(t, err, tool.Deadline)
		})
	}
	group.Wait()
	assert.Zero(t, inside(h.runtime.gate))
	deepest := 0
	for _, record := range h.records {
		deepest = max(deepest, strings.Count(record.CallID, "."))
	}
	assert.Equal(t, maxDepth+1, deepest, "control: it went as deep as it could, and the level below did not run")
	h.mustCall(t, "leaf", "{}")

	// The host may set a lower limit.
	h.most, h.records = 3, nil
	outcome := h.mustCall(t, "bomb", steps(asks("bomb", asks("bomb", asks("bomb", asks("bomb"))))))
	text := string(outcome.Result.Data)
	assert.Contains(t, text, "limit: calls are nested too deep")
	assert.Len(t, h.records, 3)
}

// TestAttackFloodOfCalls: the record of the calls is bounded, and the deadline holds.
func TestAttackFloodOfCalls(t *testing.T) {
	h := newHousehold(t, Options{})
	h.add(t, "outer", "limits: {timeout: 1s}", "leaf")
	h.load(t, named(t, "leaf", idle, ""), manifests.Grants{})
	for _, name := range []string{"leaf", "denied"} {
		outcome, err := h.call(t, "outer", steps(asksOften(name, 100_000_000)))
		require.ErrorIs(t, err, tool.Deadline)
		assert.Len(t, outcome.HostCalls, tool.MaxHostCalls)
		assert.Greater(t, outcome.Usage.HostCalls, int64(tool.MaxHostCalls), "control: there were more")
		assert.LessOrEqual(t, len(outcome.Denials), 1)
	}
	// Receipts of different names, too.
	var many []string
	for i := range 100 {
		many = append(many, asks(fmt.Sprint("denied_", i)))
	}
	outcome := h.mustCall(t, "outer", steps(many...))
	require.Len(t, outcome.Denials, 32)
	assert.Equal(t, "denied_0", outcome.Denials[0].Value)
	assert.Equal(t, "denied_99", outcome.Denials[31].Value)
}

// TestAttackCalleeSpins: a callee that runs past its caller's deadline is stopped with it.
func TestAttackCalleeSpins(t *testing.T) {
	const deadline, promised, attempts = 200 * time.Millisecond, 100 * time.Millisecond, 5
	h := newHousehold(t, Options{})
	h.add(t, "outer", "limits: {timeout: 200ms}", "middle", "detached")
	h.add(t, "middle", "", "spinner")
	spinner := h.load(t, named(t, "spinner", spinning, "limits: {timeout: 2s}"), manifests.Grants{})
	h.tools["detached"] = goTool(func(_ context.Context, made tool.Invocation) (tool.Outcome, error) {
		return spinner.Invoke(t.Context(), made) // not in the caller's context: nothing ties it to the caller
	})
	took := func(name string) time.Duration {
		began := time.Now()
		_, err := h.call(t, "outer", steps(asks(name, asks("spinner"))))
		require.ErrorIs(t, err, tool.Deadline)
		return time.Since(began)
	}
	best := took("middle")
	for i := 1; i < attempts && best > deadline+promised; i++ {
		best = min(best, took("middle"))
	}
	assert.LessOrEqual(t, best, deadline+promised)
	assert.Zero(t, inside(h.runtime.gate))
	assert.Greater(t, took("detached"), 2*time.Second, "control: else it spins on")
}

// TestAttackFuelLaundering: the work of other tools for a tool is charged to it, however many calls are between them.
// The record does not count it as the tool's own work.
func TestAttackFuelLaundering(t *testing.T) {
	const limit = 20_000_000
	h := newHousehold(t, Options{})
	elsewhere := newHousehold(t, Options{})
	h.add(t, "outer", fmt.Sprintf("limits: {fuel: %d}", limit), "worker", "relay", "fan", "remote")
	h.add(t, "relay", "", "worker")
	worker := h.add(t, "worker", "")
	h.tools["remote"] = elsewhere.add(t, "remote", "")
	h.tools["fan"] = goTool(func(ctx context.Context, made tool.Invocation) (tool.Outcome, error) {
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				arguments, err := made.Arguments.MarshalJSON()
				assert.NoError(t, err)
				_, err = made.Host.Call(ctx, tool.Call{Function: tool.Function{Name: "worker", Arguments: string(arguments)}})
				assert.NoError(t, err)
			})
		}
		group.Wait()
		return tool.Outcome{Result: tool.Result{Success: true}}, nil
	})
	const much, little = `{"do":"burn","count":100000000}`, `{"do":"burn","count":100000}`
	for name, step := range map[string]string{
		"one call": asks("worker", much), "many calls": asksOften("worker", 1000, little), "through a relay": asks("relay", asks("worker", much)),
		"often through a relay": asksOften("relay", 1000, asks("worker", little)), "at once": asks("fan", much), "in another runtime": asks("remote", much),
	} {
		h.records = nil
		outcome, err := h.call(t, "outer", steps(step))
		require.ErrorIs(t, err, tool.Fuel, name)
		assert.Equal(t, "the tool used up its fuel of 20000000 instructions", outcome.Result.Error)
		total := *outcome.Usage.Fuel
		for _, record := range h.records {
			if record.Usage.Fuel != nil {
				total += *record.Usage.Fuel
			}
		}
		assert.LessOrEqual(t, total, int64(limit), name)
		assert.Greater(t, total, int64(limit*9/10), "%s: all of it could be used", name)
		assert.Less(t, *outcome.Usage.Fuel, total, name)
		require.NotEmpty(t, h.records, name)
		if name == "one call" {
			assert.Contains(t, h.records[0].Result.Error, "instructions of fuel that its caller had left")
		}
	}
	outcome := mustInvoke(t, worker, steps(much))
	assert.Greater(t, *outcome.Usage.Fuel, int64(10*limit), "control: without a caller it may")
}

// A caller pays for work of a callee that is in no record: work before a trap, and work after the callee has used up
// its own limit. Both were nearly free: a caller with a limit of 200,000 units had 267 million done.
func TestAttackUncountedFuel(t *testing.T) {
	const limit, rounds, unitsPerRound = 200_000, 3200, 5
	padding := strings.Repeat("\x01", 300) // makes the bound of the local counter larger
	for _, test := range []struct {
		name, body, extra string
	}{
		{"it traps", loop(rounds) + "\x00" + padding, ""},
		{"it has little fuel", loop(rounds) + padding, "limits: {fuel: 20}"},
		{"control: it is counted", loop(rounds) + padding, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHousehold(t, Options{})
			h.load(t, named(t, "worker", bare(test.body), test.extra), manifests.Grants{})
			request := `{"name":"worker","arguments":{}}`
			forever := "\x1a\x03\x40" + callOf(request) + "\x1a\x0c\x00\x0b" // drop, loop call, drop, br 0 end
			h.load(t, named(t, "outer", requestingThen(request, forever), fmt.Sprintf("limits: {fuel: %d}\npermissions: {tools: [worker]}", limit)), calling("worker"))
			_, err := h.call(t, "outer", "{}")
			require.ErrorIs(t, err, tool.Fuel)
			assert.NotEmpty(t, h.records)
			assert.LessOrEqual(t, len(h.records), limit/(rounds*unitsPerRound)+1)
		})
	}
}

// TestFuelOfCallersIsExact: equal calls take equal fuel, their own and together, and one unit
// less than that is too little.
func TestFuelOfCallersIsExact(t *testing.T) {
	h := newHousehold(t, Options{})
	h.load(t, named(t, "worker", looping(300_000), ""), manifests.Grants{})
	spent := func(fuel int64) (own, all int64, err error) {
		h.records = nil
		m := named(t, "outer", requesting(`{"name":"worker","arguments":{}}`, 3, 200_000), fmt.Sprintf("limits: {fuel: %d}\npermissions: {tools: [worker]}", fuel))
		h.load(t, m, calling("worker"))
		outcome, err := h.call(t, "outer", "{}")
		own = *outcome.Usage.Fuel
		all = own
		for _, record := range h.records {
			all += *record.Usage.Fuel
		}
		return own, all, err
	}
	own, all, err := spent(1 << 40)
	require.NoError(t, err)
	require.Len(t, h.records, 3)
	require.Greater(t, all, own+3*300_000)
	again, allAgain, err := spent(all)
	require.NoError(t, err, "the fuel that it used is enough")
	assert.Equal(t, own, again)
	assert.Equal(t, all, allAgain)
	_, most, err := spent(all - 1)
	require.ErrorIs(t, err, tool.Fuel, "and one unit less is not")
	assert.LessOrEqual(t, most, all-1)
	assert.Len(t, h.records, 3)
}

// TestAttackNestedRecursion: a stack overflow ends the call that caused it, at each level of
// nesting.
func TestAttackNestedRecursion(t *testing.T) {
	h := newHousehold(t, Options{})
	h.add(t, "outer", "", "outer", "recursive")
	h.load(t, named(t, "recursive", recursive, ""), manifests.Grants{})
	step := asks("recursive")
	for range 4 {
		step = fmt.Sprintf(`%s,%s`, asks("outer", step), asksOften("recursive", 1))
	}
	h.mustCall(t, "outer", steps(step))
	traps := 0
	for _, record := range h.records {
		if record.Call.Function.Name == "recursive" {
			assert.Equal(t, tool.Result{Error: "the tool crashed: stack overflow", Kind: tool.Trap}, record.Result)
			traps++
		}
	}
	assert.Equal(t, 5, traps)
}

// TestSecretOfACalleeStaysWithTheHost: a callee's record shows its caller no secret, not even one
// that the callee itself has learned.
func TestSecretOfACalleeStaysWithTheHost(t *testing.T) {
	grant := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Key")) })
	asksBoth := "permissions: {secrets: [{name: KEY, header: X-Key, host: api.example.com}], network: [{host: api.example.com}]}\n"
	quoted := encode(t, secretValue)
	for name, test := range map[string]struct{ module, more, arguments string }{
		"echoed by a server":   {netprobe, "", steps(`{"do":"net","requests":[` + get("https://api.example.com/") + `]}`)},
		"output":               {probe, "", `{"do":"print","text":` + string(quoted) + `,"times":1}`},
		"data":                 {probe, "module: {path: guest.wasm, stdout: json}\n", `{"do":"print","text":"{\"key\":\"` + secretValue + `\"}","times":1}`},
		"error":                {probe, "module: {path: guest.wasm, stdout: result}\n", `{"do":"print","text":"{\"success\":false,\"error\":\"` + secretValue + `\"}","times":1}`},
		"receipt of a secret":  {netprobe, "", steps(`{"do":"secret","name":` + string(quoted) + `}`)},
		"receipt of a request": {netprobe, "", steps(`{"do":"net","requests":[` + get("https://denied.example/"+url.PathEscape(secretValue)) + `]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, has := range []bool{true, false} {
				value := secretValue
				if !has { // the control: another value is not a secret of the tool's
					value = "an0ther/+value=of 24 byte"
				}
				h := newHousehold(t, Options{LookupEnv: func(string) (string, bool) { return value, true }})
				secret := manifests.SecretGrant{Name: "KEY", From: manifests.SecretSource{Env: "KEY"}, Host: "api.example.com"}
				callee := h.load(t, named(t, "callee", test.module, test.more+asksBoth), manifests.Grants{
					Network: []manifests.NetworkGrant{grant}, Secrets: []manifests.SecretGrant{secret},
				})
				require.NoError(t, callee.Prepare(t.Context())) // or it would be compiled in the time of the outer call
				h.add(t, "outer", "", "courier")
				// The courier returns the callee's result and denials in its own record.
				h.tools["courier"] = goTool(func(ctx context.Context, made tool.Invocation) (tool.Outcome, error) {
					record, err := made.Host.Call(ctx, tool.Call{Function: tool.Function{Name: "callee", Arguments: test.arguments}})
					assert.NoError(t, err)
					assert.NotEmpty(t, record.Result)
					return tool.Outcome{Result: record.Result, Denials: record.Denials}, nil
				})
				outcome := h.mustCall(t, "outer", steps(`{"do":"raw","text":"{\"name\":\"courier\",\"arguments\":{}}"}`))
				h.records[0].Function.Arguments = "" // the courier's text
				stored := encode(t, h.records[0])
				seen := encode(t, outcome)
				masked := has || name == "echoed by a server"
				assertHolds(t, !masked, secretValue, string(stored)+string(seen), "the records")
				assert.Equal(t, masked, strings.Contains(string(seen), "[secret KEY]"), string(seen))
			}
		})
	}
}

// TestSecretDoesNotLeaveInArguments: nor does a guest hand one on to a tool that may send it
// anywhere.
func TestSecretDoesNotLeaveInArguments(t *testing.T) {
	for _, has := range []bool{true, false} {
		h := newHousehold(t, Options{LookupEnv: func(string) (string, bool) { return secretValue, has }})
		m := named(t, "outer", callprobe, "permissions: {tools: [other], secrets: [{name: KEY, header: X-Key, host: api.example.com}], network: [{host: api.example.com}]}")
		secret := manifests.SecretGrant{Name: "KEY", From: manifests.SecretSource{Env: "KEY"}, Host: "api.example.com"}
		h.load(t, m, manifests.Grants{Calls: calling("other").Calls, Secrets: []manifests.SecretGrant{secret}})
		var given string
		h.tools["other"] = goTool(func(_ context.Context, made tool.Invocation) (tool.Outcome, error) {
			text, err := made.Arguments.MarshalJSON()
			given = string(text)
			return tool.Outcome{Result: tool.Result{Success: true}}, err
		})
		outcome := h.mustCall(t, "outer", steps(`{"do":"call","name":"other","arguments":{"key":"`+secretValue+`"}}`, asks(secretValue)))
		assertHolds(t, !has, secretValue, given, "the arguments")
		receipt := outcome.Denials[0].Value + outcome.HostCalls[1].Target
		assertHolds(t, !has, secretValue, receipt, "the receipt")
	}
}
