package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate"
	"github.com/quorate/quorate/internal/e2e"
	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/mutex"
)

// guarded are three servers that a tenant reaches over TLS, with a password,
// and the test as well without. They have one certificate, which vouches for
// itself.
type guarded struct {
	*tenant
	addrs []string // for TLS
	pem   string   // the certificate's file
	pool  *x509.CertPool
}

func startTLS(t *testing.T) *guarded { return startTLSOn(t, 3) }

func startTLSOn(t *testing.T, n int) *guarded { return startTLSWith(t, n, "no") }

// startTLSWith starts servers that want a certificate of the client, or do not.
func startTLSWith(t *testing.T, n int, wanted string) *guarded {
	t.Helper()
	skipWithoutTLS(t)
	g := &guarded{}
	key := g.certify(t)
	var servers []*redistest.Server
	for range n {
		port := freePort(t)
		c := redistest.Start(t, 1, redistest.WithAOF("everysec"),
			redistest.WithArgs("--tls-port", port, "--tls-cert-file", g.pem,
				"--tls-key-file", key, "--tls-ca-cert-file", g.pem, "--tls-auth-clients", wanted))
		g.tenant = newTenant(t, c, "app", slices.Concat(needed, useful))
		g.addrs = append(g.addrs, net.JoinHostPort("127.0.0.1", port))
		servers = append(servers, c.Node(0))
	}
	g.servers = servers
	return g
}

// rediss are the URLs for a user with that password.
func (g *guarded) rediss(password string) []string {
	var urls []string
	for _, a := range g.addrs {
		urls = append(urls,
			(&url.URL{Scheme: "rediss", User: url.UserPassword(g.name, password), Host: a}).String())
	}
	return urls
}

// clients trust the certificate, as one does that is not among the system's.
func (g *guarded) clients(t *testing.T, password string) []redis.UniversalClient {
	t.Helper()
	var clients []redis.UniversalClient
	for _, u := range g.rediss(password) {
		o, err := redis.ParseURL(u)
		require.NoError(t, err)
		o.TLSConfig.RootCAs = g.pool
		c := redis.NewClient(o)
		t.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	return clients
}

// certify makes the certificate and returns the file of its key.
func (g *guarded) certify(t *testing.T) (keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	g.pool = x509.NewCertPool()
	g.pool.AddCert(cert)
	dir := t.TempDir()
	g.pem, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(g.pem,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile,
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	return keyFile
}

// freePort finds a port as redistest does, and reserves it in the same way.
func freePort(t *testing.T) string {
	t.Helper()
	for range 500 {
		port := strconv.Itoa(10_000 + mrand.IntN(22_000))
		addr := net.JoinHostPort("127.0.0.1", port)
		reservation, err := net.ListenPacket("udp4", addr)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = reservation.Close() })
		if probe, err := net.Listen("tcp4", addr); err == nil {
			_ = probe.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return ""
}

// skipWithoutTLS asks the server to start with TLS but without a certificate:
// one that can complains of that, one that cannot of the option.
func skipWithoutTLS(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), e2e.Patience)
	defer cancel()
	out, _ := exec.CommandContext(ctx, redistest.Binary, "--tls-port", "1", "--port",
		"0", "--dir", t.TempDir()).CombinedOutput()
	if !strings.Contains(string(out), "tls-cert-file") {
		t.Skip("redis-server is missing, or built without TLS")
	}
}

// Everything works over TLS, for a user with a password and no more rights than
// needed: with clients of the caller's, and in a process that trusts the
// certificate because its system does and has nothing but the URLs.
func TestTLS(t *testing.T) {
	g := startTLS(t)
	q, err := quorate.New(g.clients(t, "secret"), g.options()...)
	require.NoError(t, err)
	require.NoError(t, g.works(deadline(t), q))
	require.NoError(t, q.Close())

	// The worker uses the default prefix, which the tenant may not have.
	for _, s := range g.servers {
		require.NoError(t, s.Client().Do(t.Context(), "ACL", "SETUSER", "app",
			"~quorate:{*", "&quorate:push:*").Err())
	}
	q, err = quorate.New(g.clients(t, "secret"), e2e.Timing(time.Minute))
	require.NoError(t, err)
	require.NoError(t, q.Bootstrap(deadline(t)))
	require.NoError(t, q.Close())
	t.Setenv("SSL_CERT_FILE", g.pem)
	w := startWorkerAt(t, g.rediss("secret"),
		terms{Name: g.job("worker"), TTL: time.Minute, Guard: 2*time.Minute + 20*time.Millisecond})
	w.tell(t, "lock")
	token, _ := w.held(t)
	assert.NotZero(t, token)
	w.tell(t, "unlock")
	assert.Equal(t, "unlocked", w.answer(t))
}

// A server's certificate that no authority signed, or a wrong password, is
// reported at once, also to a caller that wants to lock.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	g := startTLS(t)
	otherServer := func() []redis.UniversalClient {
		g := *g
		g.pool = x509.NewCertPool()
		return g.clients(t, "secret")
	}
	for _, in := range []struct {
		what    string
		clients []redis.UniversalClient
		urls    []string
		says    string
	}{
		{"certificate", otherServer(), g.rediss("secret"), "certificate signed by unknown authority"},
		{"password", g.clients(t, "wrong"), nil, "WRONGPASS"},
	} {
		t.Run(in.what, func(t *testing.T) {
			q, err := quorate.New(in.clients, g.options()...)
			require.NoError(t, err)
			defer func() { _ = q.Close() }()
			_, err = q.Check(deadline(t))
			m := mutex.New(q, g.job("m"))
			all := []error{err, m.LockContext(deadline(t)), m.TryLockContext(deadline(t)), q.Bootstrap(deadline(t))}
			if in.urls != nil {
				_, err := quorate.Connect(deadline(t), in.urls, g.options()...)
				all = append(all, err)
			}
			for i, err := range all {
				require.ErrorIs(t, err, quorate.ErrNoQuorum, "%d", i)
				require.NotErrorIs(t, err, context.DeadlineExceeded, "%d", i)
				assert.ErrorContains(t, err, in.says, "%d", i)
				assert.ErrorContains(t, err, g.addrs[0], "%d", i)
			}
		})
	}

	// To speak TLS to a server that does not, or not to one that does, is
	// answered with nothing that makes sense: it is waited for until the
	// context ends.
	for _, u := range []string{"redis://app:secret@" + g.addrs[0],
		"rediss://app:secret@" + g.servers[0].Addr()} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := quorate.Connect(ctx, []string{u},
			append(g.options(), quorate.WithNodeTimeout(100*time.Millisecond))...)
		cancel()
		require.ErrorIs(t, err, quorate.ErrNoQuorum)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

// A server that wants a certificate of the client refuses one without it, which
// is reported at once.
func TestTLSWithoutCertificate(t *testing.T) {
	t.Parallel()
	g := startTLSWith(t, 1, "yes")
	q, err := quorate.New(g.clients(t, "secret"), g.options()...)
	require.NoError(t, err)
	defer func() { _ = q.Close() }()
	ctx := deadline(t)
	err = mutex.New(q, g.job("m")).LockContext(ctx)
	require.ErrorIs(t, err, quorate.ErrNoQuorum)
	assert.NoError(t, ctx.Err())
	assert.ErrorContains(t, err, "--tls-cert")
}
