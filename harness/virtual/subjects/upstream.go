//go:build !ours

package subjects

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/configz"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// upstream runs replicas of kube-controller-manager in one process. Create it in the bubble of
// testing/synctest.
type upstream struct {
	// starting has one element while a replica registers itself in tables that all replicas share.
	starting chan struct{}
}

func init() { linkedUpstream = func() subject.Main { return newUpstream().run } }

func newUpstream() *upstream { return &upstream{make(chan struct{}, 1)} }

// registrationTime is how long a replica may take to register itself in global tables of this
// process. On a virtual clock, this time passes only when all goroutines wait. By then, the
// registration has ended.
const registrationTime = time.Millisecond

// run runs kube-controller-manager, from its command line to its end. It does not serve HTTP.
//
// When kube-controller-manager loses its lease, it calls klog.OsExit to end its process. Here, this
// call ends only the calling goroutine. run then returns an error, and cancels the context of the
// replica's other goroutines.
func (u *upstream) run(ctx context.Context, clientConfig *rest.Config, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer releaseInformerNames() // a standby may become the leader before this replica starts again
	u.starting <- struct{}{}
	completed, err := configure(ctx, clientConfig, args)
	if err != nil {
		<-u.starting
		return err
	}
	ended := make(chan error, 1)
	go func() {
		err := errExited
		defer func() { ended <- err }() // also after runtime.Goexit
		if e := app.Run(ctx, completed); e != nil {
			err = e
		}
	}()
	time.Sleep(registrationTime)
	<-u.starting
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil // SIGTERM ends the process at once, too, so do not wait for the controllers
	}
}

// errExited is the error of a replica that ended without another error, for example because it
// called klog.OsExit.
var errExited = errors.New("kube-controller-manager exited and returned no error")

// configure returns the configuration of kube-controller-manager for the given command line. It
// prepares this process for another replica.
func configure(ctx context.Context, clientConfig *rest.Config, args []string) (*config.CompletedConfig, error) {
	klog.OsExit = func(int) { runtime.Goexit() }
	configz.Delete(app.ConfigzName) // an earlier replica of this process has registered it
	releaseInformerNames()
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	known, off, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	flags := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc) // some names have underscores
	for _, set := range o.Flags(known, off, aliases).FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(append(args, "--master="+clientConfig.Host, "--secure-port=0")); err != nil {
		return nil, err
	}
	c, err := o.Config(ctx, known, off, aliases)
	if err != nil {
		return nil, err
	}
	c.Kubeconfig.Transport = clientConfig.Transport
	if c.Client, err = kubernetes.NewForConfig(rest.AddUserAgent(c.Kubeconfig, "kube-controller-manager")); err != nil {
		return nil, err
	}
	return c.Complete(), nil
}
