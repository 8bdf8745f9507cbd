package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// logger hands what nats-server says to slog, and keeps the last complaint for the error of a start that failed.
type logger struct {
	to   *slog.Logger
	mu   sync.Mutex
	last string
}

func (l *logger) log(level slog.Level, format string, v []any) {
	text := fmt.Sprintf(format, v...)
	if level >= slog.LevelError {
		l.mu.Lock()
		l.last = text
		l.mu.Unlock()
	}
	l.to.Log(context.Background(), level, "nats-server says", "text", text)
}

func (l *logger) complaint() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *logger) Noticef(format string, v ...any) { l.log(slog.LevelDebug, format, v) }
func (l *logger) Warnf(format string, v ...any)   { l.log(slog.LevelWarn, format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.log(slog.LevelError, format, v) }
func (l *logger) Fatalf(format string, v ...any)  { l.log(slog.LevelError, format, v) }
func (l *logger) Debugf(string, ...any)           {}
func (l *logger) Tracef(string, ...any)           {}
