package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Resources of the objects in tests of generic controllers.
const (
	statefulSets = "statefulsets.apps"
	revisions    = "controllerrevisions.apps"
	claims       = "persistentvolumeclaims"
	widgets      = "widgets.example.com"
	configMaps   = "configmaps"
)

// Two generic controllers. Package kube has a row for the kind of the first one, but not for
// Widget, which is a custom resource.
var (
	statefulSetController = kube.Controller{
		Name: "statefulset-controller", Kind: "StatefulSet",
		Watches: []string{"StatefulSet", kube.Pod, "ControllerRevision"}, Writes: []string{"StatefulSet", kube.Pod, "ControllerRevision"},
	}
	widgetController = kube.Controller{
		Name: "widget-controller", Kind: "Widget",
		Watches: []string{"Widget", "ConfigMap"}, Writes: []string{"Widget", "ConfigMap"},
	}
)

// podReader is a generic controller that does not say that it writes pods.
var podReader = kube.Controller{Name: "pod-reader", Kind: "StatefulSet", Watches: []string{"StatefulSet", kube.Pod}, Writes: []string{"StatefulSet"}}

// cronJobController is a generic controller with the trait acts-by-time: it writes because time
// has passed.
var cronJobController = kube.Controller{
	Name: "cronjob-controller", Kind: "CronJob", Traits: []kube.Trait{kube.ActsByTime},
	Watches: []string{"CronJob", "Job"}, Writes: []string{"CronJob", "Job"},
}

// genericSettings returns the settings of the tests, with the given controllers under test.
func genericSettings(controllers ...kube.Controller) Settings {
	s := testSettings
	s.Controllers = controllers
	return s
}

// controlled returns a copy of the object o whose controllerRef names the object controller, of
// the given kind.
func controlled(o history.Object, kind string, controller *history.Object) history.Object {
	o.Owners = []history.Owner{{Kind: kind, Name: controller.Name, UID: controller.UID, Controller: true}}
	return o
}

// objectOf returns an object with the given resource and name. The parameter body is its spec
// and status as JSON.
func objectOf(resource, name, body string) history.Object {
	return history.Object{
		Ref:        history.Ref{Resource: resource, Namespace: namespace, Name: name, UID: types.UID(resource + "-" + name)},
		Generation: 1, Body: json.RawMessage(body),
	}
}

// add records the commit of an object and the delivery of its watch event.
func (h *historyBuilder) add(o history.Object) *history.Object {
	added := h.commit(history.Added, o)
	h.deliver(added)
	return added
}

// send records that the process sends a write of the object o, without a response.
func (h *historyBuilder) send(verb, subresource string, o *history.Object) *requestStep {
	r := history.Request{Verb: verb, Resource: o.Resource, Subresource: subresource, Namespace: o.Namespace, Name: o.Name, Object: o}
	switch verb {
	case "create":
		r.Name = ""
	case "delete":
		r.Object = nil
	}
	return h.request(r)
}

// apply records that the process creates or updates an object successfully. It also records the
// commit, the response and the delivery of the watch event.
func (h *historyBuilder) apply(verb, subresource string, o history.Object) *history.Object {
	sent := o
	if verb == "create" {
		sent.UID = ""
	}
	step := h.send(verb, subresource, &sent)
	step.made = h.commit(history.Modified, o)
	step.answered(200)
	h.deliver(step.made)
	return step.made
}

// statefulSet records the commit and the delivery of a StatefulSet with the given spec.replicas.
func (h *historyBuilder) statefulSet(replicas int) *history.Object {
	return h.add(objectOf(statefulSets, "web", fmt.Sprintf(`{"spec":{"replicas":%d},"status":{"replicas":0,"availableReplicas":0}}`, replicas)))
}

// statefulPod returns the pod of a StatefulSet with the given ordinal.
func statefulPod(set *history.Object, ordinal int) history.Object {
	o := objectOf(objects.PodResource, fmt.Sprintf("web-%d", ordinal), string(podBody("Running", true)))
	o.Labels = map[string]string{"app": "web"}
	return controlled(o, "StatefulSet", set)
}

