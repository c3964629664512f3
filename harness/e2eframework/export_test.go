package e2eframework

import (
	"context"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// EndFeature ends the recording of the current feature as Chaos.End does. It returns the verdicts
// instead of failing the test.
func EndFeature(ctx context.Context) (*reports.Run, error) {
	f, err := featureOf(ctx)
	if err != nil {
		return nil, err
	}
	return f.end(ctx)
}
