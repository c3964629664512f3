package main

import (
	"testing"
	"time"
)

func TestClockWatch(t *testing.T) {
	var c clockWatch
	for _, step := range []struct {
		advance int64         // seconds by which the virtual clock advances
		used    time.Duration // CPU time of the program so far
		stuck   bool
	}{
		{0, time.Second, false},
		{0, standstillMax, false},
		{1, standstillMax + time.Second, false},
		{0, 2 * standstillMax, false},
		{0, 2*standstillMax + 2*time.Second, true},
		{5, 2*standstillMax + 3*time.Second, false},
	} {
		c.seconds.Add(step.advance)
		if got := c.stuck(step.used); got != step.stuck {
			t.Errorf("clock at %d s, CPU time %s: stuck is %t; expected %t", c.seconds.Load(), step.used, got, step.stuck)
		}
	}
}
