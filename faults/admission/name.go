// Package admission contains the faults that make the API server refuse creates. The API server
// refuses because of a name conflict, an exhausted quota, an admission policy or a terminating
// namespace. One fault denies bindings, so that the scheduler cannot assign pods to nodes.
//
// A fault creates the conflicting object, the quota or the policy, or deletes the namespace. The
// API server itself then refuses the creates; the fault proxy does not take part.
package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Name is the fault type name-taken: it creates a ReplicaSet whose name the controller under test
// is about to use.
var Name = faults.Type{
	Name: "name-taken",
	Description: "Before the subject creates a ReplicaSet, the fault creates another one with the same name, as in a hash collision of two pod templates. " +
		"The API server answers the subject's create with 409 (AlreadyExists).",
	Healing: "The fault stops creating ReplicaSets. The ReplicaSets that it created remain.",
	Params: []faults.Param{
		{Name: "owner", Description: "A glob for the kind and name of the owner of the subject's ReplicaSet.", Bounds: "such as Deployment/web-*", Default: "any owner, or none"},
		{Name: "template", Description: "The pod template of the other ReplicaSet. other: a different template, and no controllerRef. same: the template and labels of the subject's ReplicaSet, and the controllerRef of another controller. Its spec.replicas is 0.", Bounds: "one of " + strings.Join(templates, ", "), Default: templateOther},
		{Name: "times", Description: "The maximum number of ReplicaSets that the fault creates. With 2, the name of the subject's second try conflicts too.", Bounds: "1 to 100", Default: "1"},
	},
	New:    newName,
	Sample: sampleName,
}

// NameParams contains the parameters that a scenario sets for a name-taken fault. The Params
// field of [Name] documents each parameter.
type NameParams struct {
	Owner    string `yaml:"owner"`
	Template string `yaml:"template"`
	Times    int    `yaml:"times"`
}

// templateOther and templateSame are the values of [NameParams.Template]. With templateSame, the
// ReplicaSet that the fault creates has the pod template of the tested controller's ReplicaSet.
// With templateOther, it has a different pod template.
const (
	templateOther = "other"
	templateSame  = "same"
)

// templates lists the permitted values of [NameParams.Template].
var templates = []string{templateOther, templateSame}

// namesMax is the largest permitted value of [NameParams.Times]. This parameter is the maximum
// number of ReplicaSets that a name-taken fault creates.
const namesMax = 100

// newName returns a name-taken fault with the given parameters, or an error if a parameter
// is invalid.
func newName(params faults.Params) (faults.Fault, error) {
	p := NameParams{Template: templateOther, Times: 1}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	errs := []error{faults.OneOf(params, "template", p.Template, templates), faults.Between(params, "times", p.Times, 1, namesMax)}
	if _, err := path.Match(p.Owner, ""); err != nil || (p.Owner != "" && strings.Count(p.Owner, "/") != 1) {
		errs = append(errs, params.Errorf("owner", "found %q; expected a kind and a name, such as Deployment/web-*", p.Owner))
	}
	if err := scenario.JoinErrors(errs...); err != nil {
		return nil, err
	}
	return &name{params: p}, nil
}

// name is a fault of type name-taken. It creates ReplicaSets with the names that the controller
// under test wants to use.
type name struct {
	faults.Registration
	params NameParams
	env    *faults.Env

	mu     sync.Mutex
	left   int            // number of ReplicaSets that the fault may still create
	taken  []string       // names of the created ReplicaSets
	taking sync.WaitGroup // calls of the method take that have not returned
}

func (n *name) Inject(_ context.Context, env *faults.Env) error {
	n.env, n.left = env, n.params.Times
	n.Remove = env.Interceptor.OnRequest(n.match)
	return nil
}

// Heal ends the fault. It returns when all create requests of the fault have ended.
func (n *name) Heal(ctx context.Context) error {
	defer n.taking.Wait()
	return n.Registration.Heal(ctx)
}

