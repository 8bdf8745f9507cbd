// Package e2e runs the real orders binary against a real PostgreSQL. What takes minutes, such as killing it again and again, has the
// build tag e2e and runs in "make test-all"; the rest runs in "make test".
package e2e
