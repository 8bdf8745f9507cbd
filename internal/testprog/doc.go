// Package testprog finds the system programs that `make test-all` needs beside Go and PostgreSQL.
//
// [Find] takes what PATH has. Else it has apt download the program's package and the libraries that this system lacks, and unpacks them into
// the cache directory: without root, without touching the system, and once, however many test processes want it. Where there is no apt, it
// says what to install.
package testprog
