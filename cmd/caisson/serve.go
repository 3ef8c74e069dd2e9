package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/server"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/server/metrics"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/server/sessions"
)

const serveHelp = `Serve the tools over HTTP: to MCP clients under /mcp, and to programs in any language
under /v1, as /openapi.json describes. Flags and the policy decide which tools it serves
and what these may do. No request can change that.

Without tokens, the server accepts every caller on this machine, and listens on no address
that other machines can reach. When you create the first token with "caisson token create",
the server requires tokens; a server that is already running does so within a second. From
then on, each request must have a token:

  Authorization: Bearer TOKEN

The token sets the tenant of a call, and context values in addition to those of --context.
GET /healthz and /readyz need no token. GET /metrics, for Prometheus, needs one with the
scope admin and without a tenant.

At a signal (SIGINT, SIGTERM, SIGHUP), the server accepts no new calls. Running calls have
the time of --drain, and are then cancelled. Every request is answered before the server
ends. Started with nohup, it ignores SIGHUP.

A sample of the errors and of the refused requests is logged to standard error. --verbose
adds a log of each step.

` + keptHelp

const serveExample = `  caisson serve --tools ./wasm-tools
  caisson serve --config caisson.yaml --addr :8711 --tls-cert cert.pem --tls-key key.pem --host tools.example.com`

// serveOptions are the flags of the command.
type serveOptions struct {
	options
	server.Options
	certificate, key string
	loaded           int // how many tools the flags and the policy have loaded
}

func newServe(given options) *cobra.Command {
	o := serveOptions{options: given}
	command := &cobra.Command{
		Use:     "serve",
		Short:   "serve the tools over HTTP, to programs and MCP clients",
		Long:    serveHelp,
		Example: serveExample,
		Args:    positional(0, 0, ""),
		RunE:    func(command *cobra.Command, _ []string) error { return o.serve(command.Context()) },
	}
	flags := command.Flags()
	flags.Func("addr", "listen on `HOST:PORT`; an empty HOST means all addresses, which needs tokens (default "+
		server.DefaultAddr+")", parsedInto(&o.Addr, parseAddress))
	flags.StringArrayVar(&o.Hosts, "host", nil,
		"the DNS `NAME` under which clients reach the server, in addition to localhost; repeatable")
	flags.StringArrayVar(&o.Origins, "origin", nil,
		"let pages of `ORIGIN`, such as https://app.example.com, use the server from a browser; repeatable")
	flags.StringVar(&o.certificate, "tls-cert", "", "encrypt connections with the certificate in the PEM `FILE`")
	flags.StringVar(&o.key, "tls-key", "", "the private key of the --tls-cert certificate, in the PEM `FILE`")
	flags.Func("max-body",
		"refuse a request whose body is larger than `SIZE` (default 16MiB), takes longer than a minute to arrive, or would "+
			"make the bodies of its tenant's open requests together larger than four times SIZE",
		parsedInto(&o.Limits.BodyBytes, func(text string) (int64, error) {
			size, err := parseSize(text)
			return int64(size), err
		}))
	flags.Func("max-connections",
		"hold at most `N` connections at a time, and no more than three quarters of the descriptors that the process may "+
			"have (default 1024)", parsedInto(&o.Limits.Connections, parseCount))
	flags.Func("max-requests",
		"answer at most `N` requests of one tenant at a time, event streams included (default: a quarter of "+
			"--max-connections)", parsedInto(&o.Limits.Requests, parseCount))
	flags.Func("rate",
		"answer at most `N` requests per second for each token; a burst may have twice as many (default 200)",
		parsedInto(&o.Limits.Rate, parseRate))
	o.keepFlags(command)
	flags.Func("durability",
		"when to answer a call: the `MODE` full answers when its record is on the disk, relaxed before; after a crash with "+
			"relaxed, the newest read-only calls have no record, and the newest other calls have the kind unknown_outcome: "+
			"their result is unknown (default full)",
		parsedInto(&o.relaxed, func(text string) (bool, error) {
			if text != "full" && text != "relaxed" {
				return false, errors.New("it must be full or relaxed")
			}
			return text == "relaxed", nil
		}))
	o.stateKeyFlag(command, "stored runs are encrypted with the first key, and decrypted with any of them")
	flags.Func("drain", "when the server stops, give running calls the time `DURATION` (default 20s)",
		parsedInto(&o.Limits.Drain, parseDuration))
	o.runFlags(command, "each call", "64KiB",
		"store records for \"caisson explain\", agents and tokens in `DIR`; with \"\", nothing is stored unless --ledger "+
			"is given")
	flags.BoolVar(&o.quiet, "quiet", false, "print errors only: no hints, and no address")
	o.completes(command)
	return command
}