// replicaSetPod returns a pod that a ReplicaSet controls. No controller under test watches
// ReplicaSets.
func replicaSetPod(name string) history.Object {
	return controlled(objectOf(objects.PodResource, name, string(podBody("Running", true))), "ReplicaSet", &history.Object{Ref: history.Ref{Name: "other", UID: "other-uid"}})
}

// widget records the commit and the delivery of a Widget. It also records that the process
// creates a ConfigMap that the Widget controls.
func widget(h *historyBuilder) (o, config *history.Object) {
	o = h.add(objectOf(widgets, "w", `{"spec":{}}`))
	created := controlled(objectOf(configMaps, "w-config", `{"data":{}}`), "Widget", o)
	return o, h.apply("create", "", created)
}

// updateAfterFailures records 6 updates of a Widget that change nothing. Before each update, the process
// fails to create a ConfigMap that the Widget with the given name controls.
func updateAfterFailures(h *historyBuilder, owner string) {
	o, _ := widget(h)
	controller := o
	if owner != o.Name {
		controller = h.add(objectOf(widgets, owner, `{"spec":{}}`))
	}
	for range 6 {
		created := controlled(objectOf(configMaps, "taken", `{"data":{}}`), "Widget", controller)
		h.send("create", "", &created).answered(409)
		step := h.send("update", "status", o)
		step.made = o
		step.answered(200)
	}
}

