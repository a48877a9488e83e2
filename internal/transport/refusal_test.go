package transport_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/resp"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// An answer to a login may quote the password: of a server without AUTH, of a
// proxy, of a node that lies. None of it is passed on, for commands, for pushes
// and by Sentinels, and what a server usually says is.
func TestAnswersThatQuoteThePassword(t *testing.T) {
	t.Parallel()
	for answer, says := range map[string]string{
		"ERR unknown command 'AUTH', with args beginning with: 'app' 's3cret'":    "ERR unknown command 'AUTH'",
		"ERR unknown command `AUTH`, with args beginning with: `app`, `s3cret`, ": "ERR unknown command 'AUTH'",
		"s3cret is your password":                  "withheld",
		"S3CRET":                                   "withheld",
		"s3cret":                                   "withheld",
		"ERR s3cret":                               "ERR (the server's text is withheld",
		"WRONGPASS s3cret":                         "WRONGPASS (the server's text is withheld",
		"NOPERM user s3cret may not":               "NOPERM this user has no permissions to run 'AUTH'",
		"ERR max number of clients reached":        "ERR max number of clients reached",
		"ERR invalid password s3cret":              "ERR invalid password",
		"NOAUTH Authentication required. (s3cret)": "NOAUTH Authentication required.",
		"DENIED Running in protected mode because protected mode is enabled and s3cret": "DENIED Running in protected mode",
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			addr := redistest.Answer(t, func([]string) string { return "-" + answer + "\r\n" })
			for _, client := range []redis.UniversalClient{
				redis.NewClient(&redis.Options{Addr: addr, Username: "app", Password: "s3cret"}),
				redis.NewClient(&redis.Options{Addr: addr, Username: "app", Password: "s3cret", Protocol: 2}),
				transport.NewSentinelClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{addr},
					SentinelUsername: "app", SentinelPassword: "s3cret"}),
			} {
				l := open(t, client, transport.Config{Stall: 5 * time.Second})
				err := l.State(time.Now()).Err
				assert.ErrorContains(t, err, says)
				assert.NotContains(t, strings.ToLower(err.Error()), "s3cret")
				require.NoError(t, shut(l))
				require.NoError(t, client.Close())
			}
		})
	}
}

// A cluster's client logs in by itself.
func TestClusterThatQuotesThePassword(t *testing.T) {
	t.Parallel()
	addr := redistest.Answer(t, func([]string) string {
		return "-ERR no such command: 'AUTH' 'app' 's3cret'\r\n"
	})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr},
		Username: "app", Password: "s3cret"})
	defer client.Close()
	l := open(t, client, transport.Config{Slot: "{t}", Stall: 5 * time.Second})
	err := l.State(time.Now()).Err
	assert.ErrorContains(t, err, "withheld")
	assert.NotContains(t, err.Error(), "s3cret")
	require.NoError(t, shut(l))
}

// What a server says before it ends the connection, whatever the first command,
// is the error, and no guess about TLS.
func TestServerThatTurnsAClientAway(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		"ERR max number of clients reached",
		"DENIED Redis is running in protected mode because protected mode is enabled",
	} {
		addr := redistest.Serve(t, func(nc net.Conn) {
			rd := resp.NewReader(nc)
			_, _ = rd.Read()
			_, _ = nc.Write([]byte("-" + says + "\r\n"))
		})
		for _, password := range []string{"", "secret"} {
			client := redis.NewClient(&redis.Options{Addr: addr, Password: password})
			l := open(t, client, transport.Config{Stall: 5 * time.Second})
			err := l.State(time.Now()).Err
			assert.ErrorContains(t, err, says)
			assert.NotContains(t, err.Error(), "TLS")
			require.NoError(t, shut(l))
			require.NoError(t, client.Close())
		}
	}
}
