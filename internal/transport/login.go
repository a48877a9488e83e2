package transport

// The login to a node: user and password, database, and the name of the
// connection.

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

// loginStep is a command of the login. The node must accept it, with the
// exceptions in accepts.
type loginStep struct {
	words []string
	hello bool // HELLO 3, which the node may refuse
}

// login returns the commands that authenticate a connection, choose its
// database and name it. PING shows whether the node admits a client without a
// password. Authentication uses AUTH, which every version understands, and not
// HELLO (see upgrade). So all commands can be sent together.
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

// defaultName is the name that CLIENT LIST shows for a connection.
const defaultName = "quorate"

// accepts reports whether the node can be used although it answered the step
// with err: it needs no password, does not speak RESP3, does not let clients
// name their connections, or refuses PING because its disk is full, as it
// refuses writes. An invalid name is the caller's mistake.
func (s loginStep) accepts(err error) bool {
	refused, is := errors.AsType[resp.Error](err)
	naming := s.words[0] == "CLIENT" && !strings.HasPrefix(string(refused), "ERR Client names")
	full := s.words[0] == "PING" && refused.Code() == "MISCONF"
	return is && (s.hello || naming || full || needless(refused))
}

func appendSteps(out []byte, login []loginStep) []byte {
	for _, s := range login {
		out = resp.AppendCommand(out, s.words...)
	}
	return out
}

// needless reports whether a node refuses a password because it needs none.
// Such a node admits every client, so the refusal is not an error. (go-redis
// authenticates with HELLO, which accepts any password there.)
func needless(refused error) bool {
	return strings.HasPrefix(refused.Error(), "ERR AUTH <password> called without any password configured")
}

// resolve returns the command that authenticates the next connection, or nil if
// none is needed. It uses the first source that go-redis would use. A provider
// is the application's code and may hang, so login calls resolve through
// within.
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
	case password == "": // AUTH needs a password; PING shows whether the node admits the client without one
		return nil, err
	case user == "":
		return []string{"AUTH", password}, err
	}
	return []string{"AUTH", user, password}, err
}

// ErrCredentials says that a node refused credentials that may change: the
// client has a provider, and the next attempt to connect will ask it again.
// That helps if a token has expired, or if the node does not know it yet.
var ErrCredentials = errors.New("the client's provider of credentials is asked again")

// provided reports whether the credentials of the next connection may differ.
func (d *dialer) provided() bool {
	o := d.options()
	return o != nil && (o.StreamingCredentialsProvider != nil || o.CredentialsProviderContext != nil ||
		o.CredentialsProvider != nil)
}

// badCredentials reports whether a node refuses a connection because of its
// user or password.
func badCredentials(err error) bool {
	refused, _ := errors.AsType[resp.Error](err)
	return refused.Code() == "WRONGPASS" || refused.Code() == "NOAUTH" ||
		strings.HasPrefix(string(refused), "ERR invalid password")
}

// streamed asks a streaming provider for its current credentials. Later updates
// apply from the next connection on, as with other providers. If a node ends
// connections with expired credentials, the next connection follows at once.
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

// ignored discards a provider's updates.
type ignored struct{}

func (ignored) OnNext(auth.Credentials) {}
func (ignored) OnError(error)           {}
