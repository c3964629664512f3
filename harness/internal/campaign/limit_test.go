package campaign

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestLimit checks how runs that end one after another change a limit. A run of 10 s stalls for the
// given time.
func TestLimit(t *testing.T) {
	const none, little, much = 0, 2500 * time.Millisecond, 2600 * time.Millisecond
	for _, test := range []struct {
		name   string
		limit  *Limit
		stalls []time.Duration
		want   []int // the limit after each run
	}{
		{"a fixed limit", Fixed(3), []time.Duration{much, none, none, none, none}, []int{3, 3, 3, 3, 3}},
		{"grows to its highest value", Adaptive(1, 3), []time.Duration{none, none, little, none, none, none}, []int{2, 2, 3, 3, 3, 3}},
		{"shrinks to 1", Adaptive(2, 4), []time.Duration{much, much, much}, []int{1, 1, 1}},
		{"a stall begins the count again", Adaptive(3, 4), []time.Duration{none, none, much, none, none}, []int{3, 3, 2, 2, 3}},
		{"the start is above the highest value", Adaptive(4, 2), []time.Duration{none}, []int{4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []int
			for _, stalled := range test.stalls {
				test.limit.begin()(&reports.Run{Duration: 10 * time.Second, Stalled: stalled})
				got = append(got, test.limit.Current())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLimitConcurrentRuns checks that several runs that stall at the same time decrease the limit
// only once.
func TestLimitConcurrentRuns(t *testing.T) {
	limit := Adaptive(4, 4)
	var ends []func(*reports.Run)
	for range 4 {
		ends = append(ends, limit.begin())
	}
	for _, end := range ends {
		end(&reports.Run{Duration: time.Second, Stalled: time.Second})
	}
	limit.begin()(&reports.Run{}) // a run without a history
	if got := limit.Current(); got != 3 {
		t.Errorf("limit %d, want 3", got)
	}
	limit.begin()(nil) // a run that could not start
	if got := limit.Current(); got != 2 {
		t.Errorf("limit %d after a run that could not start, want 2", got)
	}
}

// TestRunParallelAdapts checks that RunParallel makes more runs at the same time if runs do not
// stall. The last three runs end only after all of them have begun.
func TestRunParallelAdapts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if all goroutines wait
		var begun sync.WaitGroup
		begun.Add(3)
		quick := func(context.Context) (*reports.Run, error) { return &reports.Run{Duration: time.Second}, nil }
		together := func(context.Context) (*reports.Run, error) {
			begun.Done()
			begun.Wait()
			return &reports.Run{Duration: time.Second}, nil
		}
		taken := 0
		err := RunParallel(t.Context(), Adaptive(1, 3), of(quick, quick, quick, together, together, together), func(int, *reports.Run, error) error {
			taken++
			return nil
		})
		if err != nil || taken != 6 {
			t.Errorf("%d runs, error %v; want 6 runs", taken, err)
		}
	})
}
