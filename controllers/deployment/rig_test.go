package deployment

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/templatehash"
)

const key = "ns/web"

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rig is a controller on an API server that a test can see into. The caches
// show what deliver has brought there; lag keeps what is written from them.
type rig struct {
	*Controller
	clock  *clocktesting.FakePassiveClock
	events *recorder

	mu          sync.Mutex
	version     int
	deployments map[string]*appsv1.Deployment
	sets        map[string]*appsv1.ReplicaSet
	lag         bool
	calls       []string
	// answers are the errors of calls, by call; the last one of a call stays.
	answers map[string][]error
	// lost are calls that take effect, but whose answer is an error.
	lost map[string]bool
	// wrote is told of every write that takes effect.
	wrote func(call string)
}

func newRig(t testing.TB, d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) *rig {
	t.Helper()
	fake := clocktesting.NewFakePassiveClock(now)
	r := newRigAt(t, fake, d, sets...)
	r.clock = fake
	return r
}

func newRigAt(t testing.TB, clock clock.PassiveClock, d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) *rig {
	t.Helper()
	r := &rig{
		events: &recorder{}, version: 100, answers: map[string][]error{}, lost: map[string]bool{}, wrote: func(string) {},
		deployments: map[string]*appsv1.Deployment{}, sets: map[string]*appsv1.ReplicaSet{},
	}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", r.react)
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := New(t.Context(), Config{
		Client:      client,
		Deployments: factory.Apps().V1().Deployments().Informer(),
		ReplicaSets: factory.Apps().V1().ReplicaSets().Informer(),
		Pods:        factory.Core().V1().Pods().Informer(),
		Events:      r.events,
		Clock:       clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Controller = controller
	r.deployments[d.Name] = d
	for _, set := range sets {
		r.sets[set.Name] = set
	}
	r.deliver()
	return r
}

// deliver brings the caches up to date.
func (r *rig) deliver() {
	r.deliverDeployments()
	r.deliverSets()
}

func (r *rig) deliverDeployments() { replace(r.Controller.deployments, r.deployments, r.version) }
func (r *rig) deliverSets()        { replace(r.Controller.replicaSets, r.sets, r.version) }

func replace[T runtime.Object](cache interface{ Replace([]any, string) error }, objects map[string]T, version int) {
	var all []any
	for _, object := range objects {
		all = append(all, object)
	}
	if err := cache.Replace(all, strconv.Itoa(version)); err != nil {
		panic(err)
	}
}

// setPods makes pods all that the cache has.
func (r *rig) setPods(t testing.TB, pods ...*corev1.Pod) {
	t.Helper()
	var all []any
	for _, pod := range pods {
		all = append(all, pod)
	}
	if err := r.pods.Replace(all, strconv.Itoa(r.version)); err != nil {
		t.Fatal(err)
	}
}

// deployment returns the Deployment as the API server has it.
func (r *rig) deployment() *appsv1.Deployment { return r.deployments["web"] }

// only returns the one ReplicaSet that there is.
func (r *rig) only(t testing.TB) *appsv1.ReplicaSet {
	t.Helper()
	if len(r.sets) != 1 {
		t.Fatalf("%d ReplicaSets, want 1", len(r.sets))
	}
	for _, set := range r.sets {
		return set
	}
	return nil
}

func (r *rig) react(action clienttesting.Action) (bool, runtime.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := strings.TrimSuffix(action.GetVerb()+" "+action.GetResource().Resource+"/"+action.GetSubresource(), "/")
	name := ""
	switch a := action.(type) {
	case clienttesting.UpdateAction: // creates are of this kind, too
		name = a.GetObject().(metav1.Object).GetName()
	case clienttesting.GetAction:
		name = a.GetName()
	case clienttesting.DeleteAction:
		name = a.GetName()
	case clienttesting.PatchAction:
		name = a.GetName()
	}
	call += " " + name
	r.calls = append(r.calls, call)
	if errs := r.answers[call]; len(errs) > 0 {
		r.answers[call] = errs[min(1, len(errs)-1):]
		if errs[0] != nil {
			return true, nil, errs[0]
		}
	}
	object, err := r.perform(action, name)
	if err == nil && action.GetVerb() != "get" {
		r.wrote(call)
		if !r.lag {
			r.deliver()
		}
		if r.lost[call] {
			return true, nil, apierrors.NewTimeoutError("lost", 0)
		}
	}
	return true, object, err
}

func (r *rig) perform(action clienttesting.Action, name string) (runtime.Object, error) {
	if action.GetResource().Resource == deploymentsResource {
		return r.performDeployment(action, name)
	}
	set, exists := r.sets[name]
	if action.GetVerb() == "create" {
		if exists {
			return nil, apierrors.NewAlreadyExists(setResource, name)
		}
		created := action.(clienttesting.CreateAction).GetObject().(*appsv1.ReplicaSet).DeepCopy()
		created.UID, created.Generation = types.UID("uid-"+name), 1
		created.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(r.version) * time.Second))
		return r.store(created), nil
	}
	if !exists {
		return nil, apierrors.NewNotFound(setResource, name)
	}
	switch a := action.(type) {
	case clienttesting.UpdateAction:
		changed := a.GetObject().(*appsv1.ReplicaSet).DeepCopy()
		if changed.ResourceVersion != set.ResourceVersion {
			return nil, apierrors.NewConflict(setResource, name, errors.New("modified"))
		}
		changed.Generation++
		return r.store(changed), nil
	case clienttesting.PatchAction:
		before, err := json.Marshal(set)
		if err != nil {
			return nil, err
		}
		after, err := strategicpatch.StrategicMergePatch(before, a.GetPatch(), appsv1.ReplicaSet{})
		if err != nil {
			return nil, err
		}
		patched := &appsv1.ReplicaSet{}
		if err := json.Unmarshal(after, patched); err != nil {
			return nil, err
		}
		return r.store(patched), nil
	case clienttesting.DeleteAction:
		r.version++
		delete(r.sets, name)
		return nil, nil
	default:
		return set, nil
	}
}

