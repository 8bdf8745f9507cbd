// Package cli is the command line of the kit and of the services built on it: the global flags, the output formats, the exit codes
// and the commands that every binary has. A service adds its own through [App].
//
// Results go to stdout, as text, json or jsonl (-o). The log goes to stderr, and so do errors, as "error: ..." and, where something
// can be done about it, "hint: ...". Nothing is coloured, so NO_COLOR needs no reading. [Main] touches neither os.Args nor the
// environment nor the process's streams, and never exits: a test runs the real program with it.
package cli