func (o *serveOptions) serve(ctx context.Context) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	o.imports = true
	if o.Tokens, o.Open, err = o.tokensInUse(ctx); err != nil {
		return err
	}
	if o.Tokens != nil {
		defer func() { err = cmp.Or(err, o.Tokens.Close()) }()
	}
	counted := metrics.New()
	h, err := o.open(ctx, openMode{serves: true, shared: o.hasTokens(), recorder: counted})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, h.close(ctx)) }()
	h.noteUnsentSecrets(nil)
	o.loaded = len(h.registry.List())
	if _, err := h.addOutputTool(); err != nil {
		return err
	}
	if err := h.asksOfTools(); err != nil {
		return err
	}
	if err := o.callers(h); err != nil {
		return err
	}
	return o.serveHost(ctx, h, counted.Handler(h.Load), h.serverLog(slog.LevelWarn))
}

// parseAddress refuses text that is clearly not an address to listen on. The server checks the rest.
func parseAddress(text string) (string, error) {
	switch {
	case isWhole(text):
		return "",
			fmt.Errorf("want HOST:PORT; write localhost:%s for this machine alone, or :%s for all addresses, which needs tokens",
				text, text)
	case !strings.Contains(text, ":"), strings.Contains(text, "/"):
		return "", errors.New("want HOST:PORT, such as " + server.DefaultAddr + " or [::1]:8711")
	}
	return text, nil
}

func parseCount(text string) (int, error) {
	most, err := strconv.Atoi(text)
	if err != nil || most < 1 {
		return 0, errors.New("want 1 or more")
	}
	return most, nil
}

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !(rate > 0) || rate > maxRate {
		return 0, fmt.Errorf("want more than 0, such as 0.5, and at most %d", maxRate)
	}
	return rate, nil
}

// maxRate is more requests a second than any machine answers.
const maxRate = 1_000_000

const pemHint = "name a PEM file with the certificate and its chain, and one with the private key"

// check completes the options that depend on several flags.
func (o *serveOptions) check() error {
	o.Limits.Burst = int(math.Ceil(2 * o.Limits.Rate))
	if (o.certificate == "") != (o.key == "") {
		return failed(exitUsage, "--tls-cert and --tls-key are needed together", pemHint)
	}
	if o.certificate == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(o.certificate, o.key)
	if err != nil {
		return failed(exitUsage, "--tls-cert and --tls-key: "+err.Error(), pemHint)
	}
	o.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return nil
}

// hasTokens reports whether there is a token when the server starts.
func (o *serveOptions) hasTokens() bool { return o.Tokens != nil && !o.Open }

// callers sets who may call the server, and the tenant, agent and context values of their calls.
func (o *serveOptions) callers(h *host) error {
	o.Local = auth.Caller{Tenant: o.tenant, Agent: o.agent, Context: h.operator.context}
	if o.Tokens == nil {
		return nil
	}
	o.Caller = h.callerOf
	err := h.keepsStoreFromTools(ledger.TokenKind, "it could create a token")
	switch {
	case err != nil && o.hasTokens():
		return err
	case err != nil: // no token counts, so that the first closes the server to all callers
		o.Caller = func(auth.Token) (auth.Caller, error) { return auth.Caller{}, err }
	}
	if o.Open {
		return nil
	}
	for _, flag := range []struct{ name, value string }{{"--tenant", o.tenant}, {"--agent", o.agent}} {
		if flag.value != "" {
			return failed(exitUsage,
				flag.name+" is for callers without a token, but there are tokens, so every caller needs one",
				`leave the flag out, or name a state folder without tokens with --state-dir DIR`)
		}
	}
	return nil
}

// callerOf returns the caller that a token identifies, with the context values of the command line. A token
// cannot set a value that the policy has from elsewhere, nor one that the command line sets.
func (h *host) callerOf(token auth.Token) (auth.Caller, error) {
	caller := token.Caller()
	values := maps.Clone(h.operator.context)
	for name, value := range token.Context {
		if source, named := h.operator.contextSource(name); named && source.From != manifests.FromToken {
			return auth.Caller{}, fmt.Errorf("the token %s sets the context value %s, and %s says that it comes from the %s",
				token.ID, name, source.Origin, source.From)
		}
		for other := range values {
			if strings.EqualFold(other, name) {
				return auth.Caller{}, fmt.Errorf("the token %s sets the context value %s, and so does --context", token.ID, name)
			}
		}
		if values == nil {
			values = map[string]string{}
		}
		values[name] = value
	}
	caller.Context = values
	return caller, nil
}

