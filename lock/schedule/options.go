package schedule

import (
	"fmt"
	"log/slog"
	"os"
	"time"
	"unicode/utf8"
)

const (
	defaultCatchUp      = time.Hour
	defaultRetention    = 7 * 24 * time.Hour
	defaultDrainTimeout = 10 * time.Second
	maxInstance         = 100
)

// Options configure a [Scheduler]. The zero value is the default.
type Options struct {
	Instance     string        // names this instance in the history, at most 100 characters; "" means the host's name
	CatchUp      time.Duration // how late the last slot that nobody has run may still run, at the first start too; 0 means 1 h
	Retention    time.Duration // age of the slots that are deleted, but for the last 100 of each job; longer than CatchUp; 0 means 7 days
	DrainTimeout time.Duration // how long runs may go on after their contexts have ended with Run's; 0 means 10 s
	Logger       *slog.Logger  // nil means slog.Default()
}

// fill sets defaults and refuses what cannot work.
func (o *Options) fill() error {
	for _, d := range []struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{
		{"CatchUp", &o.CatchUp, defaultCatchUp},
		{"Retention", &o.Retention, max(defaultRetention, 2*o.CatchUp)},
		{"DrainTimeout", &o.DrainTimeout, defaultDrainTimeout},
	} {
		if *d.v < 0 {
			return fmt.Errorf("schedule: %s is %v; it must be positive, or 0 for %v", d.name, *d.v, d.def)
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if o.Retention <= o.CatchUp {
		return fmt.Errorf("schedule: Retention is %v, no longer than CatchUp, %v: a slot whose run was deleted could run again; make it longer", o.Retention, o.CatchUp)
	}
	if o.Instance == "" {
		o.Instance = host()
	}
	if n := utf8.RuneCountInString(o.Instance); n > maxInstance || !utf8.ValidString(o.Instance) {
		return fmt.Errorf("schedule: Instance has %d characters, or is not UTF-8; use %d at most", n, maxInstance)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

// host returns a name for people; what makes an instance one of a kind is added by Run.
func host() string {
	name, err := os.Hostname()
	if err != nil || name == "" || utf8.RuneCountInString(name) > maxInstance {
		return "unnamed"
	}
	return name
}
