package transport_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/testkit/redistest"
	"github.com/quorate/quorate/internal/transport"
)

// withTLS starts a server that speaks TLS at the address that it returns, too.
func withTLS(t *testing.T, cert, key string) (node *redistest.Server, addr string) {
	t.Helper()
	skipWithoutTLS(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = ln.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	ln.Close()
	return redistest.Start(t, 1, redistest.WithArgs("--tls-port", port, "--tls-cert-file", cert,
		"--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")).Node(0), addr
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := selfSigned(t)
	node, addr := withTLS(t, cert, key)
	client := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: &tls.Config{RootCAs: pool}})
	defer client.Close()
	l := open(t, client, transport.Config{Channel: "ch", Stall: 500 * time.Millisecond})
	require.NoError(t, l.State(time.Now()).Err)
	v, err := do(t, l, "ECHO", strings.Repeat("x", 100_000))
	assert.NoError(t, err)
	assert.Len(t, v, 100_000)

	require.NoError(t, node.Stop())
	join, leave := newCall("SET", "claim", strings.Repeat("x", 1<<20)), lasting("DEL", "claim")
	send(l, join, leave)
	_, err = join.wait(t)
	assert.ErrorIs(t, err, transport.ErrBroken)
	require.NoError(t, node.Cont())
	_, err = leave.wait(t)
	assert.NoError(t, err)
	assert.Zero(t, node.Client().Exists(t.Context(), "claim").Val())

	otherServer := redis.NewClient(&redis.Options{Addr: addr,
		TLSConfig: &tls.Config{RootCAs: x509.NewCertPool()}})
	defer otherServer.Close()
	assert.ErrorContains(t, open(t, otherServer,
		transport.Config{Stall: 10 * time.Second}).State(time.Now()).Err, "certificate")
}

// Where the server or the client alone speaks TLS, the error says so.
func TestTLSOnOneSide(t *testing.T) {
	t.Parallel()
	cert, key, pool := selfSigned(t)
	node, addr := withTLS(t, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	// It answers with an alert.
	proxy, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	require.NoError(t, err)
	defer proxy.Close()
	go func() {
		for {
			nc, err := proxy.Accept()
			if err != nil {
				return
			}
			_ = nc.(*tls.Conn).Handshake()
			_ = nc.Close()
		}
	}()
	for _, in := range []struct {
		addr  string
		tls   *tls.Config
		stall time.Duration
		says  string
	}{
		{addr, nil, 10 * time.Second, "if the port speaks TLS, use rediss://"},
		{proxy.Addr().String(), nil, 10 * time.Second, "if the port speaks TLS, use rediss://"},
		{node.Addr(), &tls.Config{RootCAs: pool}, 100 * time.Millisecond,
			"the port may not speak TLS (if so, use redis://): "},
	} {
		client := redis.NewClient(&redis.Options{Addr: in.addr, TLSConfig: in.tls})
		defer client.Close()
		assert.ErrorContains(t, open(t, client, transport.Config{Stall: in.stall}).State(time.Now()).Err, in.says)
	}
}

// A server that wants a certificate says so after the client's side of the
// handshake. A write that comes after that must not hide it.
func TestCertificateIsWanted(t *testing.T) {
	t.Parallel()
	cert, key, pool := selfSigned(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	ended := make(chan struct{}, 100)
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			server := tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{pair},
				ClientAuth: tls.RequireAnyClientCert})
			_ = server.Handshake()
			_ = nc.(*net.TCPConn).SetLinger(0) // what the client writes from here on is answered by a reset
			_ = nc.Close()
			ended <- struct{}{}
		}
	}()
	client := redis.NewClient(&redis.Options{Addr: ln.Addr().String(),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			nc, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool}}).DialContext(ctx, network, addr)
			if err == nil {
				<-ended
			}
			return nc, err
		}})
	defer client.Close()
	l := open(t, client, transport.Config{Stall: 10 * time.Second})
	assert.ErrorContains(t, l.State(time.Now()).Err, "--tls-cert")
}

func selfSigned(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
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
	pool = x509.NewCertPool()
	pool.AddCert(cert)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile,
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile, pool
}

// skipWithoutTLS asks the server to start with TLS but without a certificate:
// one that can complains of that, one that cannot of the option.
func skipWithoutTLS(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, redistest.Binary, "--tls-port", "1", "--port",
		"0", "--dir", t.TempDir()).CombinedOutput()
	if !strings.Contains(string(out), "tls-cert-file") {
		t.Skip("redis-server is missing, or built without TLS")
	}
}
