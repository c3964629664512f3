package environment

import (
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

// Injection says which fault to inject.
type Injection struct {
	// Fault is the name of a fault in the catalog, such as "api-error".
	Fault string
	// Params are the parameters of the fault, as a scenario has them, in YAML. For example:
	//
	//	{verb: create, resource: pods, code: 500}
	Params string
	// Namespace is the namespace in which faults of pods and quota act; "" means Namespace.
	Namespace string
	// Index distinguishes the fault from others in the history. It is also part of the random
	// seed, so that two equal faults act differently.
	Index int
}

// injectedHealTimeout bounds the healing of a fault that Inject has injected.
const injectedHealTimeout = 30 * time.Second

// Inject injects a fault that lasts until the returned function heals it. The caller must
// call that function before Stop; it works even if its context is canceled. A fault needs
// StartProxy if it acts on requests or watches, and StartSubject if it acts on processes.
func (e *Environment) Inject(ctx context.Context, i Injection) (heal func(context.Context) error, err error) {
	faultType, fault, err := i.create()
	if err != nil {
		return nil, err
	}
	if err := faultType.Supported(fault, e.Capabilities()); err != nil {
		return nil, fmt.Errorf("%s: not supported by provider %s: %w", i.Fault, e.Provider, err)
	}
	if i.Namespace == "" {
		i.Namespace = Namespace
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
		return nil, errors.Join(err, heal(ctx)) // it may have acted in part
	}
	return heal, nil
}

// New returns the fault of the injection, or an error that says what is wrong with it.
func (i Injection) New() (faults.Fault, error) {
	_, fault, err := i.create()
	return fault, err
}

// create returns the fault of the injection with its type.
func (i Injection) create() (faultType faults.Type, fault faults.Fault, err error) {
	faultType, err = catalog.Find(i.Fault)
	if err != nil {
		return faultType, nil, err
	}
	params, err := scenario.ParseParams("parameters", i.Fault, []byte(i.Params))
	if err != nil {
		return faultType, nil, err
	}
	fault, err = faultType.New(params)
	return faultType, fault, err
}

// FaultEnv returns what a fault may use in this environment. The fault draws from random and
// records with report.
func (e *Environment) FaultEnv(random *rand.Rand, report *faults.Reporter) *faults.Env {
	env := &faults.Env{
		Rand:         random,
		Proxy:        e.Proxy,
		Cluster:      e.Cluster,
		Admin:        e.Admin,
		Dynamic:      e.Dynamic,
		Capabilities: e.Capabilities(),
		Namespace:    Namespace,
		Pods:         e.Pods,
		Clock:        e.Clock,
		Report:       report,
	}
	if e.Subject != nil { // a nil *subject.Subject is not a nil faults.Subject
		env.Subject = e.Subject
	}
	return env
}
