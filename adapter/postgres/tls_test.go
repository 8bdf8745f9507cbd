package postgres_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := authority{key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &key.PublicKey, key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return a
}

// file is where a client finds the authority's certificate.
func (a authority) file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "authority.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600))
	return path
}

// issue returns certificate and key of a server at host, in PEM.
func (a authority) issue(t *testing.T, host string, until time.Time) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{host}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, &k.PublicKey, a.key)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// serveTLS gives the server a certificate. The server writes the files itself, since they must be its own user's.
func serveTLS(t *testing.T, srv *embedded.Server, cert, key []byte) {
	t.Helper()
	admin := pgtest.Connect(t, srv.DSN())
	sql := func(sql string) {
		_, err := admin.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	for name, body := range map[string][]byte{"server.crt": cert, "server.key": key} {
		sql("copy (select '" + base64.StdEncoding.EncodeToString(body) + "') to program 'umask 077 && base64 -d >" + name + "'")
	}
	sql("alter system set ssl = on")
	sql("select pg_reload_conf()")
}

func TestVerifyFull(t *testing.T) {
	srv := pgtest.PrivateServer(t, nil)
	known, other := newAuthority(t), newAuthority(t)
	through := func(host string, a authority) string {
		return with(t, srv.DSN(), func(u *url.URL) {
			u.Host = host + ":" + u.Port()
			u.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {a.file(t)}}.Encode()
		})
	}
	attempt := func(dsn string) error {
		db, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, VerifyTLS: true}, nil)
		if err == nil {
			require.True(t, get[bool](t, db, "select ssl from pg_stat_ssl where pid = pg_backend_pid()"))
			require.NoError(t, db.Close(t.Context()))
		}
		return err
	}
	refused := func(dsn, why string) {
		t.Helper()
		var err error
		require.Eventually(t, func() bool { err = attempt(dsn); return err != nil && fault.CodeOf(err) == fault.DBUnavailable }, 20*time.Second, 10*time.Millisecond)
		require.EqualError(t, err, "postgres.Open: DB_UNAVAILABLE: postgres: connect: "+why)
	}

	refused(through("localhost", known), "the server does not speak TLS, which the DSN asks for")

	cert, key := known.issue(t, "localhost", time.Now().Add(time.Hour))
	serveTLS(t, srv, cert, key)
	require.Eventually(t, func() bool { return attempt(through("localhost", known)) == nil }, 20*time.Second, 10*time.Millisecond, "right host")
	refused(through("127.0.0.1", known), "the server's certificate is not for the host of the DSN")
	refused(through("localhost", other), "the server's certificate is signed by an authority that is not known here; name its file in sslrootcert")

	cert, key = known.issue(t, "localhost", time.Now().Add(-time.Hour))
	serveTLS(t, srv, cert, key)
	require.Eventually(t, func() bool { return attempt(through("localhost", known)) != nil }, 20*time.Second, 10*time.Millisecond, "the server has read the new one")
	refused(through("localhost", known), "the server's certificate has expired, or is not valid yet")
}

func TestDSNsThatDoNotVerifyAreRefused(t *testing.T) {
	ca := newAuthority(t).file(t)
	for dsn, ok := range map[string]bool{
		"postgres://db.example.com/d?sslmode=verify-full":                                  true,
		"postgres://a.example.com,b.example.com/d?sslmode=verify-full":                     true,
		"host=db.example.com sslmode=verify-full sslrootcert=" + ca:                        true,
		"postgres://127.0.0.1/d?sslmode=disable":                                           true,
		"postgres://[::1]/d":                                                               true,
		"postgres://localhost/d?sslmode=require":                                           true,
		"host=/run/postgresql":                                                             true,
		"postgres://db.example.com/d":                                                      false,
		"postgres://db.example.com/d?sslmode=disable":                                      false,
		"postgres://db.example.com/d?sslmode=allow":                                        false,
		"postgres://db.example.com/d?sslmode=prefer":                                       false,
		"postgres://db.example.com/d?sslmode=require":                                      false,
		"postgres://db.example.com/d?sslmode=verify-ca&sslrootcert=" + url.QueryEscape(ca): false,
		"postgres://127.0.0.1,db.example.com/d?sslmode=require":                            false,
		"postgres://localhost.example.com/d?sslmode=disable":                               false,
		"postgres://0.0.0.0/d?sslmode=disable":                                             false,
	} {
		for field, c := range map[string]postgres.Config{"DSN": {DSN: dsn}, "ReadDSN": {DSN: "host=/run/postgresql", ReadDSN: dsn}} {
			require.NoError(t, c.Validate(), "the dev profile takes it: %s", dsn)
			c.VerifyTLS = true
			err := c.Validate()
			if ok {
				require.NoError(t, err, dsn)
				continue
			}
			require.ErrorContains(t, err, field+": lets the server go unverified", dsn)
			require.ErrorContains(t, err, "sslmode=verify-full", dsn)
			require.NotContains(t, err.Error(), "example.com")
		}
	}
}
