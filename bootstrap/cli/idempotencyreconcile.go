package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/ops"
)

func (s *Session) idempotencyReconcile() *cobra.Command {
	verdict := choice{"", []string{string(ops.TookEffect), string(ops.Refused), string(ops.NoEffect)}}
	var act ops.Act
	var a answerFile
	c := &cobra.Command{
		Use: "reconcile scope", Short: "Say what an interrupted operation has done, after looking where it had its effects",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Refused("say which record: its scope", "give 64 hexadecimal digits, as "+cmd.Parent().CommandPath()+" list has them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := a.read(ops.Verdict(verdict.value))
			if err != nil {
				return refusal(err, false)
			}
			return s.records(cmd, false, func(ctx context.Context, o *ops.Idempotency) error {
				e, err := o.Reconcile(ctx, args[0], ops.Verdict(verdict.value), answer, act)
				if err != nil {
					return err
				}
				type settled struct {
					Scope   string `json:"scope"`
					Route   string `json:"route"`
					Verdict string `json:"verdict"`
					Changed int    `json:"changed"`
				}
				return Write(s, cmd, []settled{{e.Scope.String(), e.Route, verdict.value, 1}}, func(w io.Writer) error {
					then := "repeats get the answer"
					if verdict.value == string(ops.NoEffect) {
						then = "a repeat runs it"
					}
					_, err := fmt.Fprintf(w, "%s is settled as %s: %s\n", printable(e.Route), verdict.value, then)
					return err
				})
			})
		},
	}
	f := c.Flags()
	f.Var(&verdict, "verdict", "what the operation has done")
	f.StringVar(&a.path, "answer", "", "file with the answer that repeats get: JSON of the value, or, with --status, the body of the response")
	f.IntVar(&a.status, "status", 0, "of the HTTP response, for a route of adapter/httpapi")
	f.StringVar(&a.contentType, "content-type", "application/json", "of the HTTP response")
	actFlags(c, &act)
	if err := c.RegisterFlagCompletionFunc("verdict", cobra.FixedCompletions(verdict.allowed, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a flag that was just made
	}
	return c
}

// answerFile is where the answer of an operation is, and what kind it is.
type answerFile struct {
	path        string
	status      int // 0: a value, and no HTTP response
	contentType string
}

// read returns the answer as it is stored, nil where there is none. A status from 400 up is a refusal, as it is to a guarded route.
func (a answerFile) read(v ops.Verdict) (ops.Stored, error) {
	switch {
	case a.path == "" && a.status == 0:
		return nil, nil
	case v == ops.TookEffect && a.status >= http.StatusBadRequest:
		return nil, &ops.InvalidError{Field: "status", Problem: fmt.Sprintf("is %d, with which nothing took effect", a.status), Fix: "say rejected, or give the status of a success"}
	case v == ops.Refused && a.status > 0 && a.status < http.StatusBadRequest:
		return nil, &ops.InvalidError{Field: "status", Problem: fmt.Sprintf("is %d, with which repeats take it for done", a.status), Fix: "say completed, or give the status of a refusal, from 400 up"}
	}
	var body []byte
	if a.path != "" {
		var err error
		if body, err = os.ReadFile(a.path); err != nil {
			return nil, &ops.InvalidError{Field: "answer", Problem: "cannot be read: " + err.Error(), Fix: "give the name of a file"}
		}
	}
	if a.status == 0 {
		return ops.JSONAnswer(body)
	}
	r := httpapi.Response{Status: a.status, Body: body}
	if len(body) > 0 {
		r.Header = http.Header{"Content-Type": {a.contentType}}
	}
	stored, err := r.MarshalBinary()
	if err != nil {
		return nil, &ops.InvalidError{Field: "status", Problem: "does not make a response: " + err.Error(), Fix: "give the status and the body that the client would have got"}
	}
	return stored, nil
}
