// Package sqlcorders is what sqlc 1.31.1 generates from sqlc.yaml: its usual output, in files whose names say that they are generated.
package sqlcorders
