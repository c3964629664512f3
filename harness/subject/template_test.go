package subject

import (
	"strings"
	"testing"
)

// TestExpand checks which templates are valid, and the errors about others.
func TestExpand(t *testing.T) {
	const expected = "; expected no template fields other than {{.Kubeconfig}}, "
	for _, test := range []struct{ name, text, want, wantErr string }{
		{"no template", "--v=4", "--v=4", ""},
		{"nothing", "", "", ""},
		{"a field", "--name={{ .Replica }}", "--name=subject-0", ""},
		{"a number", "--port={{.WebhookPort}}", "--port=9443", ""},
		{"a text", `{{"{{"}} .Name }}`, "{{ .Name }}", ""},
		{"a comment", "a{{/* x */}}b", "ab", ""},
		{"a misspelled field", "--config={{.Kubeconfg}}", "", `found "{{.Kubeconfg}}"` + expected + "*did you mean {{.Kubeconfig}}?"},
		{"a field of a field", "{{.Replica.Name}}", "", `found "{{.Replica.Name}}"` + expected},
		{"a function", `{{printf "%999999999d" 1}}`, "", `found "{{printf \"%999999999d\" 1}}"` + expected},
		{"a call", "{{call .Replica}}", "", `found "{{call .Replica}}"` + expected},
		{"an unknown function", "{{now}}", "", `found "{{now}}"` + expected},
		{"a condition", "{{if .Replica}}x{{end}}", "", `found "{{if .Replica}}x{{end}}"` + expected},
		{"a definition", `{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`, "", `found "{{define}}"` + expected},
		{"a range without a value", "{{range}}", "", `found "{{range}}"` + expected},
		{"no end", "{{.Replica", "", `found "{{.Replica"` + expected + "*: the closing }} is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := expand(test.text, Values{Replica: "subject-0", WebhookPort: 9443})
			if got != test.want || (err == nil) != (test.wantErr == "") {
				t.Fatalf("got %q, error %v; want %q", got, err, test.want)
			}
			if err == nil {
				return
			}
			start, end, _ := strings.Cut(test.wantErr, "*")
			if text := err.Error(); !strings.HasPrefix(text, start) || !strings.HasSuffix(text, end) || strings.Contains(text, "template:") {
				t.Errorf("error %q; want %q", text, test.wantErr)
			}
		})
	}
}
