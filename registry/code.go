package registry

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Code is one entry of error-codes.yaml. The fields mean what those of fault.Spec mean.
type Code struct {
	Name       string
	Category   string
	Status     int
	AlsoStatus int   `yaml:"also_status"`
	Retryable  *bool // required: a default would decide it unseen
	Client     string
	Hint       string
}

// Categories are the ten that a code may have.
func Categories() []string {
	return []string{
		"VALIDATION", "UNAUTHENTICATED", "FORBIDDEN", "NOT_FOUND", "CONFLICT", "PRECONDITION", "RATE_LIMITED", "DATA_INTEGRITY",
		"TRANSIENT_DEPENDENCY", "INTERNAL",
	}
}

var codeName = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

func checkCodes(codes []Code) []error {
	var p problems
	for i, c := range codes {
		entry := c.Name
		if !codeName.MatchString(c.Name) {
			entry = fmt.Sprintf("entry %d", i+1)
			p.addf(entry, "name %q is not UPPER_SNAKE_CASE", c.Name)
		}
		p.once(entry, "name", c.Name)
		if !slices.Contains(Categories(), c.Category) {
			p.addf(entry, "category %q is not one of %s", c.Category, strings.Join(Categories(), ", "))
		}
		if c.Status < 400 || c.Status > 599 {
			p.addf(entry, "status %d is not an HTTP error status (400 to 599)", c.Status)
		}
		if c.AlsoStatus != 0 && (c.AlsoStatus < 400 || c.AlsoStatus > 599 || c.AlsoStatus == c.Status) {
			p.addf(entry, "also_status %d is not another HTTP error status (400 to 599); leave it out if there is no second one", c.AlsoStatus)
		}
		if c.Retryable == nil {
			p.addf(entry, "retryable is missing; say true or false")
		}
		p.sentence(entry, "client", c.Client)
		p.sentence(entry, "hint", c.Hint)
	}
	return p.list
}

// goName turns UPPER_SNAKE_CASE into an exported Go name.
func goName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word != "DB" && word != "TX" {
			word = word[:1] + strings.ToLower(word[1:])
		}
		b.WriteString(word)
	}
	return b.String()
}

func codesGo(codes []Code) []byte {
	var b bytes.Buffer
	b.WriteString("// Code generated from registry/error-codes.yaml by make generate. DO NOT EDIT.\n\npackage fault\n\n" +
		"// The kit's codes. Each is described in docs/reference/error-codes.md.\nvar (\n")
	for _, c := range codes {
		fmt.Fprintf(&b, "\t%s = NewCode(Spec{Name: %q, Category: Category%s, Status: %d", goName(c.Name), c.Name, goName(c.Category), c.Status)
		if c.AlsoStatus != 0 {
			fmt.Fprintf(&b, ", AlsoStatus: %d", c.AlsoStatus)
		}
		if *c.Retryable {
			b.WriteString(", Retryable: true")
		}
		fmt.Fprintf(&b, ", Client: %q, Hint: %q})\n", c.Client, c.Hint)
	}
	b.WriteString(")\n")
	return b.Bytes()
}

func codesPage(codes []Code) []byte {
	var b bytes.Buffer
	b.WriteString(pageHead("error-codes.yaml", "Failure codes") + `Every failure that leaves the kit carries one of these codes. A code is never renamed, given another meaning, or used again once released.
*Retry*: the same caller may send the same thing again, as it is. *Clients read* is all that a client gets to see besides the code; *operator* is
for logs and consoles.

| code | category | status | retry | clients read | operator |
|---|---|---|---|---|---|
`)
	for _, c := range codes {
		status := fmt.Sprint(c.Status)
		if c.AlsoStatus != 0 {
			status = fmt.Sprintf("%d, %d", c.AlsoStatus, c.Status)
		}
		row(&b, "`"+c.Name+"`", c.Category, status, yesNo(*c.Retryable), c.Client, c.Hint)
	}
	return b.Bytes()
}
