// Command standin is the program that the containers of workload pods run on real kubelets.
// See package harness/standin.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/kube-gauntlet/gauntlet/harness/standin"
)

func main() {
	var o standin.Options
	flag.DurationVar(&o.StartDelay, "start-delay", 0, "time from the start until the container is ready")
	flag.DurationVar(&o.StopDelay, "stop-delay", 0, "time from SIGTERM until the program exits")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

// run serves HTTP requests, such as readiness probes. After SIGINT or SIGTERM, it continues until
// the stop delay has passed.
func run(o standin.Options) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf(":%d", standin.Port))
	if err != nil {
		return err
	}
	return standin.Serve(ctx, listener, o)
}
