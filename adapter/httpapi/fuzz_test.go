package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
)

type placeOrder struct {
	CustomerID string `json:"customer_id"`
	Items      []item `json:"items"`
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int16  `json:"quantity"`
}

var goWords = regexp.MustCompile(`\b(u?int(8|16|32|64)?|float(32|64)|bool|struct|map|slice|nil|Go|json|jsontext|unmarshal|reflect|httpapi|fault|interface)\b|[{}*]`)

// FuzzDecode holds Decode against encoding/json, which shares no code with it. Seeds are in testdata/fuzz.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"customer_id":"7","items":[{"sku":"a","quantity":1}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var v placeOrder
		err := httpapi.Decode(body, &v)
		if err == nil {
			require.NoError(t, audit(body))
			return
		}
		require.ErrorIs(t, err, fault.RequestInvalid)
		require.Equal(t, 400, fault.StatusOf(err))
		fields := fault.FieldsOf(err)
		require.Len(t, fields, 1)
		require.NotEmpty(t, fields[0].Path)
		require.True(t, utf8.ValidString(fields[0].Path))
		require.NotContains(t, fields[0].Path, "\x00")
		require.NotRegexp(t, goWords, fields[0].Problem)
		require.NotRegexp(t, goWords, fields[0].Fix)
	})
}

// audit reports what Decode should have refused in a body for a placeOrder.
func audit(body []byte) error {
	if !json.Valid(body) || !utf8.Valid(body) {
		return errors.New("not JSON in UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	known := map[string][]string{"": {"customer_id", "items"}, "/items/": {"sku", "quantity"}}
	replaced := bytes.Contains(body, []byte("\ufffd")) || bytes.Contains(bytes.ToLower(body), []byte(`\ufffd`))
	if err := auditValue(d, "", known, replaced); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("trailing data")
	}
	return nil
}

func auditValue(d *json.Decoder, path string, known map[string][]string, replaced bool) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case string:
		return auditText(token, replaced)
	case nil:
		return fmt.Errorf("null at %q", path)
	case json.Delim:
		seen := map[string]bool{}
		for d.More() {
			at := path + "/"
			if token == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				s, _ := name.(string)
				if seen[s] {
					return fmt.Errorf("%q given twice", s)
				}
				seen[s] = true
				if !strings.Contains("\n"+strings.Join(known[path], "\n")+"\n", "\n"+s+"\n") {
					return fmt.Errorf("%q is unknown at %q", s, path)
				}
				at = path + "/" + s
			}
			if err := auditValue(d, at, known, replaced); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	}
	return nil
}

// auditText looks for U+0000, and for the U+FFFD that encoding/json puts in place of half a surrogate pair.
func auditText(s string, replaced bool) error {
	if strings.Contains(s, "\x00") {
		return errors.New("U+0000")
	}
	if strings.Contains(s, "\ufffd") && !replaced {
		return errors.New("half a surrogate pair")
	}
	return nil
}
