package cluster

import (
	"strings"
	"testing"
)

func TestTokenFile(t *testing.T) {
	tokens := NewTokens()
	file := string(tokens.File())
	for _, want := range []string{
		tokens[Admin] + `,gauntlet:admin,admin,"system:masters"` + "\n",
		tokens[Subject] + `,gauntlet:subject,subject,""` + "\n",
		tokens[Support] + `,gauntlet:support,support,"system:masters"` + "\n",
		tokens[Kubelet] + `,gauntlet:kubelet,kubelet,"system:masters"` + "\n",
	} {
		if !strings.Contains(file, want) {
			t.Errorf("token file has no line %q:\n%s", want, file)
		}
	}
	if len(tokens) != 4 || strings.Count(file, "\n") != 4 {
		t.Errorf("%d tokens, want 4 with one line each:\n%s", len(tokens), file)
	}
}
