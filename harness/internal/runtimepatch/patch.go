// Package runtimepatch makes the order of the goroutines of a Go program depend on a seed.
//
// The package edits copies of a few files of Go's runtime, and the go command builds the program
// with these copies. In an ordinary program, real time and random numbers of the kernel influence
// which goroutine runs next. In a patched program, only the seed and the program's input do.
//
// A patched program must start with the variables of [Environment], which turn off what cannot be
// patched: parallel threads and garbage collection.
package runtimepatch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// SeedVariable is the environment variable that contains the seed of a patched program.
const SeedVariable = "GAUNTLET_RUNTIME_SEED"

// Environment returns the environment variables that a patched program needs. With them, the order
// of its goroutines depends only on the seed. The variables turn off automatic garbage collection
// below about 3 GiB, so the program must call runtime.GC from time to time.
func Environment(seed uint64) []string {
	return []string{
		fmt.Sprintf("%s=%d", SeedVariable, seed),
		"GOMAXPROCS=1", // goroutines on two threads would run in an order of real time
		"GOGC=off",     // real time decides when and how long the runtime collects garbage
		// With more memory than about 3 GiB, the runtime collects garbage by itself. Two runs with the
		// same seed may then differ.
		"GOMEMLIMIT=4GiB",
		// The program waits during a collection, and nothing interrupts a goroutine. A panic prints the
		// labels of its goroutine.
		"GODEBUG=gcstoptheworld=2,asyncpreemptoff=1,memprofilerate=0,tracebacklabels=1",
	}
}

// edit replaces a text of one of Go's source files. The field count says how often the file
// contains the text.
type edit struct {
	file     string // path of the file, relative to GOROOT/src
	old, new string
	count    int
}

// edits are the changes to the source of Go 1.26. After them, the order of goroutines depends only
// on the seed. The last three only save time.
var edits = []edit{
	// The thread sysmon interrupts goroutines after 10 ms. It also lets other goroutines run during
	// a long system call.
	{"runtime/proc.go", `const haveSysmon = GOARCH != "wasm"`, `const haveSysmon = false`, 1},
	// After a goroutine has waited for 1 ms, a mutex prefers it to running goroutines.
	{"internal/sync/mutex.go", "starvationThresholdNs = 1e6", "starvationThresholdNs = 1 << 62", 1},
	// The name of the machine is part of the identity of a replica.
	{"os/sys.go", "return hostname()", `return "virtual", nil`, 1},
	// Goroutines run in the order in which they become ready. By default, a processor has a queue of
	// 256 goroutines, and puts half of them into a global queue when it is full. Goroutines outside of
	// a bubble, which become ready in real time, would decide when this happens.
	{"runtime/proc.go", "\nretry:\n\th := atomic.LoadAcq(&pp.runqhead) // load-acquire, synchronize with consumers\n\tt := pp.runqtail\n", oneQueue, 1},
	{"runtime/proc.go", "if pp.schedtick%61 == 0 && !sched.runq.empty() {", "if false {", 1},
	// The kernel gives each process different random bytes.
	{"runtime/rand.go", "\tglobalRand.state.Init(*seed)\n", "\tclear(seed[:])\n\tglobalRand.state.Init(*seed)\n", 1},
	// Each thread has its own random numbers, and real time decides which thread runs a goroutine.
	// Goroutines thus get a source of their own. Only select statements, timers, maps and type
	// switches use it, because the runtime draws other numbers at times that no seed determines.
	{"runtime/rand.go", "\tmp := getg().m\n\tc := &mp.chacha8\n", "\tmp := getg().m\n\tif getg() != mp.g0 {\n\t\treturn seededRand()\n\t}\n\tc := &mp.chacha8\n", 1},
	{"runtime/rand.go", "// mrandinit initializes the random state of an m.\n", seededRand + "\n// mrandinit initializes the random state of an m.\n", 1},
	// A thread that becomes idle races with the start of the next one. Without a wait, the number of
	// threads would vary, and with it the addresses of all later objects, which maps may hash.
	{"runtime/proc.go", "\tnmp := mget()\n\tif nmp == nil {\n", "\tnmp := mget()\n" + waitForThread + "\tif nmp == nil {\n", 1},
	{"runtime/select.go", "cheaprandn(uint32(norder + 1))", "uint32(seededRand() % uint64(norder+1))", 1},
	{"runtime/time.go", "t.rand = cheaprand()", "t.rand = uint32(seededRand())", 1},
	{"runtime/iface.go", "cheaprand()", "uint32(seededRand())", 4},
	// The clock of a bubble also advances while goroutines wait for a mutex. Many programs hold one
	// during a request, which takes time on this clock.
	{"runtime/runtime2.go", "\twaitReasonSyncCondWait:          true,\n", "\twaitReasonSyncCondWait:          true,\n" + mutexWaits, 1},
	{"runtime/proc.go", "\tmainStarted = true\n", "\tmainStarted = true\n\tseedRand(gogetenv(\"" + SeedVariable + "\"))\n", 1},
	// The first garbage collection starts workers, and waits for them in real time. They must start
	// before other goroutines run. Here, no collection can begin meanwhile.
	{"runtime/proc.go", "\n\tmain_init_done = make(chan bool)\n", "\n\tgcBgMarkStartWorkers()\n\tmain_init_done = make(chan bool)\n", 1},
	// The stack of a goroutine starts with 2 KiB. A goroutine that serves a request soon needs more,
	// and copies of stacks take a twelfth of the time of a run.
	{"runtime/stack.go", "var startingStackSize uint32 = fixedStack", "var startingStackSize uint32 = 16 << 10", 1},
	{"runtime/proc.go", "newg = malg(stackMin)", "newg = malg(int32(startingStackSize))", 1},
	// With huge pages, the first write to new memory is cheaper.
	{"runtime/mem_linux.go", "\tsetVMAName(p, n, vmaName)\n\n\t// Disable", "\tsetVMAName(p, n, vmaName)\n\tsysHugePageOS(v, n)\n\n\t// Disable", 1},
}

