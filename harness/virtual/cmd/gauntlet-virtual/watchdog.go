package main

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clockStallMax is the CPU time that the program may use during one second of the virtual clock.
// Thousands of requests fit into it. If the program uses more, a goroutine works all the time, such
// as a controller that retries without back-off and without a request. The virtual clock then does
// not advance, and the run would never end.
const clockStallMax = 30 * time.Second

// watchdog ends the program with the stacks of all goroutines if the virtual clock does not advance.
// The kernel measures the CPU time, and sends SIGQUIT. The signal also ends a goroutine that never
// yields, and does not influence the order of goroutines before.
type watchdog struct{ timer int32 } // the ID of a POSIX timer

// newWatchdog returns a watchdog that measures no time yet.
func newWatchdog() (watchdog, error) {
	var w watchdog
	// The layout is that of struct sigevent in the kernel.
	event := struct {
		value          uint64
		signal, notify int32
		_              [48]byte
	}{signal: int32(syscall.SIGQUIT)}
	if _, _, errno := unix.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_PROCESS_CPUTIME_ID, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&w.timer))); errno != 0 {
		return w, fmt.Errorf("creating the timer that ends the program if the virtual clock does not advance: %w", errno)
	}
	return w, nil
}

// restart sets the CPU time that is left to the given limit.
func (w watchdog) restart(limit time.Duration) {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(limit.Nanoseconds())}
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(w.timer), 0, uintptr(unsafe.Pointer(&at)), 0, 0, 0) // never fails with valid arguments
}

// run restarts the watchdog each second of the virtual clock, until the program exits. Call it in a
// bubble.
func (w watchdog) run(limit time.Duration) {
	w.restart(limit)
	for range time.Tick(time.Second) {
		w.restart(limit)
	}
}
