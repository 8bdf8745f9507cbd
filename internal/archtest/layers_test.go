package archtest

import (
	"fmt"
	"go/parser"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers maps each package path prefix (the longest wins) to a layer.
var layers = map[string]string{
	"fault":                       "kernel",
	"reqctx":                      "kernel",
	"tx":                          "tx",
	"tx/txtest":                   "suite",
	"audit":                       "port",
	"audit/audittest":             "suite",
	"idempotency":                 "port",
	"idempotency/idempotencytest": "suite",
	"inbox":                       "port",
	"inbox/inboxtest":             "suite",
	"lock":                        "port",
	"lock/locktest":               "suite",
	"lock/schedule/scheduletest":  "suite",
	"outbox":                      "port",
	"outbox/outboxtest":           "suite",
	"ops":                         "ops",
	"adapter/broker":              "adapter",
	"adapter/filesystem":          "adapter",
	"adapter/httpapi":             "adapter",
	"adapter/memory":              "adapter",
	"adapter/postgres":            "adapter",
	"adapter/postgres/migrations/migrationstest": "testkit",
	"adapter/postgres/pgtest":                    "testkit",
	"adapter/redis":                              "adapter",
	"bootstrap":                                  "root",
	"cmd":                                        "cmd",
	"registry":                                   "tool",
	"internal/archtest":                          "tool",
	"internal/proxytest":                         "testkit",
	"internal/redistest":                         "testkit",
	"internal/stoptests":                         "testtool",
	"internal/backoff":                           "backoff",
	"internal/failpoint":                         "failpoint",
	"internal/testkit":                           "suitekit",
	"internal/testprog":                          "testprog",
	"internal/testsum":                           "tool",
}

// rules says what each layer may import. Imports within a layer are allowed only inside one tree (an adapter's family, a port and what is below it):
// a port that knows another port cannot be adopted alone.
var rules = map[string]rule{
	"kernel":    {},
	"failpoint": {},
	"backoff":   {},
	"tx":        {kit: []string{"kernel", "backoff"}, others: telemetry},
	"port":      {kit: []string{"kernel", "tx", "failpoint", "backoff"}, others: append([]string{"golang.org/x/sync"}, telemetry...)},
	"suite":     {kit: []string{"kernel", "tx", "port", "suitekit"}, others: anything},
	"suitekit":  {others: append([]string{"go.opentelemetry.io/otel/metric/noop", "github.com/anishathalye/porcupine"}, telemetry...)},
	"adapter":   {kit: []string{"kernel", "tx", "port", "failpoint", "backoff"}, others: anything},
	"testkit":   {kit: []string{"kernel", "tx", "port", "suite", "adapter", "testprog"}, others: anything},
	"ops":       {kit: []string{"tx", "port"}},
	"root":      {kit: []string{"kernel", "tx", "port", "ops", "adapter", "backoff"}, others: anything},
	"cmd":       {kit: []string{"kernel", "ops", "root"}, others: anything},
	"tool":      {others: anything},
	"testprog":  {kit: []string{"adapter"}},
	// What runs the tests may reach for their server, and for nothing that is built on it.
	"testtool": {kit: []string{"adapter"}},
}

type rule struct {
	kit    []string // layers
	others []string // modules other than the standard library and the kit
}

var (
	telemetry = []string{"go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace", "go.opentelemetry.io/otel/attribute"}
	anything  = []string{""}
)

func layerOf(pkg string) (layer, prefix string) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if l, ok := layers[p]; ok {
			return l, p
		}
	}
	return "", ""
}

