// Command pause does nothing until it is told to end. It is what holds a pod's
// network in a node image that is built without a registry, and what the pods of
// a workload run.
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
