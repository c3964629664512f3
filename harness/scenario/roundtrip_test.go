package scenario

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestRoundTrip: Parse gives back what Marshal writes, whatever the scenario.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genScenario(t)
		data, err := want.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse("x.yaml", data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if diff := cmp.Diff(want, got, equal); diff != "" {
			t.Fatalf("read again (-want +got):\n%s\n%s", diff, data)
		}
	})
}

var (
	genName  = rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`)
	genKey   = rapid.StringMatching(`([a-z]{1,5}\.[a-z]{2}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,8}[A-Za-z0-9])?`)
	genValue = rapid.StringMatching(`([A-Za-z0-9]([A-Za-z0-9_.-]{0,8}[A-Za-z0-9])?)?`)
	// genText is prose with what YAML gives a meaning to.
	genText   = rapid.StringMatching(`[a-z'"#&*!|>%@:{}\[\],?~é0-9-][a-z'"#&*!|>%@:{}\[\],?~\\é0-9-]{0,10}( [a-z'"#&*!|>%@:{}\[\],?~\\é0-9-]{1,10}){0,8}`)
	genLabels = rapid.MapOfN(genKey, genValue, 1, 3)
)

func genDuration(least, most time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(int64(least), int64(most)), func(n int64) time.Duration { return time.Duration(n) })
}

func genScenario(t *rapid.T) *Scenario {
	qps := rapid.IntRange(1, qpsMax).Draw(t, "qps")
	return &Scenario{
		Name:        genName.Draw(t, "name"),
		Description: genText.Draw(t, "description"),
		Seed:        rapid.Uint64().Draw(t, "seed"),
		Cluster: Cluster{
			Nodes:         rapid.IntRange(1, nodesMax).Draw(t, "nodes"),
			PodStartDelay: genDuration(0, podStartDelayMax).Draw(t, "podStartDelay"),
		},
		Subject: Subject{
			Replicas:    rapid.IntRange(1, subjectsMax).Draw(t, "subjects"),
			QPS:         qps,
			Burst:       rapid.IntRange(qps, burstMax).Draw(t, "burst"),
			Concurrency: rapid.IntRange(1, concurrencyMax).Draw(t, "concurrency"),
		},
		Workload: genWorkload(t),
		Faults:   rapid.SliceOfN(rapid.Custom(genFault), 0, 4).Draw(t, "faults"),
		Settle: Settle{
			Within: genDuration(withinMin, withinMax).Draw(t, "within"),
			Quiet:  genDuration(quietMin, quietMax).Draw(t, "quiet"),
		},
		Exercises: rapid.SliceOfNDistinct(genName, 0, 3, rapid.ID).Draw(t, "exercises"),
	}
}

// genWorkload makes steps that act on what is there.
func genWorkload(t *rapid.T) []Step {
	var steps []Step
	live, dead := map[Target]bool{}, map[Target]bool{}
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		step := Step{After: genDuration(0, afterMax).Draw(t, "after")}
		target := Target{rapid.SampledFrom(knownKinds(false)).Draw(t, "kind"), genName.Draw(t, "name")}
		if len(live) > 0 {
			if known := rapid.SampledFrom(sorted(live)).Draw(t, "known"); rapid.Bool().Draw(t, "use known") {
				target = known
			}
		}
		replicas := rapid.IntRange(0, replicasMax).Draw(t, "replicas")
		switch {
		case !live[target]:
			step.Create = genCreate(t, target, replicas)
			live[target] = true
			delete(dead, target)
		case target.Kind.owner() && rapid.Bool().Draw(t, "scale"):
			step.Scale = &Scale{Kind: target.Kind, Name: target.Name, Replicas: &replicas}
		default:
			step.Delete = &Delete{Kind: target.Kind, Name: target.Name,
				Propagation: rapid.SampledFrom([]Propagation{Background, Foreground, Orphan}).Draw(t, "propagation")}
			delete(live, target)
			dead[target] = true
		}
		if rapid.Bool().Draw(t, "await") {
			step.Await = genAwait(t, target, dead[target])
		}
		steps = append(steps, step)
	}
	return steps
}

func genCreate(t *rapid.T, target Target, replicas int) *Create {
	create := &Create{Kind: target.Kind, Name: target.Name, Count: 1, Labels: genLabels.Draw(t, "labels"), Controller: NoController}
	if target.Kind.owner() {
		create.Replicas = &replicas
		create.Selector = create.Labels
		create.MinReadySeconds = rapid.IntRange(0, minReadySecondsMax).Draw(t, "minReadySeconds")
		return create
	}
	create.Count = rapid.IntRange(1, countMax).Draw(t, "count")
	create.Controller = rapid.SampledFrom([]Controller{NoController, ForeignController}).Draw(t, "controller")
	return create
}

func genAwait(t *rapid.T, target Target, deleted bool) *Await {
	await := &Await{Kind: target.Kind, Name: target.Name, Until: Ready, Within: genDuration(withinMin, withinMax).Draw(t, "await within")}
	if deleted {
		await.Until = Gone
	}
	return await
}

func genFault(t *rapid.T) Fault {
	fault := Fault{Name: genName.Filter(func(s string) bool { return s != "from" && s != "for" }).Draw(t, "fault")}
	fault.From = genDuration(0, faultTimeMax).Draw(t, "from")
	if rapid.Bool().Draw(t, "bounded") {
		fault.For = genDuration(faultTimeMin, faultTimeMax).Draw(t, "for")
	}
	values := map[string]any{
		"text":   genText.Draw(t, "text"),
		"number": rapid.Int64().Draw(t, "number"),
		"chance": rapid.Float64Range(0, 1).Draw(t, "chance"),
		"truth":  rapid.Bool().Draw(t, "truth"),
		"every":  genDuration(0, time.Hour).Draw(t, "every").String(),
		"labels": genLabels.Draw(t, "labels"),
		"names":  rapid.SliceOfN(genValue, 1, 3).Draw(t, "names"),
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if rapid.Bool().Draw(t, "without "+name) {
			delete(values, name)
		}
	}
	data, err := json.Marshal(values) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	if fault.Params, err = ParseParams("p.yaml", fault.Name, data); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return fault
}

// sorted lists targets in an order that does not depend on the map's.
func sorted(targets map[Target]bool) []Target {
	return slices.SortedFunc(maps.Keys(targets), func(a, b Target) int {
		return slices.Compare([]string{string(a.Kind), a.Name}, []string{string(b.Kind), b.Name})
	})
}