func TestGenericControllers(t *testing.T) {
	sets, wide := []kube.Controller{statefulSetController}, []kube.Controller{widgetController}
	for _, test := range []struct {
		testCase
		check       string
		controllers []kube.Controller
	}{
		{check: "ownership", controllers: sets, testCase: testCase{name: "deletes its own pod", want: Pass, build: func(h *historyBuilder) {
			set := h.statefulSet(1)
			h.send("delete", "", h.add(statefulPod(set, 0))).answered(200)
		}}},
		{check: "ownership", controllers: []kube.Controller{podReader}, testCase: testCase{name: "deletes a pod of a StatefulSet, and has controlled no pod", want: notFailed, build: func(h *historyBuilder) {
			h.send("delete", "", h.add(statefulPod(h.statefulSet(1), 0))).answered(200)
		}}},
		{check: "ownership", controllers: sets, testCase: testCase{name: "deletes a pod of a ReplicaSet", want: Fail, evidence: "deleted Pod ns/other-1; in its cache the object has controller ReplicaSet other", build: func(h *historyBuilder) {
			h.add(statefulPod(h.statefulSet(1), 0))
			h.send("delete", "", h.add(replicaSetPod("other-1"))).answered(200)
		}}},
		{check: "ownership", controllers: sets, testCase: testCase{name: "deletes a pod that a ReplicaSet adopted", want: notFailed, build: func(h *historyBuilder) {
			pod := h.add(statefulPod(h.statefulSet(1), 0))
			adopted := replicaSetPod("web-0")
			adopted.UID = pod.UID
			h.send("delete", "", h.add(adopted)).answered(200)
		}}},
		{check: "ownership", controllers: sets, testCase: testCase{name: "adopts a pod and deletes an orphan", want: Pass, build: func(h *historyBuilder) {
			set := h.statefulSet(2)
			h.add(statefulPod(set, 0))
			orphan := statefulPod(set, 1)
			orphan.Owners = nil
			h.adopt(h.add(orphan), set).answered(200)
			h.send("delete", "", h.add(statefulPod(set, 1))).answered(200)
		}}},
		{check: "ownership", controllers: wide, testCase: testCase{name: "deletes its own ConfigMap", want: Pass, build: func(h *historyBuilder) {
			_, config := widget(h)
			h.send("delete", "", config).answered(200)
		}}},
		{check: "ownership", controllers: wide, testCase: testCase{name: "deletes a ConfigMap of another controller", want: Fail, evidence: "deleted ConfigMap ns/foreign", build: func(h *historyBuilder) {
			widget(h)
			foreign := controlled(objectOf(configMaps, "foreign", ""), "Gadget", &history.Object{Ref: history.Ref{Name: "g", UID: "g-uid"}})
			h.send("delete", "", h.add(foreign)).answered(200)
		}}},
		{check: "ownership", controllers: wide, testCase: testCase{name: "deletes a ConfigMap of an object that it watches", want: notFailed, build: func(h *historyBuilder) {
			_, config := widget(h)
			nested := controlled(objectOf(configMaps, "nested", ""), "ConfigMap", config)
			h.send("delete", "", h.add(nested)).answered(200)
		}}},
		{check: "ownership", controllers: wide, testCase: testCase{name: "an object with two controllers", want: Fail, evidence: "configmaps ns/foreign has 2 owner references", build: func(h *historyBuilder) {
			o := objectOf(configMaps, "foreign", "")
			o.Owners = []history.Owner{{Kind: "Widget", UID: "1", Controller: true}, {Kind: "Gadget", UID: "2", Controller: true}}
			h.commit(history.Added, o)
		}}},

		{check: "cache-synced", controllers: sets, testCase: testCase{name: "creates a pod after its caches have synced", want: Pass, build: func(h *historyBuilder) {
			h.apply("create", "", statefulPod(h.statefulSet(1), 0))
		}}},
		{check: "cache-synced", controllers: sets, testCase: testCase{name: "creates a pod before its cache of revisions has synced", want: Fail, evidence: "before its cache of controllerrevisions.apps had synced", build: func(h *historyBuilder) {
			set := h.statefulSet(1)
			h.begin("subject-1")
			h.list(statefulSets)
			h.list(objects.PodResource)
			h.request(history.Request{Verb: "list", Resource: revisions})
			pod := statefulPod(set, 0)
			h.send("create", "", &pod).answered(201)
		}}},
		{check: "cache-synced", controllers: wide, testCase: testCase{name: "writes a status before its cache of ConfigMaps has synced", want: Fail, evidence: "before its cache of configmaps had synced", build: func(h *historyBuilder) {
			o, _ := widget(h)
			h.begin("subject-1")
			h.list(widgets)
			h.request(history.Request{Verb: "list", Resource: configMaps})
			h.send("update", "status", o).answered(200)
		}}},

		{check: "back-off", controllers: sets, testCase: testCase{name: "retries a conflict 5 times per attempt", want: Pass, build: func(h *historyBuilder) {
			set := h.statefulSet(1)
			h.wait(2 * time.Second)
			retry(h, 8, 5*time.Millisecond, 2, func() {
				retry(h, 5, 10*time.Millisecond, 1, func() { h.send("update", "status", set).answered(409) })
			})
		}}},
		{check: "back-off", controllers: sets, testCase: testCase{name: "retries a create every 2 ms", want: Fail, evidence: "StatefulSet ns/web: create pods ns/web-0 failed 101 times", build: func(h *historyBuilder) {
			pod := statefulPod(h.statefulSet(1), 0)
			h.wait(2 * time.Second)
			retry(h, 200, 2*time.Millisecond, 1, func() { h.send("create", "", &pod).answered(403) })
		}}},
		{check: "back-off", controllers: wide, testCase: testCase{name: "retries a status update every 2 ms", want: Fail, evidence: "widgets.example.com ns/w: update widgets.example.com status ns/w failed", build: func(h *historyBuilder) {
			o, _ := widget(h)
			h.wait(2 * time.Second)
			retry(h, 200, 2*time.Millisecond, 1, func() { h.send("update", "status", o).answered(500) })
		}}},
		{check: "back-off", controllers: wide, testCase: testCase{name: "retries after each event of an unrelated object", want: Pass, build: func(h *historyBuilder) {
			o, _ := widget(h)
			retry(h, 200, 2*time.Millisecond, 1, func() {
				h.add(objectOf(configMaps, "unrelated", ""))
				h.send("update", "status", o).answered(500)
			})
		}}},
		{check: "back-off", controllers: wide, testCase: testCase{name: "deletes a ConfigMap that does not exist", want: notFailed, build: func(h *historyBuilder) {
			_, config := widget(h)
			retry(h, 200, 2*time.Millisecond, 1, func() { h.send("delete", "", config).answered(404) })
		}}},

		{check: "needless-writes", controllers: sets, testCase: testCase{name: "each update changes the object", want: Pass, build: func(h *historyBuilder) {
			set := h.statefulSet(1)
			for range 20 {
				set = h.apply("update", "status", *set)
			}
		}}},
		{check: "needless-writes", controllers: wide, testCase: testCase{name: "6 updates change nothing", want: Fail, evidence: "sent 6 updates of widgets.example.com ns/w that changed nothing", build: func(h *historyBuilder) {
			o, _ := widget(h)
			for range 6 {
				step := h.send("update", "status", o)
				step.made = o
				step.answered(200)
			}
		}}},
		{check: "needless-writes", controllers: wide, testCase: testCase{name: "6 updates without a resource version change nothing", want: Fail, evidence: "sent 6 updates of configmaps ns/w-config", build: func(h *historyBuilder) {
			_, config := widget(h)
			unversioned := *config
			unversioned.Version = 0
			for range 6 {
				step := h.send("update", "", &unversioned)
				step.made = config
				step.answered(200)
			}
		}}},
		{check: "needless-writes", controllers: wide, testCase: testCase{name: "updates after failed creates for the same object", want: notFailed, build: func(h *historyBuilder) {
			updateAfterFailures(h, "w")
		}}},
		{check: "needless-writes", controllers: wide, testCase: testCase{name: "updates after failed creates for another object", want: Fail, evidence: "sent 6 updates of widgets.example.com ns/w that changed nothing", build: func(h *historyBuilder) {
			updateAfterFailures(h, "other")
		}}},
		{check: "needless-writes", controllers: wide, testCase: testCase{name: "one failed create excuses only the next update", want: Fail, evidence: "sent 6 updates of widgets.example.com ns/w that changed nothing", build: func(h *historyBuilder) {
			o, _ := widget(h)
			created := controlled(objectOf(configMaps, "taken", `{"data":{}}`), "Widget", o)
			h.send("create", "", &created).answered(409)
			for range 7 {
				step := h.send("update", "status", o)
				step.made = o
				step.answered(200)
			}
		}}},
		{check: "needless-writes", controllers: wide, testCase: testCase{name: "dry runs", want: notFailed, build: func(h *historyBuilder) {
			o, _ := widget(h)
			for range 20 {
				step := h.request(history.Request{Verb: "update", Resource: widgets, Namespace: namespace, Name: "w", Query: "dryRun=All", Object: o})
				step.made = o
				step.answered(200)
			}
		}}},

		{check: "no-writes-when-settled", controllers: wide, testCase: testCase{name: "writes nothing", want: Pass, build: func(h *historyBuilder) {
			widget(h)
			h.phase(history.PhaseQuiet)
			h.wait(testSettings.Quiet)
		}}},
		{check: "no-writes-when-settled", controllers: wide, testCase: testCase{name: "writes a status", want: Fail, evidence: "sent update widgets.example.com ns/w", build: func(h *historyBuilder) {
			o, _ := widget(h)
			h.phase(history.PhaseQuiet)
			h.wait(1500 * time.Millisecond)
			h.send("update", "status", o).answered(200)
			h.wait(time.Second)
		}}},
		{check: "no-writes-when-settled", controllers: wide, testCase: testCase{name: "writes a status after the quiet time, before the run ends", want: Pass, build: func(h *historyBuilder) {
			o, _ := widget(h)
			h.phase(history.PhaseQuiet)
			h.wait(testSettings.Quiet + time.Millisecond)
			h.send("update", "status", o).answered(200)
		}}},
		{check: "no-writes-when-settled", controllers: wide, testCase: testCase{name: "writes a status, whose commit comes after the grace time", want: Fail, evidence: "sent update widgets.example.com ns/w", build: func(h *historyBuilder) {
			o, _ := widget(h)
			h.phase(history.PhaseQuiet)
			h.wait(900 * time.Millisecond)
			first := h.send("update", "status", o)
			h.wait(200 * time.Millisecond)
			o = h.commit(history.Modified, *o)
			first.answered(200)
			h.send("update", "status", o).answered(200)
			h.wait(time.Second)
		}}},
		{check: "no-writes-when-settled", controllers: wide, testCase: testCase{name: "another client changes a ConfigMap, and the controller reacts", want: Unknown, build: func(h *historyBuilder) {
			_, config := widget(h)
			h.phase(history.PhaseQuiet)
			h.wait(1500 * time.Millisecond)
			config = h.add(*config)
			h.send("update", "", config).answered(200)
			h.wait(time.Second)
		}}},

		{check: "lease-holder-writes", controllers: wide, testCase: testCase{name: "writes while it holds the lease", want: Pass, build: func(h *historyBuilder) {
			h.holdLease()
			widget(h)
		}}},
		{check: "lease-holder-writes", controllers: wide, testCase: testCase{name: "writes before it acquires the lease", want: Fail, evidence: "before subject-0 acquired the lease", build: func(h *historyBuilder) {
			h.findLease("other")
			h.renew("me").answered(409)
			widget(h)
		}}},

		{check: "process-alive", controllers: wide, testCase: testCase{name: "runs until the end", want: Pass, build: func(h *historyBuilder) { widget(h) }}},
		{check: "process-alive", controllers: wide, testCase: testCase{name: "exits by itself", want: Fail, evidence: "subject-0 died", build: func(h *historyBuilder) {
			widget(h)
			h.processEvent(history.ProcessDied)
		}}},
	} {
		t.Run(test.check+": "+test.name, func(t *testing.T) {
			h := newHistoryBuilderOf(statefulSets, objects.PodResource, revisions)
			if test.controllers[0].Kind == "Widget" {
				h = newHistoryBuilderOf(widgets, configMaps)
			}
			test.build(h)
			test.verify(t, h, genericSettings(test.controllers...), test.check)
		})
	}
}

