package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

const namespace = "chaos"

// records is a Recorder that collects the records of steps.
type records []history.Step

func (r *records) Append(record history.Record) { *r = append(*r, *record.Step) }

// steps parses the YAML of a workload and returns its steps.
func steps(t *testing.T, workload string) []scenario.Step {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte("name: test\ndescription: A test.\nworkload:\n"+workload))
	if err != nil {
		t.Fatal(err)
	}
	return s.Workload
}

func newEnv(client *fake.Clientset, recorded *records) Env {
	return Env{Client: client, Namespace: namespace, Recorder: recorded, Clock: clock.RealClock{}}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, recorded := fake.NewClientset(), records{}
		var at []time.Duration
		started := time.Now()
		client.PrependReactor("*", "replicasets", func(kubetesting.Action) (bool, runtime.Object, error) {
			at = append(at, time.Since(started))
			return false, nil, nil
		})
		err := Run(t.Context(), newEnv(client, &recorded), steps(t, `
  - create: {kind: ReplicaSet, name: web, replicas: 3}
  - scale: {kind: ReplicaSet, name: web, replicas: 7}
    after: 200ms
  - delete: {kind: ReplicaSet, name: web, propagation: orphan}
    after: 1s
`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]time.Duration{0, 200 * time.Millisecond, 1200 * time.Millisecond}, at); diff != "" {
			t.Errorf("times of the requests (-want +got):\n%s", diff)
		}

		web := &history.Ref{Resource: "replicasets.apps", Namespace: namespace, Name: "web"}
		var want []history.Step
		for i, detail := range []string{"create ReplicaSet web with 3 replicas", "scale ReplicaSet web to 7", "delete ReplicaSet web (orphan)"} {
			want = append(want,
				history.Step{Index: i, Event: history.StepBegun, Detail: detail},
				history.Step{Index: i, Event: history.StepDone, Detail: detail, Object: web})
		}
		// The fake API server sets neither the UID nor the resourceVersion of objects.
		if diff := cmp.Diff(want, []history.Step(recorded), cmpopts.IgnoreFields(history.Ref{}, "UID", "Version")); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}

		actions := client.Actions()
		if got, want := string(actions[1].(kubetesting.PatchAction).GetPatch()), `{"spec":{"replicas":7}}`; got != want {
			t.Errorf("patch %s; want %s", got, want)
		}
		if got := actions[2].(kubetesting.DeleteActionImpl).DeleteOptions.PropagationPolicy; *got != metav1.DeletePropagationOrphan {
			t.Errorf("propagation %s; want %s", *got, metav1.DeletePropagationOrphan)
		}
	})
}

// TestRunRetriesConflicts verifies that a conflict with another writer does not fail a
// step.
func TestRunRetriesConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, recorded := fake.NewClientset(), records{}
		conflicts := 2
		client.PrependReactor("patch", "replicationcontrollers", func(kubetesting.Action) (bool, runtime.Object, error) {
			conflicts--
			if conflicts < 0 {
				return false, nil, nil
			}
			return true, nil, apierrors.NewConflict(corev1.Resource("replicationcontrollers"), "web", errors.New("changed"))
		})
		err := Run(t.Context(), newEnv(client, &recorded), steps(t, `
  - create: {kind: ReplicationController, name: web, replicas: 3}
  - scale: {kind: ReplicationController, name: web, replicas: 7}
`))
		if err != nil {
			t.Fatal(err)
		}
		rc, err := client.CoreV1().ReplicationControllers(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || *rc.Spec.Replicas != 7 {
			t.Errorf("scaled to %v, %v; want 7", rc.Spec.Replicas, err)
		}
	})
}

