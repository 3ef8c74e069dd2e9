package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/server/auth"
)

const tokenHelp = `A token lets a program use "caisson serve". It sets the tenant of the program's calls (the
customer or team for which they are made), the actions that the program may take (scopes),
and context values of the calls. Only a digest of a token is stored, in the state folder, or
in the database of --ledger, which servers can share.

Once there is a token, even a revoked one, each request to "caisson serve" with the same
state folder or database must have one. A server that is running without tokens requires
them within a second after the first is created.`

const tokenCreateHelp = `Create a token, and print it. It cannot be printed again, because only its digest is
stored.

Scopes:
  read     see tools, agents, and the calls and runs of the tenant
  call     call tools
  approve  approve and refuse calls that need it
  admin    change the tenant's agents (a token that --agent limits to one agent cannot);
           without --tenant, also read the metrics of all tenants`

const tokenExample = `  caisson token create --name "the wiki" --tenant acme --scope read --scope call
  caisson token create --name billing --tenant acme --context project_id=billing --agent clerk --expires 720h`

func newToken(o options) *cobra.Command {
	return newGroup("token", "decide who may use \"caisson serve\"", tokenHelp, "create, list or revoke",
		newTokenCreate(o), newTokenList(o), newTokenRevoke(o))
}

// defaultExpiry is the lifetime of a token unless --expires sets it.
const defaultExpiry = 90 * 24 * time.Hour

func newTokenCreate(o options) *cobra.Command {
	var name, user string
	var scopes []string
	expires := defaultExpiry
	command := &cobra.Command{
		Use: "create", Short: "create a token", Long: tokenCreateHelp, Example: tokenExample, Args: positional(0, 0, ""),
		RunE: func(command *cobra.Command, _ []string) error {
			token := auth.Token{Name: name, Tenant: o.tenant, User: user, Agent: o.agent, Context: map[string]string{}}
			if len(scopes) == 0 {
				token.Scopes = []auth.Scope{auth.Read, auth.Call}
			}
			for _, scope := range scopes {
				token.Scopes = append(token.Scopes, auth.Scope(scope))
			}
			for _, value := range o.context {
				token.Context[value.key] = value.value
			}
			if expires > 0 {
				token.Expires = time.Now().Add(expires).Truncate(time.Second)
			}
			return o.tokenCreate(command.Context(), token)
		},
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "", "say what the token is for, in one line `TEXT`")
	flags.StringVar(&user, "user", "", "make calls with this token for the user `NAME`")
	flags.StringArrayVar(&scopes, "scope", nil,
		"let the program do `SCOPE`: read, call, approve or admin; repeatable (default read and call)")
	flags.Func("expires",
		"the token expires after `DURATION`, such as 24h; never means that it does not expire (default 2160h, 90 days)",
		func(text string) (err error) {
			if text == "never" {
				expires = 0
				return nil
			}
			if expires, err = parseDuration(text); err != nil {
				err = fmt.Errorf("%w, or never", err)
			}
			return err
		})
	flags.Func("context", "set the context value `KEY=VALUE`, such as project_id=demo, for the token's calls; repeatable",
		o.addContext)
	flags.StringVar(&o.agent, "agent", "",
		"limit the tools to those of the tenant's agent `NAME`; see \"caisson agent --help\"")
	o.tenantFlag(command, "calls with the token are made for the tenant `NAME`")
	o.stateFlag(command, "store tokens in `DIR`")
	o.ledgerFlag(command, "store tokens")
	o.outputFlags(command, "print one JSON object")
	_ = command.RegisterFlagCompletionFunc("scope",
		cobra.FixedCompletions([]cobra.Completion{"read", "call", "approve", "admin"}, cobra.ShellCompDirectiveNoFileComp))
	o.completes(command)
	return command
}

func newTokenList(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "list", Short: "list the tokens",
		Long: "List all tokens, including those that expired or were revoked. Their texts are not stored.",
		Args: positional(0, 0, ""),
		RunE: func(command *cobra.Command, _ []string) error { return o.tokenList(command.Context()) },
	}
	o.command = command
	o.stateFlag(command, "tokens are stored in `DIR`")
	o.ledgerFlag(command, "tokens are stored")
	o.outputFlags(command, "print one JSON array")
	return command
}

