package main

import (
	"strings"
	"testing"
)

// TestFleetRunRefuses checks that "gauntlet fleet run" refuses campaigns that the pods cannot run.
// It must send no request for them.
func TestFleetRunRefuses(t *testing.T) {
	for _, test := range []struct{ flag, want string }{
		{"--claim=results --subjects=exec:/bin/true", `--subjects: found "exec:/bin/true"; expected ours or upstream, which are in the image`},
		{"--claim=results --seeds=7..3", `--seeds: found "7..3"; expected a range such as 1..1000`},
		{"--claim=results --provider=kind", "--provider=kind: expected embedded or virtual"},
		{"--claim=results --scenario=burstt", "burstt"},
		{"--claim=results --parallelism=0", "--parallelism=0: expected 1 to 10000"},
		{"", "name either a PersistentVolumeClaim or a bucket for the results"},
		{"--claim=results --store=s3://bucket", "name either a PersistentVolumeClaim or a bucket for the results"},
		{"--store=ftp://bucket", `--store: found "ftp://bucket"; expected s3://BUCKET`},
		{"--store=s3://key:secret@bucket", "found a user in the URL of bucket bucket"},
		{"--claim=results --store-secret=keys", "--store-secret: found no --store"},
	} {
		_, err := command(t, append([]string{"fleet", "run", "night", "--dry-run"}, strings.Fields(test.flag)...)...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v; want %q", test.flag, err, test.want)
		}
	}
}
