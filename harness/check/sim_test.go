package check

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyCode contains the status codes with which the simulated API server refuses requests.
var anyCode = []int{403, 409, 429, 500, 503}

// drawConditions draws random parameters of a simulated run.
func drawConditions(t *rapid.T) conditions {
	ms := func(label string, limit int) time.Duration {
		return time.Duration(rapid.IntRange(0, limit).Draw(t, label)) * time.Millisecond
	}
	return conditions{
		seed:         rapid.Uint64().Draw(t, "seed"),
		podLag:       ms("pod lag", 3000),
		ownerLag:     ms("owner lag", 2000),
		grace:        ms("grace", 3000),
		disturbances: rapid.IntRange(0, 25).Draw(t, "disturbances"),
		codes:        anyCode,
		refused:      rapid.SampledFrom([]float64{0, 0, 0.1, 0.5}).Draw(t, "refused"),
		lost:         rapid.SampledFrom([]float64{0, 0, 0.05, 0.2}).Draw(t, "lost"),
		restarts:     rapid.IntRange(0, 2).Draw(t, "restarts"),
		resource:     rapid.SampledFrom([]string{controllers, replicaSets}).Draw(t, "resource"),
		replicas:     rapid.IntRange(1, 40).Draw(t, "replicas"),
	}
}

// checkRun runs all checks on a simulated run. The settings give every correct controller enough
// time to converge.
func checkRun(t testing.TB, s *cluster) []Result {
	t.Helper()
	settings := testSettings
	settings.Within = time.Minute
	results, _, err := Run(settings, s.all())
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestCorrectControllerNeverFails(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := simulate(drawConditions(r), rules{})
		for _, result := range checkRun(t, s) {
			if result.Verdict == Fail || result.Verdict == Unknown {
				r.Errorf("%s: %s: %s %+v", result.Check, result.Verdict, result.Reason, result.Evidence)
			}
		}
	})
}

func TestCorrectControllerOfManyPodsNeverFails(t *testing.T) {
	for seed := range uint64(2) {
		c := conditions{
			seed: seed, podLag: 500 * time.Millisecond, replicas: 1200, resource: replicaSets, refused: 0.001, codes: anyCode, disturbances: 10,
		}
		for _, result := range checkRun(t, simulate(c, rules{})) {
			if result.Verdict == Fail || result.Verdict == Unknown {
				t.Errorf("seed %d: %s: %s: %s", seed, result.Check, result.Verdict, result.Reason)
			}
		}
	}
}

// TestBrokenControllersAreDetected breaks one rule of the simulated controller at a time. The
// check of that rule must fail in enough runs.
func TestBrokenControllersAreDetected(t *testing.T) {
	lagging := conditions{podLag: 2 * time.Second, ownerLag: 100 * time.Millisecond, resource: replicaSets, replicas: 15, disturbances: 20}
	failing := conditions{podLag: 100 * time.Millisecond, resource: replicaSets, replicas: 30, refused: 0.5, codes: anyCode, disturbances: 10}
	outage := failing
	outage.refused, outage.codes = 1, []int{500}
	many := conditions{podLag: 2 * time.Second, resource: replicaSets, replicas: 1200, disturbances: 10}
	graceful := lagging
	graceful.grace, graceful.podLag = 4*time.Second, 300*time.Millisecond
	settled := lagging
	settled.podLag = 100 * time.Millisecond
	restarting := lagging
	restarting.restarts = 2
	for _, c := range []struct {
		name       string
		rules      rules
		conditions conditions
		check      string
		runs       uint64 // the number of runs, each with another random seed
		least      uint64 // in how many of the runs the check must fail at least
	}{
		{"no expectations", rules{noExpectations: true}, lagging, "expectations", 10, 9},
		{"no burst limit", rules{noBurstLimit: true}, many, "burst-limit", 2, 2},
		{"no slow start", rules{noSlowStart: true}, lagging, "slow-start", 20, 20},
		{"no back-off", rules{noBackOff: true}, outage, "back-off", 10, 9},
		{"counts failed pods as active", rules{countsFailed: true, deletesInAnyOrder: true}, lagging, "converged", 20, 10},
		{"counts pods of other controllers", rules{takesForeign: true}, lagging, "ownership", 20, 4},
		{"adopts without a live read (R10)", rules{noLiveRead: true}, lagging, "ownership", 20, 15},
		{"failed creates do not lower expectations (R16)", rules{keepsFailedExpectations: true}, failing, "converged", 20, 15},
		{"counts terminating pods (R2)", rules{countsTerminating: true}, graceful, "not-below-desired", 20, 5},
		{"ignores the order of scale-down (R13)", rules{deletesInAnyOrder: true}, settled, "scale-down-order", 20, 10},
		{"reports every pod as ready", rules{reportsAllReady: true}, lagging, "status", 20, 20},
		{"reports spec.replicas as status.replicas", rules{reportsSpecReplicas: true}, lagging, "status", 20, 20},
		{"reports an observedGeneration above the generation", rules{reportsLaterGeneration: true}, lagging, "status", 20, 20},
		{"never raises observedGeneration", rules{reportsFirstGeneration: true}, lagging, "status", 20, 20},
		{"never sets ReplicaFailure", rules{reportsNoFailure: true}, failing, "status", 20, 18},
		{"creates a whole batch after a restart (R28)", rules{repeatsBatch: true}, restarting, "not-above-desired", 20, 15},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireDetected(t, c.check, c.runs, c.least, func(seed uint64) *cluster {
				c.conditions.seed = seed
				return simulate(c.conditions, c.rules)
			})
		})
	}
}

// requireDetected fails the test unless the check fails in at least the given number of runs
// (least). Each run has another seed. With -short, one failure is enough.
func requireDetected(t *testing.T, check string, runs, least uint64, simulate func(seed uint64) *cluster) {
	t.Helper()
	if testing.Short() {
		least = 1
	}
	detected, tried, failures := uint64(0), uint64(0), map[string]int{}
	for ; tried < runs && !(testing.Short() && detected > 0); tried++ {
		for _, result := range checkRun(t, simulate(tried)) {
			if result.Verdict != Fail {
				continue
			}
			failures[result.Check]++
			if result.Check == check {
				detected++
			}
		}
	}
	t.Logf("%s failed in %d of %d runs; failures of all checks: %v", check, detected, tried, failures)
	if detected < least {
		t.Errorf("%s failed in %d of %d runs, expected at least %d", check, detected, tried, least)
	}
}