// TestRunFails verifies that a step that fails ends the workload. The step must have a record of
// the failure, and the error must name the step.
func TestRunFails(t *testing.T) {
	client, recorded := fake.NewClientset(), records{}
	refused := errors.New("disk full\ncore.PodSpec{}")
	client.PrependReactor("create", "replicasets", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, refused
	})
	err := Run(t.Context(), newEnv(client, &recorded), steps(t, `
  - create: {kind: Pod, name: orphan}
  - create: {kind: ReplicaSet, name: web, replicas: 3}
  - scale: {kind: ReplicaSet, name: web, replicas: 7}
`))
	const want = "step 1 (create ReplicaSet web with 3 replicas): disk full"
	if err == nil || err.Error() != want || !errors.Is(err, refused) {
		t.Errorf("error %v; want %s", err, want)
	}
	last := recorded[len(recorded)-1]
	if diff := cmp.Diff(history.Step{Index: 1, Event: history.StepFailed, Detail: "create ReplicaSet web with 3 replicas", Error: "disk full"}, last); diff != "" {
		t.Errorf("last record (-want +got):\n%s", diff)
	}
	if len(recorded) != 4 {
		t.Errorf("%d records; want 4", len(recorded))
	}
}

func TestRunEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		recorded := records{}
		err := Run(ctx, newEnv(fake.NewClientset(), &recorded), steps(t, `
  - create: {kind: Pod, name: orphan}
    after: 5m
`))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "waiting before step 0 (create Pod orphan): ") {
			t.Errorf("error %v; want the deadline, before step 0", err)
		}
		if len(recorded) != 0 {
			t.Errorf("recorded %v of a step that never began", recorded)
		}
	})
}

func TestRunPods(t *testing.T) {
	client, recorded := fake.NewClientset(), records{}
	err := Run(t.Context(), newEnv(client, &recorded), steps(t, `
  - create: {kind: Pod, name: orphan, count: 2, labels: {app: web}}
  - create: {kind: Pod, name: guarded, count: 2, labels: {app: web}, controller: foreign}
  - create: {kind: Pod, name: alone, controller: foreign}
  - delete: {kind: Pod, name: orphan}
`))
	if err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, pod := range pods.Items {
		ref := metav1.GetControllerOf(&pod)
		if ref == nil {
			t.Fatalf("pod %s has no controller", pod.Name)
		}
		got[pod.Name] = pod.Labels["app"] + " under " + ref.Kind + " " + ref.Name
	}
	want := map[string]string{
		"guarded-0": "web under ConfigMap foreign",
		"guarded-1": "web under ConfigMap foreign",
		"alone":     "alone under ConfigMap foreign",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods and their controllers (-want +got):\n%s", diff)
	}
	if _, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), foreign, metav1.GetOptions{}); err != nil {
		t.Errorf("the foreign controller does not exist: %v", err)
	}
}

// TestDeleteOfMissingObject verifies that a delete operation ignores a missing pod. For any
// other missing object, the operation must fail.
func TestDeleteOfMissingObject(t *testing.T) {
	for kind, wantErr := range map[string]bool{"Pod, name: web}": false, "ReplicaSet, name: web, replicas: 1}": true} {
		client, recorded := fake.NewClientset(), records{}
		client.PrependReactor("delete", "*", func(action kubetesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "web")
		})
		name, _, _ := strings.Cut(kind, ",")
		err := Run(t.Context(), newEnv(client, &recorded), steps(t, "  - create: {kind: "+kind+"\n  - delete: {kind: "+name+", name: web}\n"))
		if (err != nil) != wantErr {
			t.Errorf("deleting a %s that is gone: error %v; want one: %t", name, err, wantErr)
		}
	}
}

// TestAwait verifies that an await ends when the object becomes ready.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, recorded := fake.NewClientset(), records{}
		go func() {
			time.Sleep(3 * time.Second)
			sets := client.AppsV1().ReplicaSets(namespace)
			set, err := sets.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			set.Status = appsv1.ReplicaSetStatus{Replicas: 2, ReadyReplicas: 2}
			if _, err := sets.UpdateStatus(t.Context(), set, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}()
		started := time.Now()
		err := Run(t.Context(), newEnv(client, &recorded), steps(t, `
  - create: {kind: ReplicaSet, name: web, replicas: 2}
    await: {until: ready}
  - await: {kind: ReplicaSet, name: web, until: ready}
`))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(started); took != 3*time.Second {
			t.Errorf("the await took %s; want 3s", took)
		}
	})
}

func TestAwaitGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, recorded := fake.NewClientset(), records{}
		// The object remains for a while after the delete request, like an object with a
		// finalizer.
		var finalizing atomic.Bool
		finalizing.Store(true)
		client.PrependReactor("delete", "replicasets", func(kubetesting.Action) (bool, runtime.Object, error) {
			return finalizing.Load(), nil, nil
		})
		go func() {
			sets := client.AppsV1().ReplicaSets(namespace)
			time.Sleep(2 * time.Second)
			finalizing.Store(false)
			if err := sets.Delete(t.Context(), "other", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			if err := sets.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}()
		started := time.Now()
		err := Run(t.Context(), newEnv(client, &recorded), steps(t, `
  - create: {kind: ReplicaSet, name: other, replicas: 1}
  - create: {kind: ReplicaSet, name: web, replicas: 2}
  - delete: {kind: ReplicaSet, name: web}
    await: {until: gone}
  - await: {kind: ReplicaSet, name: web, until: gone}
`))
		if err != nil {
			t.Fatal(err)
		}
		// The lookup of a missing object takes additional time, so the bounds are wide.
		if took := time.Since(started); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("the await took %s; want 3s", took)
		}
	})
}

func TestAwaitUnmet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, recorded := fake.NewClientset(), records{}
		started := time.Now()
		err := Run(t.Context(), newEnv(client, &recorded), steps(t, `
  - create: {kind: ReplicaSet, name: web, replicas: 2}
    await: {until: ready, within: 20s}
`))
		const want = "step 0 (create ReplicaSet web with 2 replicas, then await ReplicaSet web ready within 20s): " +
			"ReplicaSet chaos/web: expected ready within 20s, found 0 of 2 replicas, 0 ready, 0 available, observedGeneration 0 of 0"
		if err == nil || err.Error() != want || !errors.Is(err, ErrUnmet) {
			t.Errorf("error\n got %v\nwant %s", err, want)
		}
		if took := time.Since(started); took != 20*time.Second {
			t.Errorf("the await took %s; want 20s", took)
		}
		last := recorded[len(recorded)-1]
		if diff := cmp.Diff(&history.Ref{Resource: "replicasets.apps", Namespace: namespace, Name: "web"}, last.Awaited); diff != "" {
			t.Errorf("awaited (-want +got):\n%s", diff)
		}
	})
}

// eventsOf returns the index and the event of each recorded step, such as "0 done".
func eventsOf(recorded records) []string {
	var all []string
	for _, step := range recorded {
		all = append(all, fmt.Sprintf("%d %s", step.Index, step.Event))
	}
	return all
}

// TestAwaitLate verifies that a step goes on until Late returns if its condition is not met in time. If
// the condition is then met, later steps must follow.
func TestAwaitLate(t *testing.T) {
	for name, test := range map[string]struct {
		readyAfter time.Duration
		want       []string
	}{
		"in time":      {10 * time.Second, []string{"0 begun", "0 done", "1 begun", "1 done"}},
		"late":         {30 * time.Second, []string{"0 begun", "0 late", "0 done", "1 begun", "1 done"}},
		"never":        {time.Hour, []string{"0 begun", "0 late", "0 failed"}},
		"when it ends": {20 * time.Second, nil}, // either is right, but the records must have this order
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, recorded := fake.NewClientset(), records{}
				env := newEnv(client, &recorded)
				env.Late = func(ctx context.Context) {
					select {
					case <-time.After(20 * time.Second):
					case <-ctx.Done():
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					select {
					case <-time.After(test.readyAfter):
					case <-ctx.Done():
						return
					}
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
					if _, err := client.CoreV1().Pods(namespace).Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
						t.Error(err)
					}
				}()
				err := Run(ctx, env, steps(t, `
  - create: {kind: Pod, name: one}
    await: {until: ready, within: 20s}
  - create: {kind: Pod, name: two}
`))
				got := eventsOf(recorded)
				want := test.want
				if want == nil {
					want = []string{"0 begun", "0 done", "1 begun", "1 done"}
					if len(got) > 1 && got[1] == "0 late" {
						want = slices.Insert(want, 1, "0 late")
					}
				}
				if diff := cmp.Diff(want, got); diff != "" || errors.Is(err, ErrUnmet) != (name == "never") {
					t.Errorf("error %v, records (-want +got):\n%s", err, diff)
				}
			})
		})
	}
}

