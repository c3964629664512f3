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
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Compact is the fault type etcd-compact: it compacts etcd at a regular interval.
var Compact = faults.Type{
	Name: "etcd-compact",
	Description: "At a regular interval, the fault compacts etcd up to its current revision. " +
		"The API server can then serve an older version, or the next page of an older list, only from its own cache. " +
		"A restarted API server cannot serve them.",
	Healing: "The fault stops compacting etcd. Compacted revisions stay unavailable.",
	Needs:   []cluster.Capability{cluster.AccessesEtcd},
	Params: []faults.Param{
		{Name: "every", Description: "The time between compactions. The first is at the injection.", Bounds: "10ms to 1h", Default: "1s"},
		{Name: "times", Description: "The maximum number of compactions.", Bounds: "0 to 1000000", Default: "0 (no limit)"},
	},
	New:                newCompact,
	NotGeneratedReason: "without a restart of the API server it has no effect on any client",
}

// CompactParams contains the parameters that a scenario sets for an etcd-compact fault. The
// Params field of [Compact] documents each parameter.
type CompactParams struct {
	Every time.Duration `yaml:"every"`
	Times int           `yaml:"times"`
}

const (
	everyDefault = time.Second
	everyMin     = 10 * time.Millisecond
	everyMax     = time.Hour
	timesMax     = 1_000_000
	// compactWithin is the maximum duration of one compaction. Without this limit, a compaction
	// would wait as long as etcd is down.
	compactWithin = 10 * time.Second
)

// newCompact returns an etcd-compact fault with the given parameters, or an error if a
// parameter is invalid.
func newCompact(params faults.Params) (faults.Fault, error) {
	p := CompactParams{Every: everyDefault}
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	err := scenario.JoinErrors(faults.Between(params, "every", p.Every, everyMin, everyMax), faults.Between(params, "times", p.Times, 0, timesMax))
	if err != nil {
		return nil, err
	}
	return &compact{params: p}, nil
}

// compact is a fault of type etcd-compact. It compacts etcd at a regular interval.
type compact struct {
	params CompactParams
	env    *faults.Env
	etcd   *clientv3.Client
	faults.Background
	fired atomic.Int64 // number of compactions of etcd so far
}

func (c *compact) Inject(ctx context.Context, env *faults.Env) (err error) {
	provider, ok := env.Cluster.(cluster.EtcdProvider)
	if !ok {
		return fmt.Errorf("the provider %s does not give access to etcd", env.Cluster.Name())
	}
	c.env = env
	if c.etcd, err = provider.Etcd(ctx); err != nil {
		return err
	}
	c.Begin(ctx, c.run)
	return nil
}

func (c *compact) Heal(ctx context.Context) error {
	if err := c.End(ctx); err != nil {
		return fmt.Errorf("waiting until the current compaction of etcd has ended: %w", err)
	}
	return nil
}

func (c *compact) Summary() string {
	return "compacted etcd " + faults.Counted(int(c.fired.Load()), "time")
}

// run compacts etcd at every tick. It ends when the fault is healed, or after c.params.Times
// compactions. If c.params.Times is 0, the number of compactions is not limited.
func (c *compact) run(ctx context.Context) {
	defer c.etcd.Close()
	ticker := c.env.Clock.NewTicker(c.params.Every)
	defer ticker.Stop()
	for failing := false; ; {
		revision, err := c.compact(ctx)
		switch {
		case err != nil && !failing: // record only the first error of an outage
			c.env.Report.Failed(nil, err)
		case err == nil:
			c.fired.Add(1)
			c.env.Report.Fired(0, nil, fmt.Sprintf("compacted etcd up to revision %d", revision))
		}
		failing = err != nil
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

// compact compacts etcd up to its current revision, and returns this revision.
func (c *compact) compact(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, compactWithin)
	defer cancel()
	// Every response of etcd contains the current revision, so any key will do.
	response, err := c.etcd.Get(ctx, "/", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("reading the revision of etcd: %w", err)
	}
	revision := response.Header.Revision
	_, err = c.etcd.Compact(ctx, revision)
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // ErrCompacted: etcd has no revision after the last compaction
		return 0, fmt.Errorf("compacting etcd up to revision %d: %w", revision, err)
	}
	return revision, nil
}
