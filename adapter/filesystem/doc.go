// Package filesystem keeps large answers of keyed operations in files, on a volume that all instances of a service share.
package filesystem
