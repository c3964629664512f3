package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// These constants repeat bounds that struct tags of the scenario format have.
const (
	nodesMax         = 50
	qpsMax           = 10_000
	burstMax         = 20_000
	concurrencyMax   = 100
	countMax         = 100
	leaseDurationMin = 3 * time.Second
	leaseDurationMax = 5 * time.Minute
	podDelayMax      = time.Minute
	afterMax         = 24 * time.Hour
	withinMin        = time.Second
	withinMax        = 10 * time.Minute
	quietMin         = 100 * time.Millisecond
	quietMax         = time.Minute
)

// TestRoundTrip checks that Parse returns the scenario that Marshal wrote, for random
// scenarios.
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
		if a, b := want.WorkloadHash(), got.WorkloadHash(); a != b {
			t.Fatalf("read again: hash of the workload %s; want %s\n%s", b, a, data)
		}
	})
}

var (
	genName  = rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`)
	genKey   = rapid.StringMatching(`([a-z]{1,5}\.[a-z]{2}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,8}[A-Za-z0-9])?`)
	genValue = rapid.StringMatching(`([A-Za-z0-9]([A-Za-z0-9_.-]{0,8}[A-Za-z0-9])?)?`)
	// genText generates text with characters that have a meaning in YAML.
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
			PodStartDelay: genDuration(0, podDelayMax).Draw(t, "podStartDelay"),
			PodStopDelay:  genDuration(0, podDelayMax).Draw(t, "podStopDelay"),
		},
		Subject: Subject{
			Replicas:    rapid.IntRange(1, SubjectsMax).Draw(t, "subjects"),
			QPS:         qps,
			Burst:       rapid.IntRange(qps, burstMax).Draw(t, "burst"),
			Concurrency: rapid.IntRange(1, concurrencyMax).Draw(t, "concurrency"),

			LeaseDuration: genDuration(leaseDurationMin, leaseDurationMax).Draw(t, "leaseDuration"),
			Controllers:   maybe(rapid.SliceOfNDistinct(rapid.SampledFrom(kube.ControllerNames()), 1, 3, rapid.ID)).Draw(t, "controllers"),
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

// genWorkload generates steps that act on existing objects.
func genWorkload(t *rapid.T) []Step {
	var steps []Step
	live, dead := map[Target]bool{}, map[Target]bool{}
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		step := Step{After: genDuration(0, afterMax).Draw(t, "after")}
		target := Target{rapid.SampledFrom(append([]Kind{"StatefulSet", "Widget"}, allKinds...)).Draw(t, "kind"), genName.Draw(t, "name")}
		if len(live) > 0 {
			if known := rapid.SampledFrom(sorted(live)).Draw(t, "known"); rapid.Bool().Draw(t, "use known") {
				target = known
			}
		}
		step.Operation = genOperation(t, target, live[target])
		switch step.Operation.(type) {
		case *Create:
			live[target] = true
			delete(dead, target)
		case *Delete:
			delete(live, target)
			dead[target] = true
		}
		untils := append(slices.Clip(target.Kind.row().untils), "condition=Ready", "condition=Ready=false", "jsonpath={.status.phase}", "no jsonpath={.status.phase}", `jsonpath={.items[?(@.a=="b")].c}="d e"`)
		until := rapid.SampledFrom(untils).Draw(t, "until")
		if (until == Gone) == dead[target] && rapid.Bool().Draw(t, "await") {
			step.Await = &Await{Target: target, Until: until, Within: genDuration(withinMin, withinMax).Draw(t, "await within")}
		}
		if step.Await == nil && rapid.Bool().Draw(t, "await quiet") {
			step.Await = &Await{Until: Quiet, Within: genDuration(withinMin, withinMax).Draw(t, "quiet within")}
		}
		steps = append(steps, step)
	}
	return steps
}

// genOperation generates an operation on the target. If lives is false, the target does not
// exist, and the operation is a create.
func genOperation(t *rapid.T, target Target, lives bool) Operation {
	if !lives {
		return genCreate(t, target)
	}
	var fitting []string
	for _, row := range operations {
		if row.effect != creates && (slices.Contains(row.kinds, target.Kind) || row.generic && target.Kind.IsGeneric()) {
			fitting = append(fitting, row.name)
		}
	}
	row, _ := operationNamed(rapid.SampledFrom(fitting).Draw(t, "operation"))
	operation := row.new()
	*operation.target() = target
	switch o := operation.(type) {
	case *Scale:
		o.Replicas = genReplicas.Draw(t, "replicas")
	case *Delete:
		o.Propagation = rapid.SampledFrom([]Propagation{Background, Foreground, Orphan}).Draw(t, "propagation")
	case *Rollout:
		o.Version = genName.Draw(t, "version")
		o.Replicas = maybe(genReplicas).Draw(t, "replicas")
	case *Rollback:
		o.Revision = rapid.IntRange(0, revisionMax).Draw(t, "revision")
	case *Annotate:
		o.Annotations = rapid.MapOfN(genKey, genText, 1, 3).Draw(t, "annotations")
	case *Label:
		keys := rapid.Map(genKey, func(key string) string { return "x/" + strings.ReplaceAll(key, "/", ".") })
		o.Remove = rapid.SliceOfNDistinct(keys, 1, 3, rapid.ID).Draw(t, "remove")
		o.Labels = maybe(genLabels).Filter(func(m map[string]string) bool {
			return !slices.ContainsFunc(o.Remove, func(key string) bool { _, ok := m[key]; return ok })
		}).Draw(t, "labels")
	case *Select:
		o.Selector = rapid.MapOfN(genKey, genValue, 1, 3).Draw(t, "selector")
	case *Configure:
		o.MinReadySeconds = rapid.Ptr(rapid.IntRange(0, minReadySecondsMax), target.Kind == Deployment).Draw(t, "minReadySeconds")
		if target.Kind == Deployment {
			o.Strategy = rapid.SampledFrom([]Strategy{RollingUpdate, Recreate}).Draw(t, "strategy")
			o.RevisionHistoryLimit = rapid.Ptr(rapid.IntRange(0, revisionMax), true).Draw(t, "revisionHistoryLimit")
		}
		if o.Strategy == RollingUpdate {
			o.MaxSurge = maybe(genShare).Draw(t, "maxSurge")
		}
	case *Patch:
		o.Merge = genFields.Draw(t, "merge")
		if target.Kind != "Widget" { // the validation knows the fields of the other kinds
			o.Merge = genSpec.Draw(t, "merge")
		}
	case *Publish:
		o.PublishNotReadyAddresses = rapid.Ptr(rapid.Bool(), false).Draw(t, "publish")
		if rapid.Bool().Draw(t, "external") {
			o.Type, o.ExternalName = ExternalName, "example.com"
		}
		o.Ports = maybe(rapid.Just([]Port{{Port: 7, Protocol: UDP}})).Draw(t, "ports")
	}
	return operation
}

var (
	genReplicas = rapid.Ptr(rapid.IntRange(0, replicasMax), false)
	genShare    = rapid.OneOf(
		rapid.Map(rapid.IntRange(1, replicasMax), func(n int) *IntOrString { return &IntOrString{number: n} }),
		rapid.Map(rapid.IntRange(1, 100), func(n int) *IntOrString { return &IntOrString{text: fmt.Sprintf("%d%%", n)} }))
	genPort = rapid.OneOf(
		rapid.Map(rapid.IntRange(1, portMax), func(n int) *IntOrString { return &IntOrString{number: n} }),
		rapid.Map(rapid.StringMatching(`[a-z]{1,10}`), func(s string) *IntOrString { return &IntOrString{text: s} }))
)

// maybe generates either a value from g or the zero value.
func maybe[V any](g *rapid.Generator[V]) *rapid.Generator[V] {
	var zero V
	return rapid.OneOf(rapid.Just(zero), g)
}

// genSpec generates fields that most kinds have, and that every step may set.
var genSpec = rapid.Custom(func(t *rapid.T) Fields {
	return Fields{"metadata": map[string]any{"annotations": map[string]any{"example.com/a": rapid.String().Draw(t, "annotation")}}}
})

// genFields generates the fields of a manifest, with values of all types.
var genFields = rapid.Custom(func(t *rapid.T) Fields {
	fields := Fields{"spec": genJSON(t, 3)}
	if rapid.Bool().Draw(t, "has metadata") {
		fields["metadata"] = map[string]any{"annotations": map[string]any{genKey.Draw(t, "key"): genText.Draw(t, "value")}}
	}
	return fields
})

func genJSON(t *rapid.T, depth int) any {
	kinds := 8
	if depth == 0 {
		kinds = 6
	}
	switch rapid.IntRange(1, kinds).Draw(t, "type of the value") {
	case 1:
		return nil
	case 2:
		return rapid.Bool().Draw(t, "bool")
	case 3:
		return rapid.Int64().Draw(t, "int")
	case 4:
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "float")
	case 5:
		return genText.Draw(t, "text")
	case 6:
		return rapid.StringMatching("[0-9a-fxoinulrtye~.:_+\n\t -]{0,8}").Draw(t, "text like another value")
	case 7:
		items := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, genJSON(t, depth-1))
		}
		return items
	}
	fields := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "fields") {
		fields[genText.Draw(t, "field")] = genJSON(t, depth-1)
	}
	return fields
}

func genCreate(t *rapid.T, target Target) *Create {
	create := &Create{Target: target, Count: 1, Controller: NoController}
	switch target.Kind {
	case Pod:
		create.Labels = genLabels.Draw(t, "labels")
		create.Count = rapid.IntRange(1, countMax).Draw(t, "count")
		create.Controller = rapid.SampledFrom([]Controller{NoController, ForeignController}).Draw(t, "controller")
	case Service:
		create.Selector = maybe(genLabels).Draw(t, "selector")
		create.PublishNotReadyAddresses = rapid.Bool().Draw(t, "publish")
		create.Headless = rapid.Bool().Draw(t, "headless")
		numbers := rapid.SliceOfNDistinct(rapid.IntRange(1, portMax), 1, 3, rapid.ID[int]).Draw(t, "ports")
		for i, number := range numbers {
			create.Ports = append(create.Ports, Port{
				Name: fmt.Sprintf("port-%d", i), Port: number,
				TargetPort: maybe(genPort).Draw(t, "targetPort"), Protocol: rapid.SampledFrom([]Protocol{TCP, UDP, SCTP}).Draw(t, "protocol"),
			})
		}
	case Endpoints:
		create.Leader = rapid.Bool().Draw(t, "leader")
	case "StatefulSet":
		create.APIVersion, create.Manifest = "apps/v1", genSpec.Draw(t, "manifest")
	case "Widget":
		create.APIVersion, create.Manifest = "example.com/v1beta1", genFields.Draw(t, "manifest")
	default:
		create.Replicas = genReplicas.Draw(t, "replicas")
		create.Labels = genLabels.Draw(t, "labels")
		create.Selector = create.Labels
		create.MinReadySeconds = rapid.IntRange(0, minReadySecondsMax).Draw(t, "minReadySeconds")
	}
	if target.Kind == Deployment {
		create.Strategy = rapid.SampledFrom([]Strategy{RollingUpdate, Recreate}).Draw(t, "strategy")
		if create.Strategy == RollingUpdate {
			create.MaxSurge, create.MaxUnavailable = maybe(genShare).Draw(t, "maxSurge"), maybe(genShare).Draw(t, "maxUnavailable")
		}
		create.Version = maybe(genName).Draw(t, "version")
		create.RevisionHistoryLimit = rapid.Ptr(rapid.IntRange(0, revisionMax), true).Draw(t, "revisionHistoryLimit")
		create.ProgressDeadlineSeconds = rapid.Ptr(rapid.IntRange(minReadySecondsMax+1, progressDeadlineSecondsMax), true).Draw(t, "progressDeadlineSeconds")
		create.Paused = rapid.Bool().Draw(t, "paused")
	}
	return create
}

var (
	genNth   = rapid.IntRange(1, timesMax)
	genGlob  = maybe(rapid.StringMatching(`[a-z]{1,8}-\*`))
	genOwner = maybe(rapid.StringMatching(`(ReplicaSet|\*)/[a-z]{1,8}[*?]`))
)

// genTrigger generates a trigger with a chain of fewer than depth triggers in the field after.
func genTrigger(t *rapid.T, depth int) *Trigger {
	m := &Trigger{}
	switch rapid.IntRange(0, 3).Draw(t, "trigger") {
	case 0:
		m.Request = &RequestTrigger{
			Verb:     rapid.SampledFrom(append([]string{AnyWrite}, Verbs...)).Draw(t, "verb"),
			Resource: maybe(rapid.SampledFrom(Resources)).Draw(t, "resource"), Subresource: maybe(rapid.Just("status")).Draw(t, "subresource"),
			Name: genGlob.Draw(t, "name"), Owner: genOwner.Draw(t, "owner"),
			Phase: rapid.SampledFrom([]Phase{Sent, Committed}).Draw(t, "phase"), Nth: genNth.Draw(t, "nth"),
		}
		if slices.Contains([]string{"get", "list", "watch"}, m.Request.Verb) {
			m.Request.Phase = Sent // a read commits nothing
		}
	case 1:
		m.Event = &EventTrigger{
			Resource: rapid.SampledFrom(Resources).Draw(t, "resource"), Type: maybe(rapid.Just("DELETED")).Draw(t, "type"),
			Name: genGlob.Draw(t, "name"), Owner: genOwner.Draw(t, "owner"), Nth: genNth.Draw(t, "nth"),
		}
	case 2:
		m.State = &StateTrigger{Resource: rapid.SampledFrom(StateResources()).Draw(t, "resource"), Name: genGlob.Draw(t, "name"), Owner: genOwner.Draw(t, "owner")}
		m.State.Is = rapid.SampledFrom(StatesOf(m.State.Resource)).Draw(t, "is")
		m.State.AtLeast = rapid.IntRange(1, replicasMax).Draw(t, "atLeast")
		m.State.AtMost = rapid.Ptr(rapid.IntRange(m.State.AtLeast, replicasMax), true).Draw(t, "atMost")
	case 3:
		m.Step = &StepTrigger{Index: 0, At: rapid.SampledFrom([]Edge{Begun, Done}).Draw(t, "at")}
	}
	if depth > 1 && rapid.Bool().Draw(t, "after") {
		m.After = genTrigger(t, depth-1)
	}
	return m
}

func genFault(t *rapid.T) Fault {
	fault := Fault{Name: genName.Filter(func(s string) bool { return (&Fault{}).options()[s] == nil }).Draw(t, "fault")}
	fault.From = genDuration(0, faultTimeMax).Draw(t, "from")
	if rapid.Bool().Draw(t, "bounded") {
		fault.For = genDuration(faultTimeMin, faultTimeMax).Draw(t, "for")
	}
	if rapid.Bool().Draw(t, "when") {
		fault.When = genTrigger(t, afterDepthMax)
		fault.Times = rapid.IntRange(0, timesMax).Draw(t, "times")
	}
	fault.MustFire = rapid.Bool().Draw(t, "mustFire")
	if rapid.Bool().Draw(t, "until") {
		fault.Until = genTrigger(t, afterDepthMax)
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
	data, err := json.Marshal(values) // YAML includes JSON
	if err != nil {
		t.Fatal(err)
	}
	if fault.Params, err = ParseParams("p.yaml", fault.Name, data); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return fault
}

// TestClone checks that a clone equals the original. A change of one must not change the other.
func TestClone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genScenario(t)
		clone := s.Clone()
		if diff := cmp.Diff(s, clone, equal); diff != "" {
			t.Fatalf("(-original +clone):\n%s", diff)
		}
		before, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		for i := range clone.Workload {
			clone.Workload[i].After++
			if op := clone.Workload[i].Operation; op != nil {
				op.target().Name = "other"
			}
			switch op := clone.Workload[i].Operation.(type) {
			case *Create:
				if op.Labels != nil {
					op.Labels["other"] = "other"
				}
				if op.Replicas != nil {
					*op.Replicas++
				}
				if spec, ok := op.Manifest["spec"].(map[string]any); ok {
					spec["other"] = "other"
				}
			case *Label:
				op.Remove[0] = "other"
			case *Patch:
				op.Merge["spec"] = "other"
			}
			if await := clone.Workload[i].Await; await != nil {
				await.Within++
			}
		}
		for i := range clone.Faults {
			clone.Faults[i].From++
		}
		for i := range clone.Exercises {
			clone.Exercises[i] = "other"
		}
		after, err := s.Marshal()
		if err != nil || string(after) != string(before) {
			t.Errorf("error %v; changed with its clone (-before +after):\n%s", err, cmp.Diff(string(before), string(after)))
		}
	})
}

// sorted returns the targets in a fixed order, because the order of a Go map is random.
func sorted(targets map[Target]bool) []Target {
	return slices.SortedFunc(maps.Keys(targets), func(a, b Target) int {
		return slices.Compare([]string{string(a.Kind), a.Name}, []string{string(b.Kind), b.Name})
	})
}