// TestActsByTime requires that no-writes-when-settled ignores writes of a controller that
// acts by time. It still checks the writes of other controllers in the same process.
func TestActsByTime(t *testing.T) {
	for _, test := range []struct {
		testCase
		controllers []kube.Controller
		write       history.Object
	}{
		{controllers: []kube.Controller{cronJobController}, write: objectOf("jobs.batch", "j", ""),
			testCase: testCase{name: "only a controller that acts by time", want: NotExercised}},
		{controllers: []kube.Controller{cronJobController, widgetController}, write: objectOf("jobs.batch", "j", ""),
			testCase: testCase{name: "the controller that acts by time writes", want: Pass}},
		{controllers: []kube.Controller{cronJobController, widgetController}, write: objectOf(configMaps, "c", ""),
			testCase: testCase{name: "the other controller writes", want: Fail, evidence: "sent create configmaps ns/c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilderOf("cronjobs.batch", "jobs.batch", widgets, configMaps)
			h.phase(history.PhaseQuiet)
			h.wait(1500 * time.Millisecond)
			h.send("create", "", &test.write).answered(201)
			h.wait(time.Second)
			test.verify(t, h, genericSettings(test.controllers...), "no-writes-when-settled")
		})
	}
}

// TestQuietAgain requires that no-writes-when-settled drops the writes that ended an earlier quiet
// phase of a controller without a contract. It still reports those of a controller with one.
func TestQuietAgain(t *testing.T) {
	for _, test := range []struct {
		testCase
		controllers []kube.Controller
		again       bool // the controller writes in the second quiet phase, too
	}{
		{controllers: []kube.Controller{widgetController}, testCase: testCase{name: "a delayed reconcile", want: Pass}},
		{controllers: []kube.Controller{widgetController}, again: true,
			testCase: testCase{name: "writes until the end", want: Fail, evidence: "sent create configmaps ns/c"}},
		{controllers: append([]kube.Controller{widgetController}, kube.Controllers...),
			testCase: testCase{name: "a controller with a contract", want: Fail, evidence: "sent create configmaps ns/c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			write := func() {
				h.wait(1500 * time.Millisecond)
				object := objectOf(configMaps, "c", "")
				h.send("create", "", &object).answered(201)
			}
			h.phase(history.PhaseQuiet)
			write()
			h.phase(history.PhaseQuiet)
			if test.again {
				write()
			}
			h.wait(2500 * time.Millisecond)
			test.verify(t, h, genericSettings(test.controllers...), "no-writes-when-settled")
		})
	}
}