func (r *rig) performDeployment(action clienttesting.Action, name string) (runtime.Object, error) {
	d, exists := r.deployments[name]
	if !exists {
		return nil, apierrors.NewNotFound(deploymentResource, name)
	}
	update, is := action.(clienttesting.UpdateAction)
	if !is {
		return d, nil
	}
	sent := update.GetObject().(*appsv1.Deployment)
	if sent.ResourceVersion != d.ResourceVersion {
		return nil, apierrors.NewConflict(deploymentResource, name, errors.New("modified"))
	}
	changed := d.DeepCopy()
	changed.Annotations = sent.Annotations
	if action.GetSubresource() == "status" {
		changed.Status = *sent.Status.DeepCopy()
	} else {
		changed.Spec = *sent.Spec.DeepCopy()
		changed.Generation++
	}
	r.version++
	changed.ResourceVersion = strconv.Itoa(r.version)
	r.deployments[name] = changed
	return changed, nil
}

func (r *rig) store(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	r.version++
	set.ResourceVersion = strconv.Itoa(r.version)
	r.sets[set.Name] = set
	return set
}

// edit is a user's change of the Deployment.
func (r *rig) edit(change func(*appsv1.Deployment)) {
	d := r.deployment().DeepCopy()
	change(d)
	r.version++
	d.ResourceVersion = strconv.Itoa(r.version)
	d.Generation++
	r.deployments[d.Name] = d
	r.deliver()
}

// follow is what the controller of ReplicaSets does, in one stroke: each has
// the pods that it asks for, all of them available.
func (r *rig) follow() {
	for _, set := range r.sets {
		r.store(having(*set.Spec.Replicas)(set.DeepCopy()))
	}
	r.deliver()
}

// recorder keeps events as "Type Reason message".
type recorder struct {
	mu   sync.Mutex
	told []string
}

func (e *recorder) Event(_ runtime.Object, kind, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, fmt.Sprintf("%s %s %s", kind, reason, message))
}

