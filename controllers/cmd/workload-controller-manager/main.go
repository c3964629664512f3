// Command workload-controller-manager runs the ReplicationController, ReplicaSet,
// Deployment and Endpoints controllers. It accepts the flags of
// kube-controller-manager and can replace it if only these controllers are needed.
//
// The exit code is 0 after SIGTERM or SIGINT, 1 after a failure or a lost lease, and 2
// after a usage error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/controllers/manager"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	// The first signal starts a graceful stop; a second signal ends the process at
	// once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	klog.Flush()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	options, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		oneLine(stderr, err)
		return exitUsage
	}
	clients, err := manager.ClientsFor(options)
	if err == nil {
		err = manager.New(options, clients).Run(klog.NewContext(ctx, klog.Background()))
	}
	if err != nil {
		oneLine(stderr, err)
		return exitFailed
	}
	return exitOK
}

func parse(args []string, stdout io.Writer) (*manager.Options, error) {
	options := manager.NewOptions()
	flags := pflag.NewFlagSet(manager.Name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() {
		fmt.Fprintf(stdout, "Usage: %s [flags]\n\n%s", manager.Name, flags.FlagUsages())
	}
	options.AddFlags(flags)
	addLogFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: only flags are accepted, see --help", flags.Arg(0))
	}
	return options, options.Validate()
}

// addLogFlags adds the klog flags -v and --vmodule.
func addLogFlags(flags *pflag.FlagSet) {
	all := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(all)
	for _, name := range []string{"v", "vmodule"} {
		flags.AddGoFlag(all.Lookup(name))
	}
}

// oneLine writes err, which may join several errors, as one line.
func oneLine(w io.Writer, err error) {
	fmt.Fprintf(w, "%s: %s\n", manager.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
}
