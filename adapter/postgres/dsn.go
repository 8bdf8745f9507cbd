package postgres

import (
	"crypto/tls"
	"net/netip"
	"strings"

	"github.com/jackc/pgx/v5"
)

// dsnProblems lists what is wrong with a DSN. The parser quotes it, and can only guess where the password in a broken one ends.
func dsnProblems(field, dsn string, verify bool) []Problem {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return []Problem{{
			Field: field, Problem: "cannot be parsed",
			Fix: "write it as postgres://user:password@host:5432/database?sslmode=verify-full, with special characters percent-encoded (it is not shown here, since it may hold the password)",
		}}
	}
	if verify && !verified(cfg) {
		return []Problem{{
			Field: field, Problem: "lets the server go unverified, for one of its hosts at least, so that anybody in between can read and change what is sent",
			Fix: "give it sslmode=verify-full, and sslrootcert where the authority is not one of the system's",
		}}
	}
	return nil
}

// verified reports whether no way to the server goes without verify-full. pgx tries the ways that sslmode=prefer and allow add, and those of
// further hosts, as fallbacks. What does not leave the machine needs none: there is nobody in between, and a proxy beside the service often
// speaks TLS for it.
func verified(cfg *pgx.ConnConfig) bool {
	ok := func(host string, t *tls.Config) bool {
		return local(host) || t != nil && !t.InsecureSkipVerify
	}
	if !ok(cfg.Host, cfg.TLSConfig) {
		return false
	}
	for _, f := range cfg.Fallbacks {
		if !ok(f.Host, f.TLSConfig) {
			return false
		}
	}
	return true
}

// local reports whether host is a Unix socket or a loopback address.
func local(host string) bool {
	if host == "localhost" || strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
