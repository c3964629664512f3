// Command pause waits until it gets SIGINT or SIGTERM.
//
// A node image that is built without a registry uses it as the pod sandbox
// container. The pods of a workload run it as their only container.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
}
