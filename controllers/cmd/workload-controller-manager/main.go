// Command workload-controller-manager runs the ReplicationController, ReplicaSet, Deployment
// and Endpoints controllers. Its flags have the same names and meanings as those of
// kube-controller-manager. The command can replace kube-controller-manager in a cluster that needs
// only these controllers.
//
// The exit code is 0 after SIGTERM or SIGINT. It is 1 after a failure or the loss of the lease,
// and 2 after a wrong command line.
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

// These are the exit codes for success, for a failure or a lost lease, and for a wrong command line.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	// The first signal starts a graceful stop. A second signal ends the process immediately.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	klog.Flush()
	os.Exit(code)
}

// run runs the command with the given arguments until ctx is done. It returns the exit code.
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

// parse returns the options that the command line arguments set. For the argument --help, it
// prints the usage to stdout and returns pflag.ErrHelp.
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

// addLogFlags adds the flags -v and --vmodule of klog to the flag set.
func addLogFlags(flags *pflag.FlagSet) {
	all := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(all)
	for _, name := range []string{"v", "vmodule"} {
		flags.AddGoFlag(all.Lookup(name))
	}
}

// oneLine writes an error as one line to w. It separates joined errors by semicolons.
func oneLine(w io.Writer, err error) {
	fmt.Fprintf(w, "%s: %s\n", manager.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
}
