package main

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"
)

// standstillMax is the CPU time that the program may use during one second of the virtual clock.
// Thousands of requests fit into it. More means that goroutines work all the time, such as a
// controller that retries without back-off and without a request. The virtual clock then stands
// still, and the run would never end.
const standstillMax = 30 * time.Second

// clockWatch notices that the virtual clock stands still.
type clockWatch struct {
	seconds atomic.Int64  // how many seconds the virtual clock has advanced
	last    int64         // the value of seconds at the last change that the method stuck has seen
	since   time.Duration // the CPU time of the program at that change
}

// count counts the seconds of the virtual clock until the program exits. Call it in a bubble.
func (c *clockWatch) count() {
	for {
		time.Sleep(time.Second)
		c.seconds.Add(1)
	}
}

// stuck reports whether the program has used the CPU time standstillMax while the clock stood still.
// The argument used is the CPU time that the program has used so far.
func (c *clockWatch) stuck(used time.Duration) bool {
	if now := c.seconds.Load(); now != c.last {
		c.last, c.since = now, used
	}
	return used-c.since > standstillMax
}

// watch panics with the stacks of all goroutines if the clock stands still. Call it outside of the
// bubble.
func (c *clockWatch) watch() {
	for !c.stuck(cpuTime()) {
		time.Sleep(standstillMax / 6) // of real time
	}
	debug.SetTraceback("all")
	panic(fmt.Sprintf("the virtual clock stands still: it advanced by less than a second in %s of CPU time, because goroutines never wait", standstillMax))
}

// cpuTime returns the user and system CPU time of the program.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // never fails with valid arguments
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
