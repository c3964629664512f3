package fleet

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// ErrNothingToShrink means that no check failed in the runs of a campaign.
var ErrNothingToShrink = errors.New("found no run in which a check failed; expected at least one")

// shrunkMax is the maximum number of failures that a campaign shrinks. The Job contains a list of
// these failures in an argument and in an annotation, whose sizes are limited.
const shrunkMax = 1000

// Shrinking returns a campaign with the given name that shrinks the failures of the campaign m. Of
// each failure group, the new campaign shrinks the run with the fewest steps and faults. Its Job
// has one index for each of these runs, and at most 1000 indexes. Without a failure, the error
// wraps [ErrNothingToShrink].
func (m *Merged) Shrinking(name string) (*Campaign, error) {
	c := m.Campaign
	if len(c.Units) > 0 {
		return nil, fmt.Errorf("campaign %s makes no runs of seeds, so that it has no failures to shrink; expected a campaign that \"gauntlet fleet run\" created", c.Name)
	}
	c.Name, c.Of = name, m.Campaign.Name
	for _, failure := range reports.FailedChecks(m.Results.Failed) {
		c.Units = append(c.Units, Unit{Seed: failure.Run.Seed, Subject: failure.Run.Subject, Check: failure.Check})
	}
	if len(c.Units) == 0 {
		return nil, fmt.Errorf("campaign %s: %w", c.Of, ErrNothingToShrink)
	}
	// Keep the first groups, which have the most runs. Then remove duplicates: two groups may have
	// the same check in the same run.
	c.Units = c.Units[:min(len(c.Units), shrunkMax)]
	slices.SortFunc(c.Units, func(a, b Unit) int { return strings.Compare(a.base(), b.base()) })
	c.Units = slices.Compact(c.Units)
	return &c, c.Validate()
}

// JobLike returns the Indexed Job of the campaign c. The argument other is the Job of an earlier
// campaign. The new pods have the same image, resources and store as the pods of that Job.
func JobLike(other *batchv1.Job, c *Campaign) *batchv1.Job {
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: other.Namespace, Labels: Labels(c.Name), Annotations: map[string]string{}},
		Spec:       *other.Spec.DeepCopy(),
	}
	job.Annotations[campaignLabel] = string(c.encode())
	store := storeDirectory
	if bucket := other.Annotations[bucketAnnotation]; bucket != "" {
		job.Annotations[bucketAnnotation] = bucket
		store = bucket
	}
	job.Spec.Completions = ptr.To(int32(c.indexes()))
	job.Spec.Parallelism = ptr.To(min(ptr.Deref(other.Spec.Parallelism, 1), int32(c.indexes())))
	if queue := other.Labels[queueLabel]; queue != "" {
		job.Labels[queueLabel] = queue
		job.Spec.Suspend = ptr.To(true)
	}
	// Kubernetes sets these for each Job.
	job.Spec.Selector, job.Spec.ManualSelector, job.Spec.Template.Labels = nil, nil, Labels(c.Name)
	job.Spec.Template.Spec.Containers[0].Args = workerArgs(c, store)
	return job
}

// Failed returns the report of the run whose failure this campaign shrinks, and extracts the run
// directory to dir. The argument failure identifies the run, which belongs to the earlier campaign
// c.Of. The field Directory of the report is then dir.
func (c *Campaign) Failed(ctx context.Context, store Store, failure Unit, dir string) (*reports.Run, error) {
	unit := Unit{Seed: failure.Seed, Subject: failure.Subject}
	if !c.Seeds.contains(unit.Seed) {
		return nil, fmt.Errorf("%s: campaign %s has no such seed; expected a seed from %s", failure, c.Of, c.Seeds)
	}
	names, err := store.List(ctx, indexDir(c.Of, int((unit.Seed-c.Seeds.First)/c.PerPod))+"/")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		result, ok := parseResult(name)
		if !ok || result.base != unit.base() {
			continue
		}
		run, err := c.read(ctx, store, unit, result)
		if err != nil {
			return nil, err
		}
		archive, err := store.Get(ctx, path.Join(result.attempt, runsDir, result.base+runSuffix))
		if err != nil {
			return nil, err
		}
		run.Directory = dir
		return run, Extract(archive, dir)
	}
	return nil, fmt.Errorf("%s: campaign %s has no result of this run", failure, c.Of)
}

// Journal returns the last journal that a pod of this index has saved for a unit. A journal is the
// progress of a shrink or exploration, with which the next pod continues. Journal returns nil if no
// pod has saved one.
func (w *Worker) Journal(ctx context.Context, unit Unit) ([]byte, error) {
	names, err := w.Store.List(ctx, indexDir(w.Campaign.Name, w.Index)+"/")
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Backward(names) {
		if strings.HasSuffix(name, "/"+path.Join(journalsDir, unit.base())) {
			return w.Store.Get(ctx, name)
		}
	}
	return nil, nil
}

// SaveJournal saves the progress of the shrink or exploration that this pod makes. If the pod is
// killed, the next pod continues from the saved journal.
func (w *Worker) SaveJournal(ctx context.Context, unit Unit, journal []byte) error {
	if err := w.Store.Put(ctx, path.Join(w.dir, journalsDir, unit.base()), journal); err != nil {
		return err
	}
	w.saved++
	return w.note(ctx, &unit)
}
