package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-run/caisson/internal/terminal"
	"github.com/caisson-run/caisson/server/auth"
)

const tokenHelp = `A token lets a program use "caisson serve". It sets the tenant of the program's calls, the
actions that the program may take (scopes), and context values of the calls. Only a digest
of a token is stored, in the state folder, in files that only the current user can read.

Once there is a token, even a revoked one, each request to "caisson serve" with the same
state folder must have one. A server that is running without tokens requires them within a
second after the first is created.`

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
		RunE: func(*cobra.Command, []string) error {
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
			return o.tokenCreate(token)
		},
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "", "say what the token is for, in one line `TEXT`")
	flags.StringVar(&user, "user", "", "make calls with this token for the user `NAME`")
	flags.StringArrayVar(&scopes, "scope", nil,
		"let the program do `SCOPE`: read, call, approve or admin; repeatable (default read and call)")
	flags.Func("expires",
		"let the token work for `DURATION`, such as 24h, or never for a token that does not expire (default 2160h, 90 days)",
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
		RunE: func(*cobra.Command, []string) error { return o.tokenList() },
	}
	o.command = command
	o.stateFlag(command, "tokens are stored in `DIR`")
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
		RunE: func(_ *cobra.Command, args []string) error { return o.tokenRevoke(args[0]) },
	}
	o.stateFlag(command, "tokens are stored in `DIR`")
	o.outputFlags(command, "print one JSON object")
	command.ValidArgsFunction = func(*cobra.Command, []string, string) (ids []cobra.Completion,
		_ cobra.ShellCompDirective) {
		tokens, err := o.tokens()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, _ := tokens.List() // without readable tokens, it completes nothing
		for _, t := range all {
			if t.Revoked.IsZero() {
				ids = append(ids, cobra.CompletionWithDesc(t.ID, terminal.EscapeLine(t.Name)))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	return command
}

func (o *options) tokens() (*auth.Tokens, error) {
	dir, err := o.stateFolderOf("tokens")
	if err != nil {
		return nil, err
	}
	return auth.In(dir), nil
}

func tokenProblem(err error) error {
	invalid, isInvalid := errors.AsType[*auth.Error](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrUnknown):
		return failed(exitUsage, "there is no token with this id", `"caisson token list" shows the ids`)
	case isInvalid:
		return failedEach(invalid.Problems)
	case errors.Is(err, auth.ErrDamaged):
		return failed(exitFailed, err.Error(),
			"remove the file, which is in the folder \"tokens\" of the state folder, and create the token again")
	case errors.Is(err, syscall.ENOSPC):
		return failed(exitFailed, err.Error(), "make room on the disk")
	}
	return failed(exitFailed, err.Error(), "name another folder with --state-dir DIR")
}

func (o *options) tokenCreate(token auth.Token) error {
	tokens, err := o.tokens()
	if err != nil {
		return err
	}
	text, made, err := tokens.Create(token)
	if err != nil {
		return tokenProblem(err)
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

func (o *options) tokenList() error {
	tokens, err := o.tokens()
	if err != nil {
		return err
	}
	all, err := tokens.List()
	if all == nil {
		return tokenProblem(err)
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
		o.hint(`there are no tokens; "` + o.repeatFlags("caisson token create --name TEXT", "state-dir") + `" creates one`)
	}
	if shown := o.show(all, text); shown != nil {
		return shown
	}
	return tokenProblem(err)
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

func (o *options) tokenRevoke(id string) error {
	tokens, err := o.tokens()
	if err != nil {
		return err
	}
	revoked, err := tokens.Revoke(id)
	if err != nil {
		return tokenProblem(err)
	}
	return o.show(revoked, fmt.Sprintf("revoked: %s %s\n", revoked.ID, terminal.EscapeLine(revoked.Name)))
}

// tokensInUse returns the tokens, or nil without a state folder. open is set if none was ever created.
func (o *options) tokensInUse() (_ *auth.Tokens, open bool, err error) {
	tokens, err := o.tokens()
	if err != nil {
		return nil, false, nil //nolint:nilerr // without a state folder there are no tokens
	}
	all, err := tokens.List()
	if err != nil {
		return nil, false, tokenProblem(err)
	}
	if len(all) > 0 && !slices.ContainsFunc(all, func(t auth.Token) bool {
		return tokenState(t, time.Now()) == "works" || strings.HasPrefix(tokenState(t, time.Now()), "until")
	}) {
		o.hint("all tokens have expired or were revoked, so every request is refused")
	}
	return tokens, len(all) == 0, nil
}
