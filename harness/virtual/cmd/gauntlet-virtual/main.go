// The seed of a run also seeds package math/rand.
//go:debug randseednop=0

// Command gauntlet-virtual records the history of one run in virtual time: clocks skip the time in
// which all goroutines wait. gauntlet starts it for the provider virtual, with the run directory as
// the only argument. The exit status is 0 if the run is complete, and 1 otherwise.
//
// The whole run is in one bubble of testing/synctest: control plane, subject, faults and workload.
// The program exits inside of the bubble. It thus need not stop goroutines of other projects that
// have no way to stop.
package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"

	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

// gcPercent is the growth of the heap, in percent, after which a garbage collection starts. A run
// needs 100 to 300 MB.
const gcPercent = 400

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "found %d arguments; expected the run directory\n", len(os.Args)-1)
		os.Exit(1)
	}
	if err := apiserver.Prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	dir := os.Args[1]
	// gauntlet runs one program for each core. A garbage collection that starts later saves time.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(gcPercent)
	// Only package testing makes bubbles. It reads its own flags from the command line.
	os.Args = os.Args[:1]
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "run", F: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { os.Exit(record(t.Context(), dir)) })
	}}}, nil, nil)
}
