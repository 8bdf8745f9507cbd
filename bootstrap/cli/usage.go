package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// closeGroups makes every command that only holds others refuse what it does not know, where cobra would print help and succeed.
func closeGroups(c *cobra.Command) {
	for _, sub := range c.Commands() {
		closeGroups(sub)
	}
	if !c.HasSubCommands() || c.Runnable() {
		return
	}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 && !c.HasParent() {
			return c.Help()
		}
		return unknownCommand(c, args)
	}
}

func unknownCommand(c *cobra.Command, args []string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	slices.Sort(names)
	if len(args) == 0 {
		return Refused(fmt.Sprintf("%s needs a command", c.CommandPath()), "one of "+strings.Join(names, ", "))
	}
	c.SuggestionsMinimumDistance = max(1, min(2, len(args[0])/3)) // two letters of three are another word
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return Refused(fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0]), "did you mean "+strings.Join(near, " or ")+"?")
	}
	return Refused(fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0]), "one of "+strings.Join(names, ", "))
}

// noArgs is cobra.NoArgs in words that fit a command which has no commands below it.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Refused(fmt.Sprintf("%s takes no argument, and was given %q", c.CommandPath(), args[0]), "see "+c.CommandPath()+" --help")
}

// watchStart tells cobra's refusals, which come before a command starts, from a command's own errors.
func watchStart(c *cobra.Command) *bool {
	started := new(bool)
	var wrap func(*cobra.Command)
	wrap = func(c *cobra.Command) {
		if run := c.RunE; run != nil {
			c.RunE = func(c *cobra.Command, args []string) error {
				*started = true
				return run(c, args)
			}
		}
		for _, sub := range c.Commands() {
			wrap(sub)
		}
	}
	wrap(c)
	return started
}

func usage(c *cobra.Command, err error) error {
	if r, ok := errors.AsType[*RefusedError](err); ok {
		return r
	}
	return Refused(err.Error(), "see "+c.CommandPath()+" --help")
}

// choice is a flag that may have one of a few values.
type choice struct {
	value   string
	allowed []string
}

// String returns the value.
func (c *choice) String() string { return c.value }

// Set refuses a value that is not allowed.
func (c *choice) Set(v string) error {
	if !slices.Contains(c.allowed, v) {
		return fmt.Errorf("must be one of %s", strings.Join(c.allowed, ", "))
	}
	c.value = v
	return nil
}

// Type is shown in the help.
func (c *choice) Type() string { return strings.Join(c.allowed, "|") }
