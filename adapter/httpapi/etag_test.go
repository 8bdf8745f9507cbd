package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
)

func TestIfMatch(t *testing.T) {
	for name, c := range map[string]struct {
		headers []string
		want    error
	}{
		"missing":            {nil, fault.PreconditionRequired},
		"current":            {[]string{`"3"`}, nil},
		"stale":              {[]string{`"2"`}, fault.PreconditionFailed},
		"one of a list":      {[]string{`"2", "3"`}, nil},
		"one of two lines":   {[]string{`"2"`, `"3"`}, nil},
		"any":                {[]string{`*`}, nil},
		"weak":               {[]string{`W/"3"`}, fault.PreconditionFailed},
		"without quotes":     {[]string{`3`}, fault.RequestInvalid},
		"half quoted":        {[]string{`"3`}, fault.RequestInvalid},
		"empty":              {[]string{``}, fault.RequestInvalid},
		"trailing separator": {[]string{`"3",`}, fault.RequestInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			for _, h := range c.headers {
				r.Header.Add("If-Match", h)
			}
			m, err := httpapi.RequireIfMatch(r)
			if err == nil {
				err = m.Check(3)
			}
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
		})
	}
}