// family is the part of the tree that a package may use although it is of the same layer.
func family(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	if parts[0] == "adapter" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// refuse returns why package from may not import imp, "" if it may.
func refuse(from, imp string) string {
	layer, _ := layerOf(from)
	r := rules[layer]
	to, ours := strings.CutPrefix(imp, module+"/")
	switch {
	case ours:
		target, _ := layerOf(to)
		if slices.Contains(r.kit, target) || target == layer && family(from) == family(to) {
			return ""
		}
		return fmt.Sprintf("layer %s may not import %s (layer %q): imports run from cmd to fault only, so that a team can take a part without what is above or beside it",
			layer, imp, target)
	case imp == "net/http" || imp == "database/sql":
		if slices.Contains([]string{"kernel", "tx", "port", "ops"}, layer) {
			return fmt.Sprintf("layer %s may not import %s: a port knows no transport and no store, they belong to its adapters", layer, imp)
		}
		return ""
	case !strings.Contains(strings.SplitN(imp, "/", 2)[0], "."):
		return "" // the standard library
	}
	for _, p := range r.others {
		if p == "" || imp == p || strings.HasPrefix(imp, p+"/") {
			return ""
		}
	}
	return fmt.Sprintf("layer %s may not import %s: what everything stands on must not force a dependency on anyone", layer, imp)
}

func TestImportsRunOneWay(t *testing.T) {
	modules := nested(t)
	used, strange := map[string]bool{}, map[string]bool{}
	for _, f := range tree(t, ".go") {
		if f.isTest() || inside(f.dir(), modules) {
			continue
		}
		layer, prefix := layerOf(f.dir())
		if layer == "" {
			if !strange[f.dir()] {
				t.Errorf("package %s belongs to no layer, so nobody knows who may import it; add a line to layers", f.dir())
			}
			strange[f.dir()] = true
			continue
		}
		used[prefix] = true
		for _, imp := range f.parse(parser.ImportsOnly).Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			if why := refuse(f.dir(), name); why != "" {
				t.Errorf("%s: %s", f.position(imp.Pos()), why)
			}
		}
	}
	for prefix, layer := range layers {
		if !used[prefix] {
			t.Errorf("layers: there is no package under %q any more; delete the line, a stale rule hides a misspelt one", prefix)
		}
		if _, ok := rules[layer]; !ok {
			t.Errorf("layers: %q has the layer %q, which has no rule", prefix, layer)
		}
	}
}

// The table is tried on a tree of its own, since the real one should break no rule.
func TestRefuse(t *testing.T) {
	kept := layers
	t.Cleanup(func() { layers = kept })
	layers = map[string]string{
		"fault": "kernel", "reqctx": "kernel", "tx": "tx", "lock": "port", "lock/locktest": "suite", "outbox": "port",
		"adapter/postgres": "adapter", "adapter/postgres/pgtest": "testkit", "adapter/httpapi": "adapter", "bootstrap": "root", "cmd/x": "cmd", "ops": "ops", "registry": "tool",
	}
	for _, c := range []struct {
		from, imp string
		allowed   bool
	}{
		{"fault", "log/slog", true},
		{"fault", "net/http", false},
		{"fault", module + "/reqctx", false},
		{"fault", module + "/tx", false},
		{"tx", module + "/fault", true},
		{"tx", module + "/lock", false},
		{"tx", "go.opentelemetry.io/otel/metric", true},
		{"tx", "golang.org/x/sync/errgroup", false},
		{"lock", "golang.org/x/sync/errgroup", true},
		{"lock", "go.opentelemetry.io/otel/sdk/metric", false},
		{"lock", "github.com/jackc/pgx/v5", false},
		{"lock", "database/sql", false},
		{"lock", module + "/tx", true},
		{"lock", module + "/outbox", false},
		{"lock/schedule", module + "/lock", true},
		{"lock", module + "/lock/locktest", false},
		{"lock", module + "/adapter/postgres", false},
		{"lock/locktest", module + "/lock", true},
		{"lock/locktest", module + "/adapter/postgres", false},
		{"adapter/postgres", module + "/lock", true},
		{"adapter/postgres", "github.com/jackc/pgx/v5", true},
		{"adapter/postgres/pglock", module + "/adapter/postgres", true},
		{"adapter/postgres/pglock", module + "/adapter/postgres/pgtest", false},
		{"adapter/postgres/pgtest", module + "/adapter/postgres/embedded", true},
		{"adapter/httpapi", module + "/adapter/postgres", false},
		{"adapter/httpapi", module + "/bootstrap", false},
		{"bootstrap/cli", module + "/bootstrap", true},
		{"bootstrap", module + "/adapter/httpapi", true},
		{"bootstrap", module + "/adapter/postgres/pgtest", false},
		{"ops", module + "/lock", true},
		{"ops", module + "/adapter/postgres", false},
		{"ops", "net/http", false},
		{"lock", module + "/ops", false},
		{"bootstrap/cli", module + "/ops", true},
		{"cmd/x", module + "/bootstrap/cli", true},
		{"cmd/x", module + "/adapter/postgres", false},
		{"registry", module + "/fault", false},
		{"registry/cmd/generate", module + "/registry", true},
		{"fault", module + "/nowhere", false},
	} {
		require.Equal(t, c.allowed, refuse(c.from, c.imp) == "", "%s imports %s", c.from, c.imp)
	}
}