// TestNotApplicable requires that a check does not run if no controller under test has a trait
// that the check needs.
func TestNotApplicable(t *testing.T) {
	h := newHistoryBuilderOf(statefulSets, objects.PodResource, revisions)
	h.apply("create", "", statefulPod(h.statefulSet(1), 0))
	settings := genericSettings(statefulSetController)
	settings.Exercises = []string{"max-surge"}
	results, _, err := Run(settings, h.all()) // the history is incomplete
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		c, _ := Find(r.Check)
		switch {
		case c.Scope.General():
			continue
		case r.Check == "max-surge":
			if r.Verdict != Unknown || r.Reason != "no controller under test has the trait rolls-out, but the scenario lists this check in exercises" {
				t.Errorf("max-surge: %s (%s)", r.Verdict, r.Reason)
			}
		case r.Verdict != NotExercised || !strings.HasPrefix(r.Reason, "no controller under test has the trait "):
			t.Errorf("%s: %s (%s), want not-exercised because of the trait", r.Check, r.Verdict, r.Reason)
		}
	}
}

// TestExercisedWhen requires that the field ExercisedWhen of each check consists of complete
// sentences.
func TestExercisedWhen(t *testing.T) {
	for _, c := range All {
		if !strings.HasSuffix(c.ExercisedWhen, ".") {
			t.Errorf("check %s: ExercisedWhen is %q, want one or two sentences", c.ID, c.ExercisedWhen)
		}
	}
}

