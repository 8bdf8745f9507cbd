package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/registry"
)

var instrument = regexp.MustCompile(`^(?:Int64|Float64)(?:Observable)?(Counter|UpDownCounter|Gauge|Histogram)$`)

var metricType = map[string]string{"Counter": "counter", "UpDownCounter": "updowncounter", "Gauge": "gauge", "Histogram": "histogram"}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// constants returns the string constants of the packages by directory and name, as "dir.name".
func constants(files []source) map[string]string {
	all := map[string]string{}
	for _, f := range files {
		for _, d := range f.parse(parser.SkipObjectResolution).Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, spec := range decl.Specs {
				v, _ := spec.(*ast.ValueSpec)
				for i, value := range v.Values {
					if text, ok := literal(value); ok {
						all[f.dir()+"."+v.Names[i].Name] = text
					}
				}
			}
		}
	}
	return all
}

// unit returns what a metric.WithUnit among the options says.
func unit(options []ast.Expr) string {
	for _, o := range options {
		if call, ok := o.(*ast.CallExpr); ok && len(call.Args) == 1 {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "WithUnit" {
				text, _ := literal(call.Args[0])
				return text
			}
		}
	}
	return ""
}

// compareMetrics lists where the instruments that files create and the registered ones differ.
func compareMetrics(files []source, registered []registry.Metric) []string {
	byName := map[string]registry.Metric{}
	for _, m := range registered {
		byName[m.Name] = m
	}
	consts := constants(files)
	created := map[string]bool{}
	var all []string
	for _, f := range files {
		ast.Inspect(f.parse(parser.SkipObjectResolution), func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			kind := instrument.FindStringSubmatch(sel.Sel.Name)
			if kind == nil {
				return true
			}
			at := f.position(call.Pos())
			name, ok := literal(call.Args[0])
			if id, isID := call.Args[0].(*ast.Ident); isID {
				name, ok = consts[f.dir()+"."+id.Name]
			}
			if !ok {
				all = append(all, at+": an instrument's name must be a string or a constant of the package, so that it can be compared with registry/metrics.yaml")
				return true
			}
			created[name] = true
			m, known := byName[name]
			switch u := unit(call.Args[1:]); {
			case !known:
				all = append(all, fmt.Sprintf("%s: metric %q is not registered, so nobody can look it up or alert on it; add it to registry/metrics.yaml and run `make generate`", at, name))
			case m.Type != metricType[kind[1]]:
				all = append(all, fmt.Sprintf("%s: metric %q is a %s here and a %s in registry/metrics.yaml", at, name, metricType[kind[1]], m.Type))
			case m.Unit != u:
				all = append(all, fmt.Sprintf("%s: metric %q has the unit %q here and %q in registry/metrics.yaml; give metric.WithUnit a literal", at, name, u, m.Unit))
			}
			return true
		})
	}
	for _, m := range registered {
		if !created[m.Name] {
			all = append(all, fmt.Sprintf("registry/metrics.yaml lists %q, which nothing records, so a dashboard built on it stays empty; delete the entry", m.Name))
		}
	}
	return all
}

func TestMetricsAreRegistered(t *testing.T) {
	r, err := registry.Load(os.DirFS(filepath.Join("..", "..", "registry")))
	require.NoError(t, err)
	var files []source
	for _, f := range tree(t, ".go") {
		if !f.isTest() {
			files = append(files, f)
		}
	}
	for _, breach := range compareMetrics(files, r.Metrics) {
		t.Error(breach)
	}
}

func TestCompareMetrics(t *testing.T) {
	waits := registry.Metric{Name: "a.wait", Type: "histogram", Unit: "s"}
	code := func(body string) []source {
		return []source{{"a/names.go", "package a\n\nconst wait = \"a.wait\"\n"}, {"a/a.go", "package a\n\nfunc f(m Meter) {\n" + body + "\n}\n"}}
	}
	const good = `m.Float64Histogram(wait, metric.WithUnit("s"))`
	require.Empty(t, compareMetrics(code(good), []registry.Metric{waits}))
	for body, want := range map[string]string{
		good + "\n" + `m.Int64Counter("a.other")`: `a/a.go:5: metric "a.other" is not registered`,
		"": `lists "a.wait", which nothing records`,
		`m.Int64ObservableGauge("a.wait", metric.WithUnit("s"))`: `is a gauge here and a histogram`,
		`m.Float64Histogram(wait)`:                               `has the unit "" here and "s"`,
		good + "\n" + `m.Int64Counter("a." + name)`:              `name must be a string or a constant`,
	} {
		breaches := compareMetrics(code(body), []registry.Metric{waits})
		require.Len(t, breaches, 1, body)
		require.Contains(t, breaches[0], want)
	}
}
