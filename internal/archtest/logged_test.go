package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// loggedErrors keeps the texts of errors out of logs: they may hold values, bodies and hosts; see docs/adr/0012-reasons-in-logs.md.
var loggedErrors = fileRule{
	name: "logs get the reason of an error", extensions: []string{".go"},
	broken: rawErrors,
	bad: []source{
		logging(`log.WarnContext(ctx, "failed", "error", err)`),
		logging(`log.WarnContext(ctx, "failed", "n", 1, "why", err)`),
		logging(`log.WarnContext(ctx, "failed", "why", err.Error())`),
		logging(`log.WarnContext(ctx, "failed", "why", printable(npmErr.Error()))`),
		logging(`log.WarnContext(ctx, "failed", "why", fmt.Sprint(s.err))`),
		logging(`log.WarnContext(ctx, "failed", "error", diagnostic)`),
		logging(`log.WarnContext(ctx, "failed", "cause", s.Text)`),
		logging(`log.Warn("failed", "error", told(err))`),
		logging(`log.Warn(err.Error())`),
		logging(`a.opts.Logger.ErrorContext(ctx, "failed", "key", k, "lost", failure)`),
		logging(`loggerOr(log).LogAttrs(ctx, level, "failed", slog.Any("why", failed))`),
		logging(`attrs = append(attrs, slog.String("error", why))`),
		logging(`args := []any{"consumer", c, "error", err}`),
		logging(`args = append(args, "cause", cause)`),
		logging(`text := fault.Reason(err); log.Warn("failed", "error", other)`),
		logging(`return fault.Text(err.Error())`),
		logging(`return fault.Textf("it failed: %s", err.Error())`),
	},
	good: []source{
		logging(`log.WarnContext(ctx, "failed", "error", fault.Reason(err))`),
		logging(`log.WarnContext(ctx, "failed", "n", 1, "error", fault.Reason(told(err)), "cause", fault.Reason(cause))`),
		logging(`why := fault.Reason(err); log.Warn("failed", "error", why)`),
		logging(`s.Failure, s.Retry = fault.Reason(err), retry(); log.Warn("failed", "error", s.Failure)`),
		logging(`attrs = append(attrs, slog.String("error", fault.Reason(err)))`),
		logging(`args := []any{"consumer", c, "error", fault.Reason(err)}`),
		logging(`log.Warn("failed", "panic_type", fmt.Sprintf("%T", v), "code", fault.CodeOf(err))`),
		logging(`log.Info("over", "error", "none")`),
		logging(`http.Error(w, "gone", status)`),
		logging(`return fault.Textf("%d left: %w", n, err)`),
		{"a/a_test.go", logging(`log.Warn("failed", "error", err)`).text},
		{"fault/a.go", logging(`log.Warn("failed", "error", err)`).text},
	},
}

func logging(body string) source {
	return source{"a/a.go", "package a\n\nfunc f() {\n\t" + body + "\n}\n"}
}

var (
	logMethod = regexp.MustCompile(`^(Debug|Info|Warn|Error|Log)(Attrs|Context)?$`)
	aLogger   = regexp.MustCompile(`(?i)(log|logger|loggerOr\(log\))$`)
	anError   = regexp.MustCompile(`^(err|errs|failure|failed|cause|uncounted)$|[a-z]Err$|^err[A-Z]`)
)

// errorKeys are what errors are logged as. Whatever stands there must have come from fault.Reason.
var errorKeys = []string{"error", "err", "cause", "failure"}

// rawErrors looks at names and keys, since a file alone does not tell types. fault is where the reason is made.
func rawErrors(f source) []string {
	if f.isTest() || f.dir() == "fault" {
		return nil
	}
	file := f.parse(parser.SkipObjectResolution)
	reasons := reasonsOf(file)
	var all []string
	refuse := func(n ast.Node) {
		all = append(all, f.position(n.Pos())+": the text of an error may hold a value, a body or a host, and this may log it; log fault.Reason(err) as \"error\", "+
			"and let a type that knows better implement slog.LogValuer")
	}
	check := func(args []ast.Expr, logs bool) { // what is appended may be no attributes, so that only a key tells
		for i, a := range args {
			unreasoned := i > 0 && slices.Contains(errorKeys, text(args[i-1])) && !isReason(a) && text(a) == "" && !reasons[types.ExprString(a)]
			if unreasoned || logs && quotes(a) {
				refuse(a)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if t, ok := n.Type.(*ast.ArrayType); ok && types.ExprString(t) == "[]any" {
				check(n.Elts, true)
			}
		case *ast.CallExpr:
			fun := types.ExprString(n.Fun)
			on, method := "", fun
			if i := strings.LastIndex(fun, "."); i >= 0 {
				on, method = fun[:i], fun[i+1:]
			}
			switch {
			case fun == "append":
				check(n.Args, false)
			case fun == "slog.Any" || fun == "slog.String" || logMethod.MatchString(method) && aLogger.MatchString(on):
				check(n.Args, true)
			case fun == "fault.Text" || fun == "fault.Textf":
				if slices.ContainsFunc(n.Args, func(a ast.Expr) bool { return calls0(a, "Error") }) {
					refuse(n)
				}
			}
		}
		return true
	})
	return all
}

// reasonsOf returns what a file assigns a reason to.
func reasonsOf(file *ast.File) map[string]bool {
	all := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i := range a.Rhs {
				if isReason(a.Rhs[i]) {
					all[types.ExprString(a.Lhs[i])] = true
				}
			}
		}
		return true
	})
	return all
}

func isReason(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && types.ExprString(call.Fun) == "fault.Reason"
}

// text is that of a string literal.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

// quotes reports whether an argument is an error, or made of one's text. What package fault says of an error is no text of it.
func quotes(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if strings.HasPrefix(types.ExprString(n.Fun), "fault.") {
				return false
			}
			found = found || calls0(n, "Error")
		case *ast.SelectorExpr:
			found = found || anError.MatchString(n.Sel.Name)
			return !isIdent(n.X)
		case *ast.Ident:
			found = found || anError.MatchString(n.Name)
		}
		return true
	})
	return found
}

func isIdent(e ast.Expr) bool {
	_, ok := e.(*ast.Ident)
	return ok
}

// calls0 reports whether a method is called without arguments somewhere in e.
func calls0(e ast.Expr, method string) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 0 {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == method {
				found = true
			}
		}
		return true
	})
	return found
}