// TestScopes requires that at least one contract check applies to each controller with a
// contract. It also requires that exactly the expected checks are general, and that each of them
// says what it ignores.
func TestScopes(t *testing.T) {
	var found []string
	for _, c := range All {
		if c.Scope.General() {
			found = append(found, c.ID)
			if c.Ignores == "" {
				t.Errorf("check %s does not say what it ignores", c.ID)
			}
		}
	}
	want := []string{"ownership", "cache-synced", "back-off", "no-lost-update", "no-stale-delete", "same-end-state", "no-extra-effects", "needless-writes", "no-writes-when-settled", "lease-holder-writes", "deletion-completes", "observed-generation", "rbac-denied", "hot-loop", "process-alive"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("general checks: -want +got:\n%s", diff)
	}
	rows, err := kube.ControllersNamed()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !slices.ContainsFunc(All, func(c Check) bool { return !c.Scope.General() && c.Scope.AppliesTo([]kube.Controller{row}) }) {
			t.Errorf("no check of a contract applies to %s", row.Name)
		}
	}
	for scope, text := range map[string]string{
		general.String(): "General",
		contractOf(kube.OwnsPods, kube.RollsOut).String(): "Contract (trait owns-pods or rolls-out)",
	} {
		if scope != text {
			t.Errorf("scope %q, want %q", scope, text)
		}
	}
}

// TestOneControllerUnderTest requires that checks ignore objects whose controller is not
// under test.
func TestOneControllerUnderTest(t *testing.T) {
	rows, err := kube.ControllersNamed("replicaset-controller")
	if err != nil {
		t.Fatal(err)
	}
	h := newHistoryBuilderOf(replicaSets, objects.PodResource)
	h.owner(controllers, "db", "db", 3) // its pods are missing, but its controller is not under test
	convergedReplicaSet(h)
	h.phase(history.PhaseQuiet)
	h.wait(testSettings.Quiet)
	testCase{want: Pass}.verify(t, h, genericSettings(rows...), "converged")
}

