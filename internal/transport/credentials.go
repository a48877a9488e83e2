package transport

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// This file owns the user and password with which a connection logs in.

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
	return authenticate(user, password), err
}

// authenticate is the AUTH for a user and a password; nil without a password,
// because there is no such AUTH. A node that wants none admits the client by
// its PING.
func authenticate(user, password string) []string {
	switch {
	case password == "":
		return nil
	case user == "":
		return []string{"AUTH", password}
	default:
		return []string{"AUTH", user, password}
	}
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