func (n *name) Summary() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.taken) == 0 {
		return "created no ReplicaSet"
	}
	return "created " + strings.Join(n.taken, ", ")
}

// match returns an effect for a request in which the controller under test creates a ReplicaSet.
// The effect delays the request until the fault has created a ReplicaSet with the same name. The
// API server then answers the request with 409 (AlreadyExists).
//
// For other requests, match returns nil. It also returns nil for a ReplicaSet of an owner that
// n.params.Owner does not match. After the fault has created n.params.Times ReplicaSets, match
// returns nil for every request.
func (n *name) match(request *history.Request) *interceptor.RequestEffect {
	if request.Verb != "create" || request.Resource != setResource || request.Subresource != "" ||
		request.Namespace != n.env.Namespace || request.Object == nil || request.Object.Name == "" ||
		!history.MatchOwner(n.params.Owner, request.Object.ControllerRef()) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left == 0 {
		return nil
	}
	n.left--
	n.taking.Add(1)
	return &interceptor.RequestEffect{Fault: n.env.Report.Name(), BeforeForward: func(ctx context.Context) {
		defer n.taking.Done()
		n.take(ctx, request)
	}}
}

// take creates a ReplicaSet with the name in the tested controller's request, and records that the
// fault fired.
//
// If the create fails, for example because the ReplicaSet exists already, the fault may try
// again at a later request. The create of a ReplicaSet with a controller also fails while a fault
// admission-denied denies ReplicaSets, which then denies the create of the tested controller too.
func (n *name) take(ctx context.Context, request *history.Request) {
	ref := &history.Ref{Resource: setResource, Namespace: request.Namespace, Name: request.Object.Name}
	set, err := n.conflictingSet(ctx, request.Object)
	if err == nil {
		set, err = n.env.Admin.AppsV1().ReplicaSets(request.Namespace).Create(ctx, set, metav1.CreateOptions{})
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
		ref.UID = set.UID
		n.taken = append(n.taken, set.Name)
		n.env.Report.Fired(request.ID, ref, "created a ReplicaSet of this name with "+n.params.detail())
		return
	case !apierrors.IsAlreadyExists(err) && !deniedByFault(err) && ctx.Err() == nil:
		n.env.Report.Failed(ref, fmt.Errorf("creating another ReplicaSet with the name of %s: %w", ref, err))
	}
	n.left++
}

// deniedByFault reports whether an error of the API server comes from the policy of a fault.
func deniedByFault(err error) bool { return strings.Contains(err.Error(), injectedFault) }

// detail describes the pod template of the ReplicaSet that the fault creates. The fault's "fired"
// record in the history contains this text.
func (p *NameParams) detail() string {
	if p.Template == templateSame {
		return "the same template and another controller"
	}
	return "another template"
}

// conflictingSet returns the ReplicaSet that the fault creates to take a name. The argument of is
// the ReplicaSet that the controller under test is about to create. The result has the name of
// that ReplicaSet, and 0 replicas. Its pod template and controllerRef depend on n.params.Template.
func (n *name) conflictingSet(ctx context.Context, of *history.Object) (*appsv1.ReplicaSet, error) {
	labels := map[string]string{"taken-by": n.env.Report.Name()}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: of.Name, Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "other"}}},
			},
		},
	}
	if n.params.Template == templateSame {
		var same appsv1.ReplicaSet
		if err := json.Unmarshal(of.Body, &same); err != nil {
			return nil, err
		}
		owner, err := n.env.OtherClient(ctx)
		if err != nil {
			return nil, err
		}
		set.Labels, set.OwnerReferences = of.Labels, []metav1.OwnerReference{*owner}
		set.Spec.Selector, set.Spec.Template = same.Spec.Selector, same.Spec.Template
	}
	set.Spec.Replicas = ptr.To[int32](0)
	return set, nil
}