// TestAwaitQuiet verifies that a step waits until the controllers under test are quiet. If they never
// are, the step must fail without an object.
func TestAwaitQuiet(t *testing.T) {
	for name, test := range map[string]struct {
		quietAfter time.Duration
		want       []string
	}{
		"in time": {10 * time.Second, []string{"0 begun", "0 done", "1 begun", "1 done"}},
		"never":   {time.Hour, []string{"0 begun", "0 late", "0 failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorded := records{}
				env := newEnv(fake.NewClientset(), &recorded)
				env.Late = func(context.Context) { <-time.After(20 * time.Second) }
				env.Quiet = func(ctx context.Context) {
					select {
					case <-time.After(test.quietAfter):
					case <-ctx.Done():
					}
				}
				err := Run(t.Context(), env, steps(t, `
  - create: {kind: Pod, name: one}
    await: {until: quiet, within: 20s}
  - create: {kind: Pod, name: two}
`))
				got := eventsOf(recorded)
				last := recorded[len(recorded)-1]
				if diff := cmp.Diff(test.want, got); diff != "" || errors.Is(err, ErrUnmet) != (name == "never") || last.Awaited != nil {
					t.Errorf("error %v, awaited object %v, records (-want +got):\n%s", err, last.Awaited, diff)
				}
			})
		})
	}
}

func TestAwaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		recorded := records{}
		err := Run(ctx, newEnv(fake.NewClientset(), &recorded), steps(t, `
  - create: {kind: ReplicaSet, name: web, replicas: 2}
    await: {until: ready, within: 20s}
`))
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnmet) {
			t.Errorf("error %v; want the deadline of the context alone", err)
		}
	})
}

