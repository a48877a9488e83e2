package transport

// This file owns how a node lets a connection in: user and password, database,
// name.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/quorate/quorate/internal/resp"
)

// loginStep is a command by which the node lets the connection in. The node
// must accept it. Exceptions: see accepts.
type loginStep struct {
	words []string
	hello bool // HELLO 3, which the node may refuse
}

// login returns the commands that authenticate a connection, choose its
// database and name it. The node must accept each. PING shows whether the node
// admits a client that gives no password. HELLO does not authenticate: every
// version understands AUTH (see upgrade). So all go out together.
func login(ctx context.Context, o *redis.Options) ([]loginStep, error) {
	auth, err := within(ctx, func() ([]string, error) { return resolve(ctx, o) }, func([]string) {})
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	var steps []loginStep
	if auth != nil {
		steps = append(steps, loginStep{words: auth})
	}
	if o.DB > 0 {
		steps = append(steps, loginStep{words: []string{"SELECT", strconv.Itoa(o.DB)}})
	}
	steps = append(steps, loginStep{words: []string{"CLIENT", "SETNAME", cmp.Or(o.ClientName, defaultName)}})
	return append(steps, loginStep{words: []string{"PING"}}), nil
}

// defaultName is what CLIENT LIST shows for a connection.
const defaultName = "quorate"

// accepts reports whether a node that answers a step with this error may be
// used all the same: it needs no password, speaks no RESP3, or lets nobody name
// a connection. A name that cannot be one is the caller's mistake.
func (s loginStep) accepts(err error) bool {
	refused, is := errors.AsType[resp.Error](err)
	naming := s.words[0] == "CLIENT" && !strings.HasPrefix(string(refused), "ERR Client names")
	return is && (s.hello || naming || needless(refused))
}

func appendSteps(out []byte, login []loginStep) []byte {
	for _, s := range login {
		out = resp.AppendCommand(out, s.words...)
	}
	return out
}

// needless reports whether a node refuses a password because it wants none. It
// then admits every client, so the refusal is no error. (go-redis authenticates
// by HELLO, which accepts any password there.)
func needless(refused error) bool {
	return strings.HasPrefix(refused.Error(), "ERR AUTH <password> called without any password configured")
}

// resolve returns the command that authenticates the next connection, from the
// first of the sources that go-redis would ask; nil: none is needed. A provider
// is the owner's code and may hang: login calls resolve by way of within.
func resolve(ctx context.Context, o *redis.Options) (auth []string, err error) {
	user, password := o.Username, o.Password
	switch {
	case o.StreamingCredentialsProvider != nil:
		user, password, err = streamed(o.StreamingCredentialsProvider)
	case o.CredentialsProviderContext != nil:
		user, password, err = o.CredentialsProviderContext(ctx)
	case o.CredentialsProvider != nil:
		user, password = o.CredentialsProvider()
	}
	switch {
	case password == "": // there is no such AUTH; a node that wants none admits the client by its PING
		return nil, err
	case user == "":
		return []string{"AUTH", password}, err
	}
	return []string{"AUTH", user, password}, err
}

// ErrCredentials says that a node has refused credentials that may change: the
// client has a provider, and the next attempt to connect asks it again. A token
// that has expired, or that the node does not know yet, passes in this way.
var ErrCredentials = errors.New("the client's provider of credentials is asked again")

// provided reports whether the credentials of the next connection may be others.
func (d *dialer) provided() bool {
	o := d.to()
	return o != nil && (o.StreamingCredentialsProvider != nil || o.CredentialsProviderContext != nil || o.CredentialsProvider != nil)
}

// badCredentials reports whether a node refuses a connection for its user or
// password.
func badCredentials(err error) bool {
	refused, _ := errors.AsType[resp.Error](err)
	return refused.Code() == "WRONGPASS" || refused.Code() == "NOAUTH" || strings.HasPrefix(string(refused), "ERR invalid password")
}

// streamed asks a streaming provider for its present credentials. What it says
// later counts from the next connection on, as with other providers: a node
// that ends connections whose credentials are over has one come at once.
func streamed(p auth.StreamingCredentialsProvider) (user, password string, err error) {
	current, unsubscribe, err := p.Subscribe(ignored{})
	if err != nil {
		return "", "", err
	}
	if unsubscribe != nil {
		err = unsubscribe()
	}
	user, password = current.BasicAuth()
	return user, password, err
}

// ignored takes what a provider says beside that.
type ignored struct{}

func (ignored) OnNext(auth.Credentials) {}
func (ignored) OnError(error)           {}
