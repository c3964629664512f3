package main

import (
	"strings"
	"testing"
)

// TestFleetRunRefuses checks that "gauntlet fleet run" refuses campaigns that the pods cannot run.
// It must send no request for them.
func TestFleetRunRefuses(t *testing.T) {
	for _, test := range []struct{ flag, want string }{
		{"--subjects=exec:/bin/true", `--subjects: found "exec:/bin/true"; expected ours or upstream, which are in the image`},
		{"--seeds=7..3", `--seeds: found "7..3"; expected a range such as 1..1000`},
		{"--provider=kind", "--provider=kind: expected embedded or virtual"},
		{"--scenario=burstt", "burstt"},
		{"--parallelism=0", "--parallelism=0: expected 1 to 10000"},
	} {
		_, err := command(t, "fleet", "run", "night", "--claim=results", "--dry-run", test.flag)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v; want %q", test.flag, err, test.want)
		}
	}
}
