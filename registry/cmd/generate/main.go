// Command generate writes what is generated from the registries; with -verify it writes nothing and fails where a file differs.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"caskeleton.dev/registry"
)

func main() {
	root := flag.String("root", ".", "the repository's root")
	verify := flag.Bool("verify", false, "write nothing; fail where a file differs")
	flag.Parse()
	if err := run(os.Stdout, *root, *verify); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, verify bool) error {
	if verify {
		return registry.Verify(root)
	}
	written, err := registry.Write(root)
	for _, path := range written {
		fmt.Fprintln(out, "wrote", path)
	}
	return err
}