func (o *serveOptions) serveHost(ctx context.Context, h *host, metrics http.Handler, log *slog.Logger) (err error) {
	kept, agents, err := o.kept(ctx, h, log)
	if err != nil {
		return err
	}
	ending := context.WithoutCancel(ctx)
	defer func() { err = cmp.Or(err, kept.Close(ending)) }()
	if _, err := kept.Allowed(ctx, o.Local); err != nil {
		return o.agentProblem(err)
	}
	protocol, err := mcp.New(h.Host,
		mcp.Options{Sessions: kept, Version: readVersion().Version, Body: o.Limits.BodyBytes, Logger: log})
	if err != nil {
		return err
	}
	o.Metrics, o.Logger, o.Ready = metrics, log, h.canRecord
	s, err := o.server(h, kept, agents, protocol)
	if err != nil {
		return cmp.Or(o.serverProblem(err), protocol.Close(ending))
	}
	serving, stop := h.runaways.within(ctx)
	defer stop()
	err = s.Serve(serving, o.announce)
	if failure := h.runaways.failure(); failure != nil {
		return failure
	}
	return o.serverProblem(err)
}

// kept returns the sessions of callers, and the store of their agents, or nil without one.
func (o *serveOptions) kept(
	ctx context.Context, h *host, log *slog.Logger,
) (*sessions.Sessions, *agents.Store, error) {
	stored, err := h.agents(ctx)
	if err != nil {
		if o.agent != "" || o.hasTokens() {
			return nil, nil, err
		}
		stored = nil
	}
	kept, err := sessions.New(h.Host, sessions.Options{Agents: stored, Logger: log})
	return kept, stored, err
}

func (o *serveOptions) server(
	h *host, kept *sessions.Sessions, agents *agents.Store, protocol *mcp.Server,
) (*server.Server, error) {
	api, err := rest.New(h.Host, rest.Options{Sessions: kept, Agents: agents, Logger: o.Logger, Body: o.Limits.BodyBytes})
	if err != nil {
		return nil, err
	}
	return server.New(o.Options,
		server.Endpoint{Pattern: "/v1/", Handler: api, Drain: api.Close},
		server.Endpoint{Pattern: "/openapi.json", Handler: api},
		server.Endpoint{Pattern: "/mcp", Handler: protocol, Drain: protocol.Drain})
}

// canRecord returns why calls cannot be recorded now, or nil if they can, or are not to be.
func (h *host) canRecord(ctx context.Context) error {
	kept, err := h.Ledger(ctx)
	if kept == nil {
		return err
	}
	return kept.Check(ctx)
}

// announce prints where the server listens and who may connect.
func (o *serveOptions) announce(address net.Addr) {
	scheme, audience := "http", "everybody on this machine"
	if o.TLS != nil {
		scheme = "https"
	}
	if o.hasTokens() {
		audience = "callers with a token"
	}
	if !o.quiet {
		_, _ = fmt.Fprintf(o.stderr, "caisson: serving %s to %s at %s://%s\n", terminal.Count(o.loaded, "tool"), audience,
			scheme, address)
	}
	if tcp, ok := address.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && o.TLS == nil {
		o.hint("tokens and calls are not encrypted; use --tls-cert and --tls-key, or a proxy that encrypts")
	}
}

func (o *serveOptions) serverProblem(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if failure, ok := errors.AsType[*server.Error](err); ok {
		text = failure.Err.Error()
	}
	socket, isSocket := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, server.ErrOpen): // so the address is accepted, and has a port
		port := o.address()[strings.LastIndexByte(o.address(), ':'):]
		return failed(exitUsage, text,
			`create a token with "caisson token create", or listen on this machine alone with --addr localhost`+port)
	case errors.Is(err, server.ErrInvalidOptions):
		return failed(exitUsage, text, terminal.ToRun("caisson serve --help"))
	case isSocket && socket.Op == "listen":
		reason := socket.Err
		if call, ok := errors.AsType[*os.SyscallError](reason); ok {
			reason = call.Err
		}
		return failed(exitUsage, fmt.Sprintf("cannot listen on %s: %s", o.address(), reason),
			"listen on another address or port with --addr HOST:PORT, such as --addr localhost:8712, or with port 0 on any "+
				"that is free")
	}
	return failed(exitFailed, text)
}

func (o *serveOptions) address() string { return cmp.Or(o.Addr, server.DefaultAddr) }