// TestStatefulSetRun requires that no check fails on the history of a correct StatefulSet
// controller. The history contains conflicts, a lost response, a failover, a rolling update, a
// scale-down, and objects of other controllers.
func TestStatefulSetRun(t *testing.T) {
	h := newHistoryBuilderOf(statefulSets, objects.PodResource, revisions, claims)
	h.holdLease()
	h.add(replicaSetPod("other-1"))
	set := h.statefulSet(3)
	h.apply("create", "", controlled(objectOf(revisions, "web-revision-1", `{"revision":1}`), "StatefulSet", set))
	report := func(replicas int) {
		stale := *set
		h.send("update", "status", &stale).answered(409)
		next := *set
		next.Body = fmt.Appendf(nil, `{"spec":{"replicas":%d},"status":{"observedGeneration":1,"replicas":%d,"readyReplicas":%d,"availableReplicas":%d}}`, 3, replicas, replicas, replicas)
		set = h.apply("update", "status", next)
	}
	for i := range 3 {
		h.apply("create", "", objectOf(claims, fmt.Sprintf("data-web-%d", i), `{"spec":{}}`))
		pod := statefulPod(set, i)
		h.send("create", "", &pod).answered(500)
		h.wait(5 * time.Millisecond)
		if i == 2 { // the response is lost, and the retry finds the pod
			h.send("create", "", &pod).lost()
			h.add(pod)
			h.send("create", "", &pod).answered(409)
		} else {
			h.apply("create", "", pod)
		}
		report(i + 1)
	}
	h.processEvent(history.ProcessStopped)
	h.restart("subject-1")
	h.holdLease()
	for i := 2; i >= 0; i-- { // a rolling update
		h.apply("update", "", objectOf(claims, fmt.Sprintf("data-web-%d", i), `{"spec":{"x":1}}`))
		pod := h.find(fmt.Sprintf("web-%d", i))
		h.send("delete", "", pod).answered(200)
		h.deliver(h.terminate(pod))
		h.wait(time.Second)
		h.commit(history.Deleted, *pod)
		h.deliverGone(pod)
		report(2)
		replacement := statefulPod(set, i)
		replacement.UID += "-new"
		h.apply("create", "", replacement)
		report(3)
	}
	orphan := statefulPod(set, 3)
	orphan.Owners = nil
	h.adopt(h.add(orphan), set).answered(200)
	h.deliver(h.commit(history.Modified, statefulPod(set, 3)))
	h.send("delete", "", h.find("web-3")).answered(200)
	claim := objectOf(claims, "data-web-3", `{"spec":{}}`)
	claim.Finalizers = []string{"example.com/keep"}
	claim = *h.apply("create", "", claim)
	h.send("delete", "", &claim).answered(200)
	h.deliver(h.terminate(&claim))
	claim = *h.find(claim.Name)
	claim.Finalizers = nil
	h.commit(history.Deleted, *h.apply("update", "", claim))
	h.phase(history.PhaseSettle)
	h.wait(3 * time.Second)
	h.send("get", "", set).answered(200)
	h.phase(history.PhaseQuiet)
	h.wait(testSettings.Quiet)
	settings := genericSettings(statefulSetController)
	learnt, err := baseline.Learn(h.end().all())
	if err != nil {
		t.Fatal(err)
	}
	settings.Baseline = learnt
	results := verdictsWith(t, settings, h)
	for _, c := range All {
		want := NotExercised
		if c.Scope.General() {
			want = Pass
		}
		if got := results[c.ID]; got.Verdict != want {
			t.Errorf("%s: got %s (%s), want %s", c.ID, got.Verdict, got.Reason, want)
		}
	}
}

