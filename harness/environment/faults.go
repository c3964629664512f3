package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Injection says which fault [Environment.Inject] injects, and with which parameters.
type Injection struct {
	// Fault is the name of a fault in the catalog, such as "api-error".
	Fault string
	// Params contains the fault's parameters in YAML, in the same format as in a scenario. Empty
	// means no parameters. For example:
	//
	//	{verb: create, resource: pods, code: 500}
	Params string
	// Namespace is the namespace in which the fault changes pods, quotas and other objects. Empty
	// means the namespace that [Environment.Record] records.
	Namespace string
	// Index identifies the fault in the history. It is also part of the fault's random seed, so
	// that two equal faults with different indexes act differently.
	Index int
}

// injectedHealTimeout limits the duration of the function that [Environment.Inject] returns, which
// heals the fault.
const injectedHealTimeout = 30 * time.Second

// Inject injects a fault, which lasts until the caller calls the result heal, a function. The
// caller must call heal before Stop. The result heal works even if the context that it gets is
// canceled.
//
// Call StartProxy first. For faults that act on the processes of the controllers under test, call
// StartSubject too.
func (e *Environment) Inject(ctx context.Context, i Injection) (heal func(context.Context) error, err error) {
	faultType, fault, err := i.create()
	if err != nil {
		return nil, err
	}
	if err := faultType.Supported(fault, e.Capabilities()); err != nil {
		return nil, fmt.Errorf("fault %s: not supported by provider %s: %w", i.Fault, e.Provider, err)
	}
	if err := e.canInject(faultType); err != nil {
		return nil, err
	}
	if i.Namespace == "" {
		i.Namespace = e.namespace
	}
	seed := fnv.New64a()
	fmt.Fprintf(seed, "%s %d", i.Namespace, i.Index)
	env := e.FaultEnv(rand.New(rand.NewPCG(e.Seed, seed.Sum64())), faults.NewReporter(e.records, i.Index, i.Fault))
	env.Namespace = i.Namespace
	heal = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), injectedHealTimeout)
		defer cancel()
		return faults.Heal(ctx, fault, env)
	}
	if err := faults.Inject(ctx, fault, env); err != nil {
		return nil, errors.Join(err, heal(ctx)) // the failed injection may have changed something
	}
	return heal, nil
}

// canInject returns an error if a component that the fault needs does not run. Faults need the
// fault proxy, and some also need the controllers under test.
func (e *Environment) canInject(faultType faults.Type) error {
	switch {
	case e.stopped:
		return fmt.Errorf("injecting %s: the environment has been stopped; start a new environment", faultType.Name)
	case e.Proxy == nil:
		return fmt.Errorf("injecting %s: the fault proxy does not run; call StartProxy first", faultType.Name)
	case faultType.ActsOnSubject && e.Subject == nil:
		return fmt.Errorf("injecting %s: gauntlet runs no replica of the subject; call StartSubject first", faultType.Name)
	}
	return nil
}

// New returns the fault that i describes, but does not inject the fault. Callers can thereby
// validate i without a cluster. New returns an error if there is no fault with the name i.Fault,
// or if a parameter is invalid.
func (i Injection) New() (faults.Fault, error) {
	_, fault, err := i.create()
	return fault, err
}

// create returns the fault that i describes, and the fault's type, for example api-error. It does
// not inject the fault.
func (i Injection) create() (faultType faults.Type, fault faults.Fault, err error) {
	faultType, err = catalog.Find(i.Fault)
	if err != nil {
		return faultType, nil, err
	}
	params, err := scenario.ParseParams("parameters", i.Fault, []byte(cmp.Or(i.Params, "{}")))
	if err != nil {
		return faultType, nil, err
	}
	fault, err = faultType.Create(params)
	return faultType, fault, err
}

// FaultEnv returns the clients and components that a fault needs to act on this environment. The
// argument random is the fault's source of random numbers. Through the argument report, the fault
// adds its actions to the history.
func (e *Environment) FaultEnv(random *rand.Rand, report *faults.Reporter) *faults.Env {
	env := &faults.Env{
		Rand:         random,
		Interceptor:  e.Interceptor,
		Cluster:      e.Cluster,
		Admin:        e.Admin,
		Dynamic:      e.Dynamic,
		Capabilities: e.Capabilities(),
		Namespace:    e.namespace,
		Pods:         e.Pods,
		Clock:        e.Clock,
		Report:       report,
	}
	if e.Subject != nil { // a nil *subject.Subject is not a nil faults.Subject
		env.Subject = e.Subject
	}
	return env
}
