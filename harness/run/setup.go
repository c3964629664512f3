package run

import (
	"context"
	"errors"
	"net/url"
	"os"
	"slices"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// This file has the setup steps that runs and the conformance suite share.

// Teardowns are functions that stop what was set up, in the order of the setup.
type Teardowns []func(context.Context) error

// Run calls the functions in reverse order, and joins their errors.
func (t Teardowns) Run(ctx context.Context) error {
	var errs []error
	for _, stop := range slices.Backward(t) {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
}

// GuardDirectory makes a guard process remove the directory if gauntlet is killed. The
// returned function removes the directory at once.
func GuardDirectory(dir string) (remove func(context.Context) error, err error) {
	release, err := process.GuardDirectory(dir)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error {
		defer release()
		return os.RemoveAll(dir)
	}, nil
}

// StartProxy starts a fault proxy between a subject and the API server of a cluster.
// The proxy runs until the caller stops it, even after ctx is canceled.
func StartProxy(ctx context.Context, c cluster.Cluster, recorder proxy.Recorder, clock clock.WithTicker) (*proxy.Proxy, error) {
	direct := c.Config(cluster.Subject)
	target, err := url.Parse(direct.Host)
	if err != nil {
		return nil, err
	}
	return proxy.Start(context.WithoutCancel(ctx), proxy.Options{
		Target: target, TargetCA: direct.CAData, Recorder: recorder, Clock: clock,
	})
}