// TestMetadataIsBounded requires that the model forgets objects that no longer exist.
func TestMetadataIsBounded(t *testing.T) {
	h := newHistoryBuilderOf(widgets, configMaps)
	for i := range 100 {
		o := h.add(controlled(objectOf(configMaps, fmt.Sprint(i), ""), "Widget", &history.Object{Ref: history.Ref{UID: "w"}}))
		h.commit(history.Deleted, *o)
		if i%2 == 0 {
			h.deliverGone(o)
		}
	}
	h.list(configMaps)
	m := newModel(genericSettings(widgetController))
	for _, r := range h.records {
		if err := m.observe(r); err != nil {
			t.Fatal(err)
		}
	}
	for name, set := range map[string]*metadataSet{"committed": m.committed.metadata, "cached": m.processes["subject-0"].view.metadata} {
		if len(set.byUID)+len(set.uidByName)+len(set.byResource) > 0 {
			t.Errorf("%s: %d objects, %d names and %d resources remain", name, len(set.byUID), len(set.uidByName), len(set.byResource))
		}
	}
}

func TestSettledGeneric(t *testing.T) {
	h := newHistoryBuilderOf(statefulSets)
	settled, seen := NewSettled(statefulSetController), 0
	expect := func(when string, want ...string) {
		t.Helper()
		for ; seen < len(h.records); seen++ {
			settled.Observe(h.records[seen])
		}
		if diff := cmp.Diff(want, settled.Pending()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", when, diff)
		}
	}
	h.commit(history.Added, objectOf(widgets, "w", `{"status":{"observedGeneration":0}}`)) // no controller under test reconciles Widgets
	set := h.commit(history.Added, objectOf(statefulSets, "web", `{"spec":{"replicas":2},"status":{"replicas":0}}`))
	expect("created", "StatefulSet ns/web: status.replicas is 0, expected 2", "StatefulSet ns/web: status.readyReplicas is 0, expected 2")
	h.revise("web", "status", fields{"observedGeneration": 0, "replicas": 2, "readyReplicas": 2, "availableReplicas": 1})
	expect("pods created", "StatefulSet ns/web: status.observedGeneration is 0, expected 1", "StatefulSet ns/web: status.availableReplicas is 1, expected 2")
	h.revise("web", "status", fields{"observedGeneration": 1, "availableReplicas": 2})
	pod := h.commit(history.Added, statefulPod(set, 0))
	expect("converged")
	h.terminate(pod)
	expect("a pod terminates", "Pod ns/web-0: terminating, expected the object to be deleted")
	h.commit(history.Deleted, *pod)
	expect("the pod is deleted")
	h.terminate(set)
	expect("the StatefulSet terminates", "StatefulSet ns/web: terminating, expected the object to be deleted")
	h.commit(history.Deleted, *set)
	expect("the StatefulSet is deleted")
	h.commit(history.Added, objectOf(statefulSets, "odd", `{"spec":{"replicas":"many"},"status":{"replicas":0}}`))
	expect("an object whose fields have another type")
}

// TestRefusedRequest requires that writes during the retries of a refused request are no violation.
// The check is no-writes-when-settled, and the controller has no contract.
func TestRefusedRequest(t *testing.T) {
	for _, test := range []struct {
		testCase
		codes  []int // the answers to the other request
		before bool  // the answers arrive before the faults are healed
	}{
		{codes: []int{400, 400}, testCase: testCase{name: "refused twice", want: Unknown}},
		{codes: []int{400, 400}, before: true, testCase: testCase{name: "refused before the phase settle", want: Fail, evidence: "sent create configmaps ns/c"}},
		{codes: []int{400}, testCase: testCase{name: "refused once", want: Fail, evidence: "sent create configmaps ns/c"}},
		{codes: []int{400, 400, 200}, testCase: testCase{name: "succeeded later", want: Fail, evidence: "sent create configmaps ns/c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistoryBuilderOf(widgets, configMaps)
			if !test.before {
				h.phase(history.PhaseSettle)
			}
			for _, code := range test.codes {
				h.request(history.Request{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "ns", Name: "web-1"}).answered(code)
			}
			if test.before {
				h.phase(history.PhaseSettle)
			}
			h.phase(history.PhaseQuiet)
			h.wait(1500 * time.Millisecond)
			object := objectOf(configMaps, "c", "")
			h.send("create", "", &object).answered(201)
			h.wait(time.Second)
			test.verify(t, h, genericSettings(widgetController), "no-writes-when-settled")
		})
	}
}
