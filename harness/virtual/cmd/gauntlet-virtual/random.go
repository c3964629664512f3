package main

import (
	"encoding/binary"
	oldrand "math/rand"
	"math/rand/v2"
	"sync"

	"github.com/google/uuid"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// seedRandomNumbers makes generated names, UIDs and the jitter of timers depend on the seed. The
// package runtimepatch does this for the order of goroutines.
func seedRandomNumbers(seed uint64) {
	utilrand.Seed(int64(seed))
	oldrand.Seed(int64(seed)) //nolint:staticcheck // the only way to seed the jitter of client-go
	uuid.SetRand(newUIDs(seed))
}

// uids is the source of random bytes from which package uuid makes UIDs. It depends on the seed of
// the run.
type uids struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

func newUIDs(seed uint64) *uids {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &uids{source: rand.NewChaCha8(key)}
}

// Read fills p with random bytes. It implements io.Reader.
func (u *uids) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.source.Read(p)
}
