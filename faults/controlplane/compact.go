package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// Compact is the fault type etcd-compact.
var Compact = faults.Type{
	Name:        "etcd-compact",
	Description: "Again and again etcd throws the past away, up to the present: an earlier state, or the rest of a list from before, can be had only as long as the API server remembers it, and not from one that was started again.",
	Healing:     "The past is thrown away no more; what is gone stays gone.",
	Providers:   faults.OwnClusters,
	Params: []faults.Param{
		{Name: "every", Description: "The time from one compaction to the next; the first is at once.", Bounds: "10ms to 1h", Default: "1s"},
		{Name: "times", Description: "Compacts so many times at most.", Bounds: "0 to 1000000", Default: "0 (no limit)"},
	},
	New:                newCompact,
	NotGeneratedReason: "without a restart of the API server it changes nothing for anybody",
}

// CompactParams are the parameters of etcd-compact; [Compact] documents them.
type CompactParams struct {
	Every time.Duration `yaml:"every"`
	Times int           `yaml:"times"`
}

const (
	everyDefault = time.Second
	everyMin     = 10 * time.Millisecond
	everyMax     = time.Hour
	timesMax     = 1_000_000
	// compactWithin limits one compaction, because etcd may be down.
	compactWithin = 10 * time.Second
)

func newCompact(params faults.Params) (faults.Fault, error) {
	p := CompactParams{Every: everyDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	switch {
	case p.Every < everyMin || p.Every > everyMax:
		return nil, params.Errorf("every", "%v is out of bounds; expected %v to %v", p.Every, everyMin, everyMax)
	case p.Times < 0 || p.Times > timesMax:
		return nil, params.Errorf("times", "%d is out of bounds; expected 0 to %d", p.Times, timesMax)
	}
	return &compact{params: p}, nil
}

// compact is an etcd-compact fault in force.
type compact struct {
	params CompactParams
	env    *faults.Env
	etcd   *clientv3.Client
	faults.Background
	fired atomic.Int64
}

func (c *compact) Inject(ctx context.Context, env *faults.Env) (err error) {
	stored, ok := env.Cluster.(cluster.EtcdProvider)
	if !ok {
		return fmt.Errorf("the etcd of a cluster of %s is not within reach", env.Cluster.Name())
	}
	c.env = env
	if c.etcd, err = stored.Etcd(ctx); err != nil {
		return err
	}
	c.Begin(ctx, c.run)
	return nil
}

func (c *compact) Heal(ctx context.Context) error {
	if err := c.End(ctx); err != nil {
		return fmt.Errorf("waiting for a compaction of etcd: %w", err)
	}
	return nil
}

func (c *compact) Summary() string { return fmt.Sprintf("%d compactions", c.fired.Load()) }

func (c *compact) run(ctx context.Context) {
	defer c.etcd.Close()
	ticker := c.env.Clock.NewTicker(c.params.Every)
	defer ticker.Stop()
	for troubled := false; ; {
		revision, err := c.compact(ctx)
		switch {
		case err != nil && !troubled: // report an outage once, not at every tick
			c.env.Report.Failed(nil, err)
		case err == nil:
			c.fired.Add(1)
			c.env.Report.Fired(0, nil, fmt.Sprintf("compacted up to version %d", revision))
		}
		troubled = err != nil
		if c.params.Times > 0 && c.fired.Load() >= int64(c.params.Times) {
			return
		}
		select {
		case <-c.Stopping():
			return
		case <-ticker.C():
		}
	}
}

// compact compacts etcd up to its current revision, which it returns.
func (c *compact) compact(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, compactWithin)
	defer cancel()
	// Every response contains the current revision, whatever the key.
	present, err := c.etcd.Get(ctx, "/", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("asking etcd for its revision: %w", err)
	}
	revision := present.Header.Revision
	_, err = c.etcd.Compact(ctx, revision)
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // there is no new revision since the last compaction
		return 0, fmt.Errorf("compacting etcd up to revision %d: %w", revision, err)
	}
	return revision, nil
}