func (e *recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	e.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (e *recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	e.Eventf(object, kind, reason, format, args...)
}

var (
	deploymentResource = schema.GroupResource{Group: "apps", Resource: deploymentsResource}
	setResource        = schema.GroupResource{Group: "apps", Resource: replicaSetsResource}
	refused            = apierrors.NewTooManyRequests("slow down", 1)
)

func namespaceTerminating() error {
	err := apierrors.NewForbidden(setResource, "", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// newDeployment rolls with a surge of 1 and none unavailable, and has no
// deadline.
func newDeployment(replicas int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "deployment", Generation: 1, ResourceVersion: "10"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "v1"}}},
			},
		},
	}
	for _, c := range change {
		c(d)
	}
	return d
}

func image(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = name }
}

func fences(surge, unavailable int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &intstr.IntOrString{IntVal: surge}, MaxUnavailable: &intstr.IntOrString{IntVal: unavailable}}
	}
}

func scaled(replicas int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas }
}

func deadline(seconds int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = &seconds }
}

func historyLimit(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = &n }
}

func annotated(key, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Annotations = with(d.Annotations, map[string]string{key: value}) }
}

func asRecreate(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func asPaused(d *appsv1.Deployment) { d.Spec.Paused = true }

func deleting(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: now} }

// progressing gives a Deployment a deadline of 600 s, and the condition that
// runs towards it since some time ago.
func progressing(reason string, ago time.Duration) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		deadline(600)(d)
		status := map[string]corev1.ConditionStatus{
			deadlineExceeded: corev1.ConditionFalse, paused: corev1.ConditionUnknown, resumed: corev1.ConditionUnknown,
		}[reason]
		if status == "" {
			status = corev1.ConditionTrue
		}
		then := metav1.NewTime(now.Add(-ago))
		d.Status.Conditions = withCondition(d.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, LastUpdateTime: then, LastTransitionTime: then,
		})
	}
}

// newSetOf is a ReplicaSet of d's template with another image, sized for d, one
// minute older for each revision less. It has been looked at, and has no pods.
func newSetOf(d *appsv1.Deployment, imageName string, revision int64, replicas int32, change ...func(*appsv1.ReplicaSet) *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	d = d.DeepCopy()
	image(imageName)(d)
	l, err := limitsOf(d)
	if err != nil {
		panic(err)
	}
	set, err := newReplicaSet(d, l, int(replicas), revision)
	if err != nil {
		panic(err)
	}
	delete(set.Annotations, appsv1.DeprecatedRollbackTo)
	set.Name = "web-" + imageName
	set.UID = types.UID("uid-" + set.Name)
	set.ResourceVersion = "10"
	set.Generation = 1
	set.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(revision-100) * time.Minute))
	set.Status = appsv1.ReplicaSetStatus{ObservedGeneration: 1, TerminatingReplicas: new(int32(0))}
	for _, c := range change {
		set = c(set)
	}
	return set
}

// having gives a ReplicaSet pods, all of them available.
func having(n int32) func(*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	return func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
		set.Status = appsv1.ReplicaSetStatus{
			Replicas: n, FullyLabeledReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			ObservedGeneration: set.Generation, TerminatingReplicas: new(int32(0)),
		}
		return set
	}
}

func orphaned(set *appsv1.ReplicaSet) *appsv1.ReplicaSet { set.OwnerReferences = nil; return set }

func foreign(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	set.OwnerReferences[0].UID = "another"
	return set
}

func relabelled(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	set.Labels = map[string]string{"app": "db"}
	return set
}

// podOf is a running pod of set.
func podOf(set *appsv1.ReplicaSet, name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "10",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// hashed is the name of the ReplicaSet that a create for d makes.
func hashed(d *appsv1.Deployment) string {
	hash, err := templatehash.Of(&d.Spec.Template, d.Status.CollisionCount)
	if err != nil {
		panic(err)
	}
	return setName(d.Name, hash)
}