// oneQueue is source code for Go's scheduler. It puts each goroutine that becomes ready at the end of the
// global queue.
const oneQueue = `
	lock(&sched.lock)
	sched.runq.pushBack(gp)
	unlock(&sched.lock)
	return
retry:
	h := atomic.LoadAcq(&pp.runqhead)
	t := pp.runqtail
`

// mutexWaits is source code that adds the waits for a mutex to a table of Go's runtime. The table
// lists the waits during which the virtual clock of testing/synctest advances.
const mutexWaits = `	waitReasonSyncMutexLock:         true,
	waitReasonSyncRWMutexRLock:      true,
	waitReasonSyncRWMutexLock:       true,
`

// waitForThread is source code for Go's scheduler, which waits up to about 70 ms until a thread is
// idle. Without it, the number of threads would depend on timing. The first thread needs no wait,
// because no other can become idle.
const waitForThread = `	for i := 0; nmp == nil && i < 1000 && mcount() > 1; i++ {
		unlock(&sched.lock)
		usleep(20)
		lock(&sched.lock)
		nmp = mget()
	}
`

// seededRand is source code for Go's runtime: a source of random numbers that depends only on the
// seed. Goroutines in a bubble of testing/synctest have their own sequence of numbers, because real
// time wakes goroutines outside of the bubble.
const seededRand = `var seededRandStates [2]uint64

func seedRand(seed string) {
	for i := range len(seed) {
		seededRandStates[0] = seededRandStates[0]*31 + uint64(seed[i])
	}
	seededRandStates[1] = ^seededRandStates[0]
}

//go:nosplit
func seededRand() uint64 {
	state := &seededRandStates[0]
	if getg().bubble != nil {
		state = &seededRandStates[1]
	}
	*state += 0x9e3779b97f4a7c15
	hi, lo := math.Mul64(*state, *state^0xbf58476d1ce4e5b9)
	return hi ^ lo
}
`

// Write writes edited copies of Go's source files to the directory dir. The flag -overlay of the go
// command then replaces the original files by the copies. Each key of the result is the path of an
// original file, and the value is the path of its copy.
//
// Write returns an error if the go command belongs to a version of Go that the edits do not fit.
func Write(ctx context.Context, dir string) (map[string]string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src")
	contents := map[string]string{}
	for _, e := range edits {
		path := filepath.Join(source, filepath.FromSlash(e.file))
		content, ok := contents[path]
		if !ok {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			content = string(data)
		}
		if found := strings.Count(content, e.old); found != e.count {
			return nil, fmt.Errorf("%s contains %q %d times; expected %d times, as in Go 1.26", path, e.old, found, e.count)
		}
		contents[path] = strings.ReplaceAll(content, e.old, e.new)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	copies := map[string]string{}
	for path, content := range contents {
		name, err := filepath.Rel(source, path)
		if err != nil {
			return nil, err
		}
		copies[path] = filepath.Join(dir, strings.ReplaceAll(name, string(filepath.Separator), "-"))
		if err := os.WriteFile(copies[path], []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	return copies, nil
}

// WriteOverlay writes edited copies of Go's source files and the file overlay.json to the directory
// dir. The flag -overlay of the go command needs the path of overlay.json. See [Write] for errors.
func WriteOverlay(ctx context.Context, dir string) error {
	copies, err := Write(ctx, dir)
	if err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": copies})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644)
}
