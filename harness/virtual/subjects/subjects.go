// Package subjects contains the programs under test that are linked into the command
// gauntlet-virtual. These are our controllers and upstream's kube-controller-manager.
package subjects

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/controllers/manager"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// linkedPackage is the function Run of the user's Go package that is under test. It is nil unless
// this program was built for --subject=go:PATH.
var linkedPackage func(ctx context.Context, config *rest.Config) error

// linkedUpstream returns the function that runs replicas of upstream's kube-controller-manager. It is nil in a program
// that was built with the tag ours, which has 500 packages less to compile.
var linkedUpstream func() subject.Main

// Main returns the function that runs a replica of the program under test. The argument target
// identifies this program. Main returns an error for a target that is not linked into this program.
func Main(target subject.Target) (subject.Main, error) {
	switch {
	case target == subject.Ours:
		return ours, nil
	case target == subject.Upstream && linkedUpstream != nil:
		return linkedUpstream(), nil
	}
	if _, ok := target.Package(); ok && linkedPackage != nil {
		return func(ctx context.Context, config *rest.Config, _ []string) error { return linkedPackage(ctx, config) }, nil
	}
	return nil, fmt.Errorf("subject %s is not linked into this program; run `make virtual`, which links %s and %s", target, subject.Ours, subject.Upstream)
}

// ours runs a replica of our controllers. The arguments are those of the command
// workload-controller-manager.
func ours(ctx context.Context, config *rest.Config, args []string) error {
	options := manager.NewOptions()
	flags := pflag.NewFlagSet(manager.Name, pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(append(args, "--secure-port=0")); err != nil {
		return err
	}
	if err := options.Validate(); err != nil {
		return err
	}
	return manager.New(options, manager.ClientsFrom(config, options)).Run(ctx)
}