// TestEdits verifies that each operation on an existing object patches only the fields that the
// operation sets.
func TestEdits(t *testing.T) {
	for _, test := range []struct {
		kind, step, want string
	}{
		{"Deployment", "scale: {kind: Deployment, name: web, replicas: 7}", `merge {"spec":{"replicas":7}}`},
		{"Deployment", "rollout: {name: web, version: v2}", `merge {"spec":{"template":{"metadata":{"annotations":{"gauntlet/version":"v2"}}}}}`},
		{"Deployment", "rollout: {name: web, version: v2, replicas: 4}", `merge {"spec":{"replicas":4,"template":{"metadata":{"annotations":{"gauntlet/version":"v2"}}}}}`},
		{"Deployment", "pause: {name: web}", `merge {"spec":{"paused":true}}`},
		{"Deployment", "resume: {name: web}", `merge {"spec":{"paused":false}}`},
		{"Deployment", "rollback: {name: web, revision: 3}", `merge {"metadata":{"annotations":{"deprecated.deployment.rollback.to":"3"}}}`},
		{"Pod", "label: {kind: Pod, name: web, labels: {app: x}, remove: [b]}", `merge {"metadata":{"labels":{"app":"x","b":null}}}`},
		{"Deployment", "annotate: {kind: Deployment, name: web, annotations: {team: paint}, remove: [b]}", `merge {"metadata":{"annotations":{"b":null,"team":"paint"}}}`},
		{"Service", "select: {name: web, selector: {app: y}}", `json [{"op":"add","path":"/spec/selector","value":{"app":"y"}}]`},
		{"Service", "select: {name: web, selector: {}}", `json [{"op":"add","path":"/spec/selector","value":{}}]`},
		{"ReplicationController", "select: {kind: ReplicationController, name: web, selector: {app: y}}",
			`json [{"op":"add","path":"/spec/selector","value":{"app":"y"}},{"op":"add","path":"/spec/template/metadata/labels","value":{"app":"y"}}]`},
		{"ReplicationController", "configure: {kind: ReplicationController, name: web, minReadySeconds: 0}", `merge {"spec":{"minReadySeconds":0}}`},
		{"Deployment", "configure: {kind: Deployment, name: web, revisionHistoryLimit: 1, progressDeadlineSeconds: 5}",
			`merge {"spec":{"progressDeadlineSeconds":5,"revisionHistoryLimit":1}}`},
		{"Deployment", "configure: {kind: Deployment, name: web, strategy: Recreate}", `merge {"spec":{"strategy":{"rollingUpdate":null,"type":"Recreate"}}}`},
		{"Deployment", "configure: {kind: Deployment, name: web, strategy: RollingUpdate, maxSurge: 10%}",
			`merge {"spec":{"strategy":{"rollingUpdate":{"maxSurge":"10%","maxUnavailable":null},"type":"RollingUpdate"}}}`},
		{"Deployment", "patch: {kind: Deployment, name: web, merge: {spec: {replicas: 2, minReadySeconds: null}}}", `merge {"spec":{"minReadySeconds":null,"replicas":2}}`},
		{"Pod", "patch: {kind: Pod, name: web, merge: {metadata: {labels: {a: b}}}}", `merge {"metadata":{"labels":{"a":"b"}}}`},
		{"Service", "publish: {name: web, type: ExternalName, externalName: example.com}", `merge {"spec":{"externalName":"example.com","type":"ExternalName"}}`},
		{"Service", "publish: {name: web, type: ClusterIP, publishNotReadyAddresses: false, ports: [{port: 81}]}",
			`merge {"spec":{"externalName":null,"ports":[{"protocol":"TCP","port":81,"targetPort":0}],"publishNotReadyAddresses":false,"type":"ClusterIP"}}`},
	} {
		client, recorded := fake.NewClientset(), records{}
		replicas := map[string]string{"Deployment": ", replicas: 3", "ReplicationController": ", replicas: 3"}[test.kind]
		err := Run(t.Context(), newEnv(client, &recorded), steps(t, "  - create: {kind: "+test.kind+", name: web"+replicas+"}\n  - "+test.step+"\n"))
		if err != nil {
			t.Errorf("%s: %v", test.step, err)
			continue
		}
		change := client.Actions()[1].(kubetesting.PatchAction)
		kind := strings.TrimSuffix(strings.TrimPrefix(string(change.GetPatchType()), "application/"), "-patch+json")
		if got := kind + " " + string(change.GetPatch()); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.step, got, test.want)
		}
	}
}

// TestLabelEveryPod verifies that a label operation changes each pod that a create step created.
// A missing pod must not be an error.
func TestLabelEveryPod(t *testing.T) {
	client, recorded := fake.NewClientset(), records{}
	client.PrependReactor("patch", "pods", func(action kubetesting.Action) (bool, runtime.Object, error) {
		if name := action.(kubetesting.PatchAction).GetName(); name == "orphan-1" {
			return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
		}
		return false, nil, nil
	})
	err := Run(t.Context(), newEnv(client, &recorded), steps(t, `
  - create: {kind: Pod, name: orphan, count: 3, labels: {app: web}}
  - label: {kind: Pod, name: orphan, labels: {app: other}}
`))
	if err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, pod := range pods.Items {
		got[pod.Name] = pod.Labels["app"]
	}
	if diff := cmp.Diff(map[string]string{"orphan-0": "other", "orphan-1": "web", "orphan-2": "other"}, got); diff != "" {
		t.Errorf("labels of the pods (-want +got):\n%s", diff)
	}
}
