// The seed of a run also seeds package math/rand.
//go:debug randseednop=0

// Command gauntlet-virtual records the history of one run in virtual time: clocks skip the time in
// which all goroutines wait. gauntlet starts it for the provider virtual, with the run directory as
// the only argument. The exit status is 0 if the run is complete, 3 if the arguments are wrong, and
// 1 otherwise.
//
// Two runs with the same seed have the same history on two conditions. "make virtual" has built the
// program with a patched Go runtime, and the program has the environment of package runtimepatch.
// gauntlet sets this environment.
//
// The whole run is in one bubble of testing/synctest: control plane, subject, faults and workload.
// The end of a bubble waits for all of its goroutines. Some goroutines of other projects cannot be
// stopped, so the program exits inside of the bubble.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

const usage = `Usage: gauntlet-virtual RUNDIR

gauntlet-virtual records the history of one run in virtual time. "gauntlet run
--provider=virtual" creates the directory RUNDIR and starts this program for each run.

Exit status: 0 the run is complete; 1 it is not; 3 the arguments are wrong.
`

// exitUsage is the exit status for wrong arguments. It is the same as that of gauntlet.
const exitUsage = 3

// checkArguments returns an error if the arguments are not the path of a run directory.
func checkArguments(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("found %d arguments; expected one, the run directory", len(args))
	}
	if strings.HasPrefix(args[0], "-") {
		return fmt.Errorf("unknown flag: %s; expected the run directory", args[0])
	}
	for _, name := range []string{"scenario.yaml", "environment.json"} {
		if _, err := os.Stat(filepath.Join(args[0], name)); err != nil {
			return fmt.Errorf("%s: found no %s; expected a run directory", args[0], name)
		}
	}
	return nil
}

func main() {
	if slices.Contains(os.Args[1:], "--help") || slices.Contains(os.Args[1:], "-h") {
		fmt.Print(usage)
		return
	}
	if err := checkArguments(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gauntlet-virtual:", err)
		os.Exit(exitUsage)
	}
	if err := apiserver.Prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	dir := os.Args[1]
	dog, err := newWatchdog()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Only package testing can start a bubble. It would parse the arguments as its own flags.
	os.Args = os.Args[:1]
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "run", F: func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			go dog.run(clockStallMax)
			os.Exit(record(t.Context(), dir))
		})
	}}}, nil, nil)
}