func newTokenRevoke(o options) *cobra.Command {
	command := &cobra.Command{
		Use: "revoke ID", Short: "make a token stop working",
		Long: "Make a token stop working within a second, also in a server that is running: calls made\nwith the token are " +
			"cancelled, and its streams end. Runs that were started with it\n(POST /v1/runs) continue.\n\n" +
			"\"caisson token list\" shows the ID.",
		Args: positional(1, 1, "the ID of a token"),
		RunE: func(command *cobra.Command, args []string) error { return o.tokenRevoke(command.Context(), args[0]) },
	}
	o.stateFlag(command, "tokens are stored in `DIR`")
	o.ledgerFlag(command, "tokens are stored")
	o.outputFlags(command, "print one JSON object")
	command.ValidArgsFunction = func(command *cobra.Command, _ []string, _ string) (ids []cobra.Completion,
		_ cobra.ShellCompDirective) {
		var all []auth.Token
		_ = o.withTokens(command.Context(), func(tokens *auth.Tokens) (err error) { // without any, it completes nothing
			all, err = tokens.List(command.Context())
			return err
		})
		for _, t := range all {
			if t.Revoked.IsZero() {
				ids = append(ids, cobra.CompletionWithDesc(t.ID, terminal.EscapeLine(t.Name)))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	return command
}

// withTokens opens the tokens while work runs.
func (o *options) withTokens(ctx context.Context, work func(tokens *auth.Tokens) error) error {
	tokens, err := o.openTokens(ctx)
	if err != nil {
		return err
	}
	err = work(tokens)
	return o.tokenProblem(cmp.Or(err, tokens.Close()))
}

func (o *options) openTokens(ctx context.Context) (*auth.Tokens, error) {
	state, url, err := o.storedIn(ledger.TokenKind)
	if err != nil {
		return nil, err
	}
	tokens, err := auth.Open(ctx, state, url)
	return tokens, o.tokenProblem(err)
}

func (o *options) tokenProblem(err error) error {
	invalid, isInvalid := errors.AsType[*auth.Error](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrUnknown):
		return failed(exitUsage, "there is no token with this id", `"caisson token list" shows the ids`)
	case isInvalid:
		return failedEach(invalid.Problems)
	case errors.Is(err, auth.ErrDamaged):
		return failed(exitFailed, err.Error(), `revoke it with "caisson token revoke ID", and create the token again`)
	}
	return o.storeProblem(err)
}

func (o *options) tokenCreate(ctx context.Context, token auth.Token) error {
	var text string
	var made auth.Token
	err := o.withTokens(ctx, func(tokens *auth.Tokens) (err error) {
		text, made, err = tokens.Create(ctx, token)
		return err
	})
	if err != nil {
		return err
	}
	err = o.show(struct {
		Text string `json:"token"`
		auth.Token
	}{text, made}, text+"\n")
	until := "does not expire"
	if !made.Expires.IsZero() {
		until = "expires " + made.Expires.Local().Format("2 January 2006, 15:04")
	}
	o.hint("this is the only time that the token is shown; it " + until)
	return err
}

func (o *options) tokenList(ctx context.Context) error {
	var all []auth.Token
	err := o.withTokens(ctx, func(tokens *auth.Tokens) (err error) {
		all, err = tokens.List(ctx)
		return err
	})
	if all == nil {
		return err
	}
	rows := [][]string{{"ID", "NAME", "TENANT", "SCOPES", "STATE"}}
	for _, t := range all {
		var scopes []string
		for _, scope := range t.Scopes {
			scopes = append(scopes, string(scope))
		}
		rows = append(rows, []string{t.ID, terminal.Clip(t.Name, 24), terminal.Clip(t.Tenant, 16), strings.Join(scopes, ","),
			tokenState(t, time.Now())})
	}
	text := terminal.Aligned(rows)
	if len(all) == 0 {
		text = ""
		o.hint(`there are no tokens; "` + o.repeatFlags("caisson token create --name TEXT", ledgerNames...) + `" creates one`)
	}
	return cmp.Or(o.show(all, text), err)
}

// tokenState says whether a token works, and until when.
func tokenState(t auth.Token, now time.Time) string {
	day := func(at time.Time) string { return at.Local().Format(time.DateOnly) }
	switch {
	case !t.Revoked.IsZero():
		return "revoked " + day(t.Revoked)
	case t.Expires.IsZero():
		return "works"
	case !t.Expires.After(now):
		return "expired " + day(t.Expires)
	}
	return "until " + day(t.Expires)
}

func (o *options) tokenRevoke(ctx context.Context, id string) error {
	var revoked auth.Token
	err := o.withTokens(ctx, func(tokens *auth.Tokens) (err error) {
		revoked, err = tokens.Revoke(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	return o.show(revoked, fmt.Sprintf("revoked: %s %s\n", revoked.ID, terminal.EscapeLine(revoked.Name)))
}

// tokensInUse opens the tokens, or returns nil without a ledger. open is set if none was ever created.
func (o *options) tokensInUse(ctx context.Context) (tokens *auth.Tokens, open bool, err error) {
	if _, _, err := o.storedIn(ledger.TokenKind); err != nil {
		return nil, false, nil //nolint:nilerr // without a state folder there are no tokens
	}
	if tokens, err = o.openTokens(ctx); err != nil {
		return nil, false, err
	}
	all, err := tokens.List(ctx)
	if err != nil {
		return nil, false, o.tokenProblem(cmp.Or(err, tokens.Close()))
	}
	if len(all) > 0 && !slices.ContainsFunc(all, func(t auth.Token) bool {
		return tokenState(t, time.Now()) == "works" || strings.HasPrefix(tokenState(t, time.Now()), "until")
	}) {
		o.hint("all tokens have expired or were revoked, so every request is refused")
	}
	return tokens, len(all) == 0, nil
}
