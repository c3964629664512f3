package objects

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestDecodeSkewed checks that a Decoder decodes each version once. It must decode a version
// with skewed timestamps again, because the next delivery may have another skew.
func TestDecodeSkewed(t *testing.T) {
	at := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	object := func(ready time.Time, skewed bool) *history.Object {
		return &history.Object{
			Ref:    history.Ref{Resource: PodResource, Name: "a", UID: "u", Version: 7},
			Skewed: skewed,
			Body: fmt.Appendf(nil, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`,
				ready.Format(time.RFC3339)),
		}
	}
	d := NewDecoder()
	decode := func(ready time.Time, skewed bool) *Pod {
		t.Helper()
		p, err := d.Pod(object(ready, skewed))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if first := decode(at, false); decode(at, false) != first {
		t.Error("the same version was decoded twice")
	}
	for _, skew := range []time.Duration{time.Minute, -10 * time.Minute, 2 * time.Second} {
		want := at.Add(skew)
		if p := decode(want, true); !p.ReadySince.Equal(want) || Cached[Pod](d, "u", 7).ReadySince != at {
			t.Errorf("skew %v: ready since %v, want %v", skew, p.ReadySince, want)
		}
	}
	if len(d.oldest) != 2 {
		t.Errorf("%d versions are cached, want 2", len(d.oldest))
	}
}

// TestDecodeInvalid checks that an error names the object and the field, without the names of Go
// types.
func TestDecodeInvalid(t *testing.T) {
	object := &history.Object{Ref: history.Ref{Resource: PodResource, Name: "a", UID: "u", Version: 7}, Body: []byte(`{"status":5}`)}
	_, err := NewDecoder().Pod(object)
	if want := "decoding the body of pods a, version 7: found number at /status; expected an object"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
